/* The loops of the AMX kernels on any machine: their template over emulated tiles (support/tiles_emulated.h) against
 * the definition of the family, as kernels_test.c does with the real ones where a machine has AMX. The emulation aborts
 * on shapes that would fault, and buffers end at guard pages. */
#include <stdio.h>

#include "support/check.h"
#include "support/kernel.h"

void tiles_bf16(const void *args);
void tiles_s8(const void *args);

int main(void) {
  const hk_kernel rows[] = {
      {"emulated_bf16", HK_FAMILY_DOTS, HK_ISA_AMX, HK_BF16, HK_BF16, 32, 64, tiles_bf16, HK_FEATURE_NONE},
      {"emulated_s8", HK_FAMILY_DOTS, HK_ISA_AMX, HK_S8, HK_S8, 32, 64, tiles_s8, HK_FEATURE_NONE}};
  enum { CALLS = 600 };
  for (int i = 0; i < HK_COUNT(rows); i++) {
    int bad = 0, first = -1;
    for (int call = 0; call < CALLS; call++) {
      const uint64_t seed = (1000003 + (uint64_t)call) * 2654435761u;
      kernel_trial t = {.k = &rows[i], .fn = rows[i].fn, .vw = 16, .seed = seed, .integers = call < CALLS / 2};
      t.high = (int)(seed & 1), t.tolerance = 2e-4;
      check_dots(&t);
      for (int b = 0; b < t.buffers; b++) guarded_free(&t.buffer[b]);
      if (t.failed && !bad++) first = call;
    }
    CHECK(bad == 0, "%s: %d of %d calls wrong, the first is call %d", rows[i].name, bad, CALLS, first);
  }
  return hk_test_end();
}
