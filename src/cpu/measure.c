/* Measured limits of this thread: FMA throughput of an ISA by independent chains, and copy bandwidth. */
#include <string.h>

#include "base/base.h"

/* passes/peak.tmpl.h: runs n rounds of independent FMAs and returns the flops done; sink keeps the result
 * observable. */
double hk_peak_scalar(int64_t rounds, volatile float *sink);
#if HK_HAVE_AVX2
double hk_peak_avx2(int64_t rounds, volatile float *sink);
#endif
#if HK_HAVE_AVX512
double hk_peak_avx512(int64_t rounds, volatile float *sink);
#endif
#if HK_HAVE_NEON
double hk_peak_neon(int64_t rounds, volatile float *sink);
#endif

typedef double (*peak_fn)(int64_t rounds, volatile float *sink);

static peak_fn peak_of(hk_isa isa) {
#if HK_HAVE_AVX512
  if (isa >= HK_ISA_AVX512) return hk_peak_avx512;
#endif
#if HK_HAVE_AVX2
  if (isa >= HK_ISA_AVX2) return hk_peak_avx2;
#endif
#if HK_HAVE_NEON
  if (isa == HK_ISA_NEON) return hk_peak_neon;
#endif
  (void)isa;
  return hk_peak_scalar;
}

double hk_measure_peak(hk_isa isa, hk_type type) {
  volatile float sink = 0;
  if (isa == HK_ISA_BEST) isa = hk_cpu_best_isa();
  if (!hk_cpu_has(isa)) return 0;
  const peak_fn fn = peak_of(isa);
  double best = 0;
  fn(20000, &sink);
  for (int i = 0; i < 60; i++) { /* short samples: on a busy machine some of them run undisturbed */
    const double start = hk_clock(), flops = fn(20000, &sink), rate = flops / (hk_clock() - start);
    if (rate > best) best = rate;
  }
  return type == HK_F64 ? best / 2 : best;
}

double hk_measure_bandwidth(size_t bytes) {
  if (bytes < 64) bytes = 64;
  char *a = hk_alloc(bytes), *b = hk_alloc(bytes);
  double best = 0;
  if (a && b) {
    memset(a, 1, bytes);
    memset(b, 2, bytes);
    const int64_t times = hk_max64(1, (int64_t)(4e6 / (double)bytes));
    for (int i = 0; i < 7; i++) {
      const double start = hk_clock();
      for (int64_t t = 0; t < times; t++) {
        memcpy(b, a, bytes);
        __asm__ volatile("" : : "r"(b) : "memory");
      }
      const double rate = 2.0 * (double)bytes * (double)times / (hk_clock() - start);
      if (rate > best) best = rate;
    }
  }
  hk_free(a);
  hk_free(b);
  return best;
}
