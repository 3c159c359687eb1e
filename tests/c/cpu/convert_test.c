/* Element types: every f16, bf16 and f8 code survives a round trip; ties go to even; integers saturate. */
#include <math.h>

#include "core/core.h"
#include "cpu/ukernel.h"
#include "support/check.h"

static void codes(hk_type t, uint32_t count) {
  for (uint32_t i = 0; i < count; i++) {
    uint16_t in = (uint16_t)i, out = 0;
    uint8_t in8 = (uint8_t)i, out8 = 0;
    const bool small = hk_type_bytes(t) == 1;
    const double v = hk_load_element(t, small ? (void *)&in8 : (void *)&in, 0);
    hk_store_element(t, small ? (void *)&out8 : (void *)&out, 0, v);
    if (v != v) continue;
    CHECK(small ? in8 == out8 : in == out, "%s code %#x became %#x (%g)", hk_type_name(t), i, small ? out8 : out, v);
  }
}

/* halfway between a code and the next goes to the even one; a hair off goes to the nearer */
static void ties(hk_type t, uint32_t count) {
  for (uint32_t i = 0; i + 1 < count; i++) {
    const bool small = hk_type_bytes(t) == 1;
    uint16_t a = (uint16_t)i, b = (uint16_t)(i + 1), got = 0;
    const double lo = hk_load_element(t, &a, 0), hi = hk_load_element(t, &b, 0), mid = (lo + hi) / 2;
    if (!isfinite(lo) || !isfinite(hi)) continue;
    hk_store_element(t, &got, 0, mid);
    CHECK((small ? got & 0xff : got) == (i % 2 ? i + 1 : i), "%s: %g went to %#x", hk_type_name(t), mid, got);
    hk_store_element(t, &got, 0, nextafter(mid, hi));
    CHECK((small ? got & 0xff : got) == i + 1, "%s: above %g went to %#x", hk_type_name(t), mid, got);
    hk_store_element(t, &got, 0, nextafter(mid, lo));
    CHECK((small ? got & 0xff : got) == i, "%s: below %g went to %#x", hk_type_name(t), mid, got);
  }
}

/* every convert row of this machine against the definition: all codes one way, all roundings the other, odd counts */
static void rows(void) {
  enum { COUNT = 65536 };
  static uint16_t half[COUNT], half_out[COUNT];
  static float wide[COUNT + 1];
  for (int i = 0; i < COUNT; i++) half[i] = (uint16_t)i;
  for (int32_t r = 0; r < hk_kernel_count; r++) {
    const hk_kernel *k = &hk_kernels[r];
    if (k->family != HK_FAMILY_CONVERT || !hk_kernel_runs(k, HK_ISA_AMX)) continue;
    if (k->f_type == HK_F32) {
      k->fn(&(hk_convert_args){half + 3, wide, COUNT - 3});
      for (int i = 3; i < COUNT; i++) {
        const float want = (float)hk_load_element(k->x_type, half, i), got = wide[i - 3];
        CHECK(got == want || (got != got && want != want), "%s: code %#x became %g", k->name, i, (double)got);
      }
    } else {
      for (int i = 0; i < COUNT; i++) {
        const uint32_t bits = (uint32_t)i * 65537u + (uint32_t)i * 40503u;
        memcpy(&wide[i], &bits, 4);
      }
      k->fn(&(hk_convert_args){wide, half_out, COUNT - 5});
      for (int i = 0; i < COUNT - 5; i++) {
        uint16_t want;
        hk_store_element(k->f_type, &want, 0, wide[i]);
        const bool nan = wide[i] != wide[i];
        const double back = hk_load_element(k->f_type, &half_out[i], 0);
        CHECK(nan ? back != back : half_out[i] == want, "%s: %g became %#x, not %#x", k->name, (double)wide[i],
              half_out[i], want);
      }
    }
  }
}

int main(void) {
  rows();
  codes(HK_F16, 65536);
  codes(HK_BF16, 65536);
  codes(HK_F8E4M3, 256);
  ties(HK_F16, 0x7c00);
  ties(HK_BF16, 0x7f80);
  ties(HK_F8E4M3, 0x7f);
  const double in[] = {300, -300, 2.5, 3.5, -2.5, NAN};
  const int8_t s8[] = {127, -128, 2, 4, -2, 0};
  const uint8_t u8[] = {255, 0, 2, 4, 0, 0};
  for (int i = 0; i < 6; i++) {
    int8_t s;
    uint8_t u;
    CHECK_STATUS(HK_OK, "", hk_convert(HK_F64, &in[i], HK_S8, &s, 1));
    CHECK_STATUS(HK_OK, "", hk_convert(HK_F64, &in[i], HK_U8, &u, 1));
    CHECK(s == s8[i] && u == u8[i], "%g became %d and %u", in[i], s, u);
  }
  uint16_t h;
  hk_store_element(HK_F16, &h, 0, 65520);
  CHECK(h == 0x7c00, "f16 overflow gave %#x", h);
  hk_store_element(HK_BF16, &h, 0, 3.4e38);
  CHECK(h == 0x7f80, "bf16 overflow gave %#x", h);
  uint8_t b;
  hk_store_element(HK_F8E4M3, &b, 0, 1e9);
  CHECK(b == 0x7e, "f8 saturation gave %#x", b);
  CHECK(hk_f32_to_bf16(1.00390625f) == hk_f64_to_bf16(1.00390625), "two ways to bf16 differ");
  return hk_test_end();
}
