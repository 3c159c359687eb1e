/* hk_longconv against its formula (tests/c/support/longconv.c): random calls with one block and with several, on every
 * ISA, and what is refused. Run with a count and a seed for more: longconv_test 2000 7. */
#include <stdlib.h>

#include "base/base.h"
#include "support/check.h"
#include "support/longconv.h"

static void refusals(void) {
  hk_longconv_desc d = {.size = sizeof d, .n = 1, .c = 2, .length = 100, .window = 100};
  hk_options o = {.size = sizeof o, .threads = 1, .math = HK_MATH_FAST_ALGORITHMS};
  hk_longconv *k;
  CHECK_STATUS(HK_UNSUPPORTED, "HK_MATH_FAST_ALGORITHMS", hk_longconv_create(&k, &d, NULL, NULL, NULL));
  d.window = 0;
  CHECK_STATUS(HK_INVALID, "desc.window = 0 must be 1 to 2^21", hk_longconv_create(&k, &d, NULL, NULL, &o));
  d.window = 100, d.length = 3000000;
  CHECK_STATUS(HK_INVALID, "desc.length = 3000000 must be 0 to 2^21", hk_longconv_create(&k, &d, NULL, NULL, &o));
  d.length = 100, d.x_type = HK_F64;
  CHECK_STATUS(HK_INVALID, "desc.x_type = f64", hk_longconv_create(&k, &d, NULL, NULL, &o));
  d.x_type = HK_F32, d.f_tap = (int64_t)1 << 60;
  CHECK_STATUS(HK_INVALID, "strides of f reach", hk_longconv_create(&k, &d, NULL, NULL, &o));
  d.f_tap = 0;
  CHECK_STATUS(HK_OK, "", hk_longconv_create(&k, &d, NULL, NULL, &o));
  float x[200] = {0}, y[200];
  hk_longconv_args a = {.size = sizeof a, .x = x, .f = x, .y = y};
  CHECK_STATUS(HK_INVALID, "args.workspace_bytes = 0 must be", hk_longconv_execute(k, &a));
  const hk_longconv_grads g = {.size = sizeof g, .dy = y};
  CHECK_STATUS(HK_INVALID, "needs desc.gradient", hk_longconv_gradient(k, &a, &g));
  hk_longconv_destroy(k);
}

/* No sequences and no tokens: nothing is read, df is zero. */
static void empty(void) {
  const hk_options o = {.size = sizeof o, .math = HK_MATH_FAST_ALGORITHMS};
  for (int i = 0; i < 2; i++) {
    const hk_longconv_desc d = {.size = sizeof d, .n = i, .c = 2, .length = 1 - i, .window = 3, .gradient = 1};
    float df[6] = {1, 2, 3, 4, 5, 6};
    hk_longconv *k;
    CHECK_STATUS(HK_OK, "", hk_longconv_create(&k, &d, NULL, NULL, &o));
    const size_t bytes = hk_longconv_workspace(k);
    void *workspace = hk_alloc(bytes);
    const hk_longconv_args a = {.size = sizeof a, .workspace = workspace, .workspace_bytes = bytes};
    const hk_longconv_grads g = {.size = sizeof g, .df = df};
    CHECK_STATUS(HK_OK, "", hk_longconv_execute(k, &a));
    CHECK_STATUS(HK_OK, "", hk_longconv_gradient(k, &a, &g));
    for (int j = 0; j < 6; j++) CHECK(df[j] == 0, "df[%d] = %g", j, (double)df[j]);
    hk_free(workspace);
    hk_longconv_destroy(k);
  }
}

int main(int argc, char **argv) {
  const long count = argc > 1 ? atol(argv[1]) : 60;
  uint64_t next = argc > 2 ? strtoull(argv[2], NULL, 10) : 1;
  static const hk_isa isas[] = {HK_ISA_SCALAR, HK_ISA_NEON, HK_ISA_AVX2, HK_ISA_AVX512};
  refusals();
  empty();
  for (long i = 0; i < count && hk_test_failed < 5; i++) {
    const uint64_t first = next++;
    uint64_t seed = first * 0x9e3779b97f4a7c15u;
    longconv_trial r;
    longconv_trial_make(&r, &seed, 1300);
    const int before = hk_test_failed;
    for (int j = 0; j < HK_COUNT(isas); j++) {
      const hk_options o = {
          .size = sizeof o, .isa = isas[j], .threads = j % 2 ? 3 : 1, .math = HK_MATH_FAST_ALGORITHMS};
      if (hk_cpu_has(isas[j])) longconv_trial_run(&r, &o, i % 3 == 0);
    }
    if (hk_test_failed > before) fprintf(stderr, "  seed %llu\n", (unsigned long long)first);
    longconv_trial_free(&r);
  }
  return hk_test_end();
}
