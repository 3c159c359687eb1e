/* Long windows by transforms, and shorter ones by nine products of sixteen, against exact sums: the error of every
 * output stays under the stated factor * gk * eps times the largest |x| of its stretch (here: of its row) times sum
 * |f|, on even data, on data with a spike and on data that fades away, and, on even data, the norm of the errors under
 * 4 * eps * sqrt(gk) of the result's; for every kernel the host has, every length of transform from the shortest
 * possible on, both layouts, padding, dilation, epilogues, two threads; the nine products bit for bit where all sums
 * are small integers. Refused without the math option. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cpu/ukernel.h"
#include "support/check.h"

typedef struct shape {
  int64_t n, c, w, s, lo, hi, dilation;
  hk_layout layout;
} shape;

static const shape shapes[] = {
    {1, 37, 300, 50, 0, 0, 1, HK_CHANNELS_LAST},    {2, 17, 211, 33, 32, 0, 1, HK_CHANNELS_LAST},
    {1, 5, 400, 9, 4, 4, 3, HK_CHANNELS_LAST},      {1, 19, 60, 13, 70, 80, 7, HK_CHANNELS_LAST},
    {2, 37, 300, 50, 25, 24, 1, HK_CHANNELS_FIRST}, {1, 8, 1000, 600, 0, 0, 1, HK_CHANNELS_FIRST},
    {1, 3, 40, 40, 0, 0, 1, HK_CHANNELS_FIRST},     {1, 16, 4096, 128, 127, 0, 1, HK_CHANNELS_LAST},
    {2, 33, 9, 8, 0, 0, 1, HK_CHANNELS_LAST},       {1, 24, 500, 31, 15, 15, 1, HK_CHANNELS_LAST},
    {1, 20, 30, 21, 40, 50, 1, HK_CHANNELS_LAST},   {2, 16, 190, 34, 0, 33, 1, HK_CHANNELS_LAST},
    {2, 48, 777, 31, 30, 0, 1, HK_CHANNELS_LAST}};
enum { EVEN, SPIKE, FADING, KINDS };

typedef struct tensors {
  float *x, *f, *y, *bias;
  int64_t out;
} tensors;

static int64_t at(const shape *d, int64_t n, int64_t c, int64_t i, int64_t width) {
  return d->layout == HK_CHANNELS_LAST ? (n * width + i) * d->c + c : (n * d->c + c) * width + i;
}

static tensors tensors_make(const shape *d, int kind) {
  tensors t = {.out = d->w + d->lo + d->hi - (d->s - 1) * d->dilation};
  uint64_t seed = 3;
  t.x = malloc((size_t)(d->n * d->c * d->w) * 4);
  t.f = malloc((size_t)(d->c * d->s) * 4);
  t.y = malloc((size_t)(d->n * d->c * t.out) * 4);
  t.bias = malloc((size_t)d->c * 4);
  for (int64_t i = 0; i < d->n * d->c * d->w; i++) t.x[i] = (float)hk_test_integer(&seed, 1000) / 577.0f;
  for (int64_t r = 0; kind && r < d->n * d->c; r++)
    for (int64_t i = 0; i < d->w; i++) {
      const int64_t place = at(d, r / d->c, r % d->c, i, d->w);
      if (kind == FADING) t.x[place] *= exp2f((float)-i / 8.0f);
      else if (i == 5) t.x[place] *= 1e4f;
    }
  for (int64_t i = 0; i < d->c * d->s; i++) t.f[i] = (float)hk_test_integer(&seed, 1000) / 577.0f;
  for (int64_t i = 0; i < d->c; i++) t.bias[i] = (float)i;
  return t;
}

static void tensors_free(tensors *t) {
  free(t->x);
  free(t->f);
  free(t->y);
  free(t->bias);
}

static hk_status plan_make(hk_plan **plan, const shape *d, const tensors *t, const char *decision, uint32_t math,
                           int threads) {
  hk_conv_desc c = {.size = sizeof c, .rank = 1, .layout = d->layout, .n = d->n, .c = d->c, .k = d->c, .groups = d->c};
  c.in[0] = d->w, c.window[0] = d->s, c.stride[0] = 1, c.dilation[0] = d->dilation, c.pad_lo[0] = d->lo,
  c.pad_hi[0] = d->hi;
  hk_problem p;
  hk_epilogue e = {.size = sizeof e};
  const hk_options o = {.size = sizeof o, .threads = threads, .math = math, .decision = decision};
  const hk_weights w = {.size = sizeof w, .f = t->f, .bias = t->bias};
  hk_status s = hk_problem_conv(&p, &c);
  if (!s) s = hk_epilogue_parse(&e, "bias");
  return s ? s : hk_plan_create(plan, &p, &e, &o, &w);
}

/* The scale of a row's errors: the largest |x| times sum |f|, and the bias, whose sum is rounded once more. */
static double row_size(const shape *d, const tensors *t, int64_t n, int64_t c) {
  double most = 0, weights = 0;
  for (int64_t i = 0; i < d->w; i++) most = fmax(most, fabs((double)t->x[at(d, n, c, i, d->w)]));
  for (int64_t s = 0; s < d->s; s++) weights += fabs((double)t->f[c * d->s + s]);
  return most * weights + fabs((double)t->bias[c]);
}

/* The largest error as part of gk * eps * row_size; *miss: the norm's as part of 4 * eps * sqrt(gk). */
static double judge(const shape *d, const tensors *t, double *miss) {
  const double eps = 0x1p-24;
  double worst = 0, errors = 0, norm = 0;
  for (int64_t n = 0; n < d->n; n++)
    for (int64_t c = 0; c < d->c; c++) {
      const double size = row_size(d, t, n, c);
      for (int64_t q = 0; q < t->out; q++) {
        double sum = t->bias[c];
        for (int64_t s = 0; s < d->s; s++) {
          const int64_t i = q - d->lo + s * d->dilation;
          if (i < 0 || i >= d->w) continue;
          sum += (double)t->x[at(d, n, c, i, d->w)] * (double)t->f[c * d->s + s];
        }
        const double e = fabs((double)t->y[at(d, n, c, q, t->out)] - sum);
        if (size > 0 && !(e / ((double)d->s * eps * size) <= worst)) worst = e / ((double)d->s * eps * size);
        errors += e * e, norm += sum * sum;
      }
    }
  *miss = sqrt(errors / norm) / (4 * eps * sqrt((double)d->s));
  return worst;
}

static void run(const shape *d, tensors *t, int kind, const char *decision, int threads) {
  hk_plan *plan = NULL;
  double miss;
  CHECK_STATUS(HK_OK, "", plan_make(&plan, d, t, decision, HK_MATH_FAST_ALGORITHMS, threads));
  if (!plan) return;
  const size_t bytes = hk_plan_workspace(plan);
  void *space = aligned_alloc(64, (bytes + 63) / 64 * 64);
  memset(space, 0xff, (bytes + 63) / 64 * 64); /* NaN: nothing may be read before it is written */
  memset(t->y, 0x7f, (size_t)(d->n * d->c * t->out) * 4);
  const hk_args a = {.size = sizeof a, .x = t->x, .y = t->y, .workspace = space, .workspace_bytes = bytes};
  CHECK_STATUS(HK_OK, "", hk_plan_execute(plan, &a));
  const double factor = hk_plan_error_factor(plan), worst = judge(d, t, &miss);
  CHECK(factor == 1 && worst <= factor, "%s, kind %d: element error %g of gk eps max|x| sum|f|, stated %g", decision,
        kind, worst, factor);
  CHECK(kind != EVEN || miss <= 1, "%s: norm error %g of 4 eps sqrt(gk)", decision, miss);
  static double most;
  if (worst > most) {
    printf("%s, %lld taps, kind %d: %.3f of gk eps max|x| sum|f|, norm %.3f of 4 eps sqrt(gk)\n", decision,
           (long long)d->s, kind, worst, miss);
    most = worst;
  }
  free(space);
  hk_plan_destroy(plan);
}

static bool by_nine(const shape *d) {
  return d->layout == HK_CHANNELS_LAST && d->dilation == 1 && d->s >= 8 && d->s <= 128;
}

/* karatsuba adds and subtracts only: with small integers nothing is rounded. */
static void run_integers(const shape *d, tensors *t, const char *decision) {
  hk_plan *plan = NULL;
  uint64_t seed = 5;
  double miss;
  tensors whole = *t;
  whole.x = malloc((size_t)(d->n * d->c * d->w) * 4);
  whole.f = malloc((size_t)(d->c * d->s) * 4);
  for (int64_t i = 0; i < d->n * d->c * d->w; i++) whole.x[i] = (float)hk_test_integer(&seed, 20);
  for (int64_t i = 0; i < d->c * d->s; i++) whole.f[i] = (float)hk_test_integer(&seed, 20);
  CHECK_STATUS(HK_OK, "", plan_make(&plan, d, &whole, decision, HK_MATH_FAST_ALGORITHMS, 1));
  const hk_args a = {.size = sizeof a, .x = whole.x, .y = whole.y};
  if (plan) CHECK_STATUS(HK_OK, "", hk_plan_execute(plan, &a));
  const double worst = judge(d, &whole, &miss);
  CHECK(worst == 0, "%s: not exact on integers, %g", decision, worst);
  free(whole.x);
  free(whole.f);
  hk_plan_destroy(plan);
}

static void run_nine(const shape *d, tensors *t, int kind, const char *kernel) {
  char decision[128];
  for (int threads = 1; threads <= 2; threads++) {
    snprintf(decision, sizeof decision, "karatsuba kernel=%s parts=%d", kernel, 2 * threads - 1);
    run(d, t, kind, decision, threads);
  }
  if (kind != EVEN) return;
  run_integers(d, t, decision);
  hk_plan *plan = NULL;
  CHECK(plan_make(&plan, d, t, decision, HK_MATH_STRICT, 1) && strstr(hk_last_error(), "options.math"), "%s",
        hk_last_error());
}

static void run_fft(const shape *d, tensors *t, int kind, const char *kernel) {
  char decision[128];
  for (int points = 16; points <= 4096; points *= 2) {
    if (points <= d->s) continue;
    for (int threads = 1; threads <= 2; threads++) {
      snprintf(decision, sizeof decision, "fft kernel=%s points=%d slots=%d", kernel, points, threads);
      run(d, t, kind, decision, threads);
    }
  }
  hk_plan *plan = NULL;
  CHECK(plan_make(&plan, d, t, decision, HK_MATH_STRICT, 1) && strstr(hk_last_error(), "options.math"), "%s",
        hk_last_error());
}

int main(void) {
  for (size_t i = 0; i < KINDS * sizeof shapes / sizeof *shapes; i++) {
    const shape *d = &shapes[i / KINDS];
    const int kind = (int)(i % KINDS);
    tensors t = tensors_make(d, kind);
    for (int32_t k = 0; k < hk_kernel_count; k++) {
      if (!hk_kernel_runs(&hk_kernels[k], HK_ISA_AMX)) continue;
      if (hk_kernels[k].family == HK_FAMILY_KARATSUBA && by_nine(d)) run_nine(d, &t, kind, hk_kernels[k].name);
      if (hk_kernels[k].family == HK_FAMILY_FFT) run_fft(d, &t, kind, hk_kernels[k].name);
    }
    tensors_free(&t);
  }
  return hk_test_end();
}
