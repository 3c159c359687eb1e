/* A long window block by block: HK_STEP_FIR beside zita-convolver, which is loaded at run time and left out where it is
 * not installed. Prints CPU time per block over all threads, and for hankel the median and the worst block: for each
 * index of a block the minimum of RUNS runs counts, so that what other programs take is out. The first block after a
 * reset finds cold caches and is printed apart. zita-convolver runs with
 * its smallest latency (quantum and first partition of one block, 64 frames at least); its outputs are compared.
 *
 * usage: hankel_bench_convolver [window [block [inputs outputs groups [isa]]]] */
#include <dlfcn.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#include "hankel.h"

enum { RUNS = 9, MOST_CHANNELS = 8, MOST_BLOCK = 8192 };

typedef struct setup {
  int64_t window, block, c, k, groups, blocks;
  hk_isa isa;
  float *f, *x, *y, *zita_y; /* interleaved */
} setup;

static double wall(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* User and system time of all threads. */
static double cpu(void) {
  struct rusage u;
  getrusage(RUSAGE_SELF, &u);
  return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) + 1e-6 * (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec);
}

static int by_value(const void *a, const void *b) {
  const double u = *(const double *)a, v = *(const double *)b;
  return (u > v) - (u < v);
}

static bool run_hankel(const setup *s) {
  const hk_step step = {
      .size = sizeof step, .kind = HK_STEP_FIR, .x = 1, .k = s->k, .window = s->window, .groups = s->groups, .f = s->f};
  const hk_chain_desc d = {.size = sizeof d,
                           .channels = s->c,
                           .max_block = s->block,
                           .steps = &step,
                           .count = 1,
                           .layout = HK_CHANNELS_LAST,
                           .isa = s->isa};
  hk_chain *chain = NULL;
  hk_stream *stream = NULL;
  double *best = malloc((size_t)s->blocks * sizeof *best);
  if (!best || hk_chain_create(&chain, &d, NULL, 0) || hk_stream_create(&stream, chain, NULL, 0)) {
    printf("hankel: %s\n", hk_last_error());
    return false;
  }
  double used = 1e9, sum = 0;
  for (int run = 0; run < RUNS; run++) {
    hk_stream_reset(stream);
    const double start = cpu();
    for (int64_t i = 0; i < s->blocks; i++) {
      const double begin = wall();
      hk_stream_process(stream, s->x + i * s->block * s->c, s->block, s->y + i * s->block * s->k, NULL);
      const double took = wall() - begin;
      if (!run || took < best[i]) best[i] = took;
    }
    used = fmin(used, cpu() - start);
  }
  const double first = best[0];
  for (int64_t i = 0; i < s->blocks; i++) sum += best[i];
  qsort(best + 1, (size_t)s->blocks - 1, sizeof *best, by_value);
  const double median = best[s->blocks / 2], worst = best[s->blocks - 1], most = best[s->blocks * 99 / 100];
  hk_chain_facts facts = {.size = sizeof facts};
  hk_chain_info(chain, &facts);
  printf("hankel %-7s CPU %7.3f us per block; mean %7.3f median %7.3f 99%% %7.3f worst %7.3f, %.2f of the median; "
         "first %7.3f; chain %zu KiB, stream %zu KiB\n",
         facts.isa, 1e6 * used / (double)s->blocks, 1e6 * sum / (double)s->blocks, 1e6 * median, 1e6 * most,
         1e6 * worst, worst / median, 1e6 * first, facts.chain_bytes / 1024, facts.stream_bytes / 1024);
  hk_stream_destroy(stream);
  hk_chain_destroy(chain);
  free(best);
  return true;
}

/* Convproc of zita-convolver 4: its methods by their C++ symbols, and the members that its inline functions read. */
typedef struct convproc {
  uint32_t state;
  float *in[64], *out[64];
  uint32_t in_at, out_at;
  char rest[4096];
} convproc;
typedef struct zita {
  void (*construct)(convproc *);
  int (*configure)(convproc *, uint32_t, uint32_t, uint32_t, uint32_t, uint32_t, uint32_t, float);
  int (*create)(convproc *, uint32_t, uint32_t, int32_t, float *, int32_t, int32_t);
  int (*start)(convproc *, int, int);
  int (*process)(convproc *, bool);
  int (*stop)(convproc *);
  void (*options)(convproc *, uint32_t);
} zita;

static bool find_zita(zita *z) {
  void *library = dlopen("libzita-convolver.so.4", RTLD_NOW);
  if (!library) return false;
  static const char *const name[] = {"_ZN8ConvprocC1Ev",
                                     "_ZN8Convproc9configureEjjjjjjf",
                                     "_ZN8Convproc14impdata_createEjjiPfii",
                                     "_ZN8Convproc13start_processEii",
                                     "_ZN8Convproc7processEb",
                                     "_ZN8Convproc12stop_processEv",
                                     "_ZN8Convproc11set_optionsEj"};
  void *found[7];
  for (int i = 0; i < 7; i++)
    if (!(found[i] = dlsym(library, name[i]))) return false;
  memcpy(z, found, sizeof *z);
  return true;
}

static bool zita_windows(const setup *s, const zita *z, convproc *p) {
  const int64_t cg = s->c / s->groups, kg = s->k / s->groups;
  float *row = malloc((size_t)s->window * sizeof *row);
  bool good = row != NULL;
  for (int64_t k = 0; good && k < s->k; k++) {
    for (int64_t c = 0; good && c < cg; c++) {
      for (int64_t i = 0; i < s->window; i++) row[i] = s->f[(k * cg + c + 1) * s->window - 1 - i];
      good = !z->create(p, (uint32_t)(k / kg * cg + c), (uint32_t)k, 1, row, 0, (int32_t)s->window);
    }
  }
  free(row);
  return good;
}

static void run_zita(const setup *s, const zita *z, uint32_t options) {
  static convproc p;
  const uint32_t block = (uint32_t)s->block, part = block < 64 ? 64 : block;
  memset(&p, 0, sizeof p);
  z->construct(&p);
  z->options(&p, options);
  if (z->configure(&p, (uint32_t)s->c, (uint32_t)s->k, (uint32_t)s->window, block, part, 8192,
                   1.0f / (float)s->groups) ||
      !zita_windows(s, z, &p) || z->start(&p, 0, 0)) {
    printf("zita-convolver refuses these sizes\n");
    return;
  }
  nanosleep(&(struct timespec){.tv_nsec = 300000000}, NULL); /* a level whose thread is not up yet is left out */
  double used = 1e9;
  for (int run = 0; run < RUNS; run++) {
    const double start = cpu();
    for (int64_t i = 0; i < s->blocks; i++) {
      const float *x = s->x + i * s->block * s->c;
      float *y = s->zita_y + i * s->block * s->k;
      for (int64_t c = 0; c < s->c; c++)
        for (int64_t t = 0; t < s->block; t++) p.in[c][p.in_at + t] = x[t * s->c + c];
      z->process(&p, true);
      for (int64_t k = 0; k < s->k; k++)
        for (int64_t t = 0; t < s->block && !run; t++) y[t * s->k + k] = p.out[k][p.out_at + t];
    }
    used = fmin(used, cpu() - start);
  }
  z->stop(&p);
  double worst = 0, peak = 0;
  for (int64_t i = 0; i < s->blocks * s->block * s->k; i++) {
    worst = fmax(worst, fabs((double)s->zita_y[i] - (double)s->y[i]));
    peak = fmax(peak, fabs((double)s->y[i]));
  }
  printf("zita-convolver, options %u: CPU %7.3f us per block; outputs differ by %.1e of the peak\n", options,
         1e6 * used / (double)s->blocks, worst / peak);
}

static float *noise(int64_t count, uint32_t seed) {
  float *v = malloc((size_t)count * sizeof *v);
  for (int64_t i = 0; v && i < count; i++) {
    seed = seed * 1664525u + 1013904223u;
    v[i] = (float)(int32_t)seed * 0x1p-31f;
  }
  return v;
}

int main(int argc, char **argv) {
  setup s = {.window = argc > 1 ? atoll(argv[1]) : 96000,
             .block = argc > 2 ? atoll(argv[2]) : 64,
             .c = argc > 3 ? atoll(argv[3]) : 2,
             .k = argc > 4 ? atoll(argv[4]) : 2,
             .groups = argc > 5 ? atoll(argv[5]) : 2};
  const char *isa = argc > 6 ? argv[6] : "best";
  s.isa = !strcmp(isa, "avx2") ? HK_ISA_AVX2 : !strcmp(isa, "scalar") ? HK_ISA_SCALAR : HK_ISA_BEST;
  if (s.window < 1 || s.block < 1 || s.block > MOST_BLOCK || s.c < 1 || s.c > MOST_CHANNELS || s.k < 1 ||
      s.k > MOST_CHANNELS || s.groups < 1 || s.c % s.groups || s.k % s.groups) {
    printf("window and block (up to %d) are positive; up to %d inputs and outputs, which groups divide\n", MOST_BLOCK,
           MOST_CHANNELS);
    return 2;
  }
  s.blocks = (s.window * 2 + 48000) / s.block;
  const int64_t frames = s.blocks * s.block, taps = s.k * s.c / s.groups * s.window;
  s.f = noise(taps, 1), s.x = noise(frames * s.c, 2);
  s.y = calloc((size_t)(frames * s.k), sizeof *s.y), s.zita_y = calloc((size_t)(frames * s.k), sizeof *s.y);
  if (!s.f || !s.x || !s.y || !s.zita_y) return 1;
  for (int64_t i = 0; i < taps; i++) /* 60 dB over the window, as a room decays */
    s.f[i] *= powf(10.0f, -3.0f * (float)(s.window - 1 - i % s.window) / (float)s.window);
  printf("%lld taps, %lldx%lld in %lld groups, %lld blocks of %lld frames\n", (long long)s.window, (long long)s.c,
         (long long)s.k, (long long)s.groups, (long long)s.blocks, (long long)s.block);
  zita z;
  const bool good = run_hankel(&s);
  if (!good || !find_zita(&z)) {
    if (good) printf("zita-convolver skipped: no libzita-convolver.so.4\n");
    return good ? 0 : 1;
  }
  run_zita(&s, &z, 0);
  run_zita(&s, &z, 2); /* OPT_VECTOR_MODE */
  return 0;
}
