/* hankel-nam bench: time per block, for block sizes 16 to 1024 or the given one. Every pass plays the same signal from
 * the same state, and the fastest pass of each block counts: interference from other programs drops out, while what the
 * engine does on some blocks and not on others remains. */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "program.h"

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static int ascending(const void *a, const void *b) {
  const double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

static double larger(double a, double b) { return a > b ? a : b; }

typedef struct timing {
  double total, median, late, worst; /* seconds; late: 99.9th percentile */
} timing;

/* Returns false, with a sentence on stderr, if it could not be measured. */
static bool measure(hk_nam *m, const hk_nam_facts *f, long block, long frames, long passes, timing *t) {
  const long blocks = frames / block;
  double *fastest = malloc((size_t)blocks * sizeof *fastest);
  float *x = malloc((size_t)(block * f->in_channels) * sizeof *x),
        *y = malloc((size_t)(block * f->out_channels) * sizeof *y);
  const bool memory = fastest && x && y;
  bool good = memory;
  for (long pass = 0; good && pass < passes; pass++) {
    unsigned seed = 1;
    good = hk_nam_reset(m) == HK_OK;
    for (long b = 0; good && b < blocks; b++) {
      for (long i = 0; i < block * f->in_channels; i++) {
        seed = seed * 1664525u + 1013904223u;
        x[i] = (float)(int)(seed >> 8) * (1.0f / 16777216.0f) - 0.5f;
      }
      const double start = now();
      good = hk_nam_process(m, x, block, y) == HK_OK;
      const double took = now() - start;
      if (!pass || took < fastest[b]) fastest[b] = took;
    }
  }
  if (!memory) program_fail("no memory for blocks of %ld frames", block);
  else if (!good) program_fail("%s", hk_nam_last_error());
  *t = (timing){0};
  for (long b = 0; good && b < blocks; b++) t->total += fastest[b];
  if (good) {
    qsort(fastest, (size_t)blocks, sizeof *fastest, ascending);
    t->median = fastest[blocks / 2];
    t->late = fastest[(long)(0.999 * (double)(blocks - 1))];
    t->worst = fastest[blocks - 1];
  }
  free(fastest);
  free(x);
  free(y);
  return good;
}

int verb_bench(const arguments *a) {
  hk_nam_facts f;
  hk_nam *m = program_load(a, &f);
  if (!m) return 1;
  const double rate = f.sample_rate > 0 ? f.sample_rate : 48000;
  const long frames = (long)(a->seconds * rate);
  hk_machine machine = {.size = sizeof machine};
  if (hk_machine_info(&machine)) return hk_nam_free(m), program_fail("%s", hk_last_error());
  hk_isa isa = a->isa == HK_ISA_BEST || a->isa > machine.best_isa ? machine.best_isa : a->isa;
  if (isa > HK_ISA_AVX512) isa = HK_ISA_AVX512;
  double peak = 0; /* the best of many short samples: the machine may be busy */
  for (int i = 0; i < 20; i++) peak = larger(peak, hk_measure_peak(isa, HK_F32));
  printf("%s, size %d of %d: %.0f multiply-adds per frame, %s on %s\n", f.architecture, f.at_size + 1, f.sizes,
         f.flops / 2, f.isa, machine.cpu);
  printf("%s tanh, %g s at %g Hz%s, fastest of %ld passes per block, peak measured %.1f GFLOP/s\n",
         a->rational ? "rational" : "accurate", a->seconds, rate,
         f.sample_rate > 0 ? "" : " (assumed: the model gives no sample rate)", a->passes, 1e-9 * peak);
  printf("%6s %10s %10s %9s %10s %10s %10s\n", "block", "ms", "x real", "% of peak", "median us", "99.9% us",
         "worst us");
  const long first = a->block ? a->block : 16, last = a->block ? a->block : 1024;
  int status = 0;
  for (long block = first; block <= last && !status; block *= 2) {
    timing t;
    if (frames < block) {
      status = program_fail("--seconds is shorter than a block");
    } else if (!measure(m, &f, block, frames, a->passes, &t)) {
      status = 1;
    } else {
      const double played = (double)(frames / block * block);
      printf("%6ld %10.2f %10.1f %9.1f %10.2f %10.2f %10.2f\n", block, 1e3 * t.total * a->seconds * rate / played,
             played / rate / t.total, 100 * f.flops * played / t.total / peak, 1e6 * t.median, 1e6 * t.late,
             1e6 * t.worst);
    }
  }
  hk_nam_free(m);
  return status;
}
