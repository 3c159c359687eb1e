/* Every row of kernels.inc that this machine can run against its family's definition (support/kernel_*.c): random calls
 * on small integers, exact, then on floats, bounded; every tail; operands between guard pages on either side. A kernel
 * that does nothing, and ones that are wrong on purpose, must fail the same check. Arguments: a part of the names of
 * the rows to test, the number of calls per row and kind, the seed. */
#include <stdlib.h>
#include <string.h>

#include "support/check.h"
#include "support/kernel.h"

static void (*const checkers[HK_FAMILY_COUNT])(kernel_trial *) = {[HK_FAMILY_IGEMM] = check_igemm,
                                                                  [HK_FAMILY_DOT] = check_igemm,
                                                                  [HK_FAMILY_PGEMM] = check_pgemm,
                                                                  [HK_FAMILY_WEAVE] = check_weave,
                                                                  [HK_FAMILY_QGEMM] = check_qgemm,
                                                                  [HK_FAMILY_DGEMM] = check_dgemm,
                                                                  [HK_FAMILY_GATHER] = check_gather,
                                                                  [HK_FAMILY_TRANSPOSE] = check_transpose,
                                                                  [HK_FAMILY_STAGE] = check_stage,
                                                                  [HK_FAMILY_CONVERT] = check_convert,
                                                                  [HK_FAMILY_ACT] = check_act,
                                                                  [HK_FAMILY_MAP] = check_map,
                                                                  [HK_FAMILY_SMALL] = check_small,
                                                                  [HK_FAMILY_SMALL2] = check_small,
                                                                  [HK_FAMILY_SMALL4] = check_small,
                                                                  [HK_FAMILY_WINOIN] = check_winoin,
                                                                  [HK_FAMILY_WINOOUT] = check_winoout,
                                                                  [HK_FAMILY_FFT] = check_fft,
                                                                  [HK_FAMILY_KARATSUBA] = check_karatsuba,
                                                                  [HK_FAMILY_DWD] = check_dwd,
                                                                  [HK_FAMILY_DWP] = check_dwp,
                                                                  [HK_FAMILY_DWC] = check_dwc,
                                                                  [HK_FAMILY_DWM] = check_dwm,
                                                                  [HK_FAMILY_STRIP] = check_strip,
                                                                  [HK_FAMILY_POINT] = check_point,
                                                                  [HK_FAMILY_CAUSALC] = check_causalc,
                                                                  [HK_FAMILY_CAUSALT] = check_causalt,
                                                                  [HK_FAMILY_CAUSALG] = check_causalg,
                                                                  [HK_FAMILY_SPREAD] = check_spread,
                                                                  [HK_FAMILY_LONGFFT] = check_longfft,
                                                                  [HK_FAMILY_SPECTRA] = check_spectra,
                                                                  [HK_FAMILY_FIR] = check_fir,
                                                                  [HK_FAMILY_OUTER] = check_outer,
                                                                  [HK_FAMILY_TAPSUM] = check_tapsum,
                                                                  [HK_FAMILY_FRAME] = check_frame,
                                                                  [HK_FAMILY_DOTS] = check_dots,
                                                                  [HK_FAMILY_FINISH] = check_finish,
                                                                  [HK_FAMILY_REQUANT] = check_requant,
                                                                  [HK_FAMILY_TRANSPOSE8] = check_transpose_narrow,
                                                                  [HK_FAMILY_TRANSPOSE16] = check_transpose_narrow,
                                                                  [HK_FAMILY_UNPACK8] = check_unpack8};

/* One call; true when the kernel agrees. */
static bool kernel_try(const hk_kernel *k, hk_kernel_fn fn, uint64_t seed, bool integers) {
  /* vectors of 256 bits: the rows whose name says avx512vl */
  const int64_t vw = strstr(k->name, "avx512vl") ? 8 : hk_isa_lanes(k->isa);
  /* up to about 100 products of magnitude at most 1 per output, each with one rounding */
  kernel_trial t = {
      .k = k, .fn = fn, .vw = vw, .seed = seed, .integers = integers, .high = (int)(seed & 1), .tolerance = 2e-4};
  checkers[k->family](&t);
  for (int i = 0; i < t.buffers; i++) guarded_free(&t.buffer[i]);
  return !t.failed;
}

static void nothing(const void *args) { (void)args; }

/* Kernels of igemm that are wrong on purpose: each changes one argument of a working one. */
static hk_kernel_fn igemm_inner;
static void drops_a_channel(const void *args) {
  hk_igemm_args a = *(const hk_igemm_args *)args;
  if (a.channels > 1) a.channels--;
  igemm_inner(&a);
}
static void forgets_the_bias(const void *args) {
  hk_igemm_args a = *(const hk_igemm_args *)args;
  a.flags &= ~(uint32_t)HK_IGEMM_AFFINE;
  igemm_inner(&a);
}
static void drops_the_last_row(const void *args) {
  hk_igemm_args a = *(const hk_igemm_args *)args;
  a.count--;
  igemm_inner(&a);
}
static void repeats_a_segment(const void *args) {
  static const int64_t seg[4];
  hk_igemm_args a = *(const hk_igemm_args *)args;
  a.seg = seg;
  igemm_inner(&a);
}

static void catch_broken(const hk_kernel *k) {
  static const hk_kernel_fn broken[] = {drops_a_channel, forgets_the_bias, drops_the_last_row, repeats_a_segment};
  igemm_inner = k->fn;
  for (int i = 0; i < HK_COUNT(broken); i++) {
    int caught = 0;
    for (uint64_t call = 0; call < 40; call++) caught += !kernel_try(k, broken[i], call * 2654435761u, true);
    CHECK(caught > 0, "%s: broken kernel %d passed", k->name, i);
  }
}

int main(int argc, char **argv) {
  const char *only = argc > 1 ? argv[1] : "";
  const int calls = argc > 2 ? atoi(argv[2]) : 400;
  const uint64_t seed0 = argc > 3 ? strtoull(argv[3], NULL, 10) : 1;
  int rows = 0, absent = 0;
  for (int32_t i = 0; i < hk_kernel_count; i++) {
    const hk_kernel *k = &hk_kernels[i];
    if (!strstr(k->name, only)) continue;
    if (!hk_kernel_runs(k, HK_ISA_AMX)) {
      absent++;
      continue;
    }
    CHECK(checkers[k->family] != NULL, "%s has no checker", k->name);
    if (!checkers[k->family]) continue;
    int bad = 0, caught = 0;
    uint64_t first = 0;
    for (int call = 0; call < 2 * calls; call++) {
      const uint64_t seed = (seed0 * 1000003 + (uint64_t)call) * 2654435761u;
      if (!kernel_try(k, k->fn, seed, call < calls) && !bad++) first = (uint64_t)call;
      if (call < 40) caught += !kernel_try(k, nothing, seed, true);
    }
    CHECK(bad == 0, "%s: %d of %d calls wrong, the first is call %llu of seed %llu", k->name, bad, 2 * calls,
          (unsigned long long)first, (unsigned long long)seed0);
    CHECK(caught > 20, "%s: a kernel that does nothing was caught in only %d of 40 calls", k->name, caught);
    if (k->family == HK_FAMILY_IGEMM) catch_broken(k);
    rows++;
  }
  printf("%d rows tested, %d of other machines\n", rows, absent);
  CHECK(rows > 0, "no row has \"%s\" in its name", only);
  return hk_test_end();
}
