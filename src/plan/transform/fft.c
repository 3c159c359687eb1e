/* fft: long depthwise windows along one dimension by overlap-save: stretches of x are transformed, multiplied by the
 * transform of the weights, and transformed back, all lanes over channels; two stretches go together as the real and
 * the imaginary part. Cost grows with the logarithm of the window. Stride 1, any padding and dilation, channels-last or
 * channels-first (transposed on the way in and out), f32, weights at creation; allowed by HK_MATH_FAST_ALGORITHMS only,
 * because a sum's error is that of its whole stretch: under error_factor * gk * eps * sum |f| times the largest |x| of
 * the two stretches transformed together (tests/c/cpu/fft_test.c measures it). Needs workspace, one slot per thread. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "cost/cost.h"
#include "plan/transform/fft.h"

#define MOST_POINTS 32768
#define LEAST_TAPS 8

/* 0: channels-last, 1: channels-first, -1: neither */
static int order_of(const hk_strides *s, int64_t groups) { return hk_dw_flat(s, groups) ? 0 : s->at[2] == 1 ? 1 : -1; }

static bool supported(const hk_task *t, char *why) {
  const hk_geom *g = &t->geom;
  const char *no = hk_dw_line_refuses(t, LEAST_TAPS, MOST_POINTS / 2);
  if (!no && order_of(&g->x, g->groups) < 0) no = "neither channels nor columns of x are adjacent";
  if (!no && g->dil[2] != 1 && order_of(&g->x, g->groups) != 0) no = "dilation needs adjacent channels";
  return !no || hk_refuse(why, no);
}

static int store_of(const hk_task *t, hk_dw_fuse *fuse) {
  const hk_geom *g = &t->geom;
  const bool fused = hk_dw_fuse_make(t, fuse);
  if (fused && hk_dw_flat(&g->y, g->groups) && (!t->epi.e.residual || hk_dw_flat(&t->epi.c, g->groups)))
    return HK_FFT_TO_CHANNELS;
  if (fused && !fuse->flags && g->y.at[2] == 1) return HK_FFT_TO_PLANES;
  return HK_FFT_TO_ROWS;
}

bool hk_fft_layout(const hk_task *t, const hk_decision *d, hk_fft *p, char *why) {
  const hk_geom *g = &t->geom;
  *p = (hk_fft){.vw = d->kernel->nr, .points = d->knob[HK_FFT_POINTS], .slots = d->knob[HK_FFT_SLOTS]};
  const int64_t n = p->points;
  if (n < 16 || n > MOST_POINTS || (n & (n - 1)) ||
      n <= g->taps) { /* offer and vary double and halve it past its range */
    snprintf(why, HK_REASON, "points must be a power of two above the %lld taps", (long long)g->taps);
    return false;
  }
  p->store = store_of(t, &p->fuse);
  if (g->dil[2] != 1 && p->store != HK_FFT_TO_CHANNELS) {
    snprintf(why, HK_REASON, "dilation needs a channels-last y and an epilogue that fuses");
    return false;
  }
  p->planes = order_of(&g->x, g->groups) == 1;
  p->stretch = n - g->taps + 1;
  p->phases = hk_min64(g->dil[2], g->out[2]);
  p->pairs = hk_ceil_div(hk_ceil_div(g->out[2], p->phases), 2 * p->stretch);
  p->blocks = hk_ceil_div(g->groups, p->vw);
  p->items = p->blocks * g->n * p->phases * p->pairs;
  p->slot_floats = n * 2 * p->vw + (p->store == HK_FFT_TO_ROWS ? p->vw * p->stretch : 0);
  return true;
}

/* Steps of radix 4, there and back, and the copies beside them; measured on Zen 4. */
static double predict(const hk_task *t, const hk_decision *d, const hk_fft *p) {
  const double product = 2.0 * (double)p->vw / hk_cost_flops(d->kernel->isa), n = (double)p->points;
  const double spills = d->kernel->isa == HK_ISA_AVX2 ? 1.3 : 1.0; /* a step of radix 4 wants more than 16 registers */
  const double near = n * 2 * (double)p->vw * 8 > (double)hk_cost_l2() ? 1.4 : 1.0;
  const double copies = (p->planes ? 8.0 : 4.0) * n + (p->store == HK_FFT_TO_CHANNELS ? 4.0
                                                       : p->store == HK_FFT_TO_PLANES ? 8.0
                                                                                      : 20.0) *
                                                          2 * (double)p->stretch;
  const double cycles = (double)p->items * product * spills * (near * n * (0.25 * log2(n) * 23.0 + 8.0) + copies);
  /* and the weights of all blocks come by once a pair of stretches */
  const double weights = (double)p->items * n * 2 * (double)p->vw * 4;
  const hk_work w = {.cycles = cycles,
                     .moved = hk_cost_move(weights, (double)p->blocks * n * 2 * (double)p->vw * 4) +
                              hk_cost_move(t->geom.bytes, t->geom.bytes)};
  return hk_cost_seconds(&hk_cost_here()->fft, &w, hk_min64(p->slots, p->items), t->threads);
}

static bool finish(const hk_task *t, hk_decision *d, char *why) {
  hk_fft p;
  if (!hk_fft_layout(t, d, &p, why)) return false;
  d->predicted_s = predict(t, d, &p);
  d->workspace_bytes = (size_t)(p.slots * p.slot_floats) * sizeof(float);
  return true;
}

static bool offer(const hk_task *t, hk_decision *d, char *why) {
  if (!supported(t, why)) return false;
  hk_decision best = *d;
  bool any = false;
  for (int64_t n = 16; n <= MOST_POINTS; n *= 2) {
    hk_fft p;
    d->knob[HK_FFT_POINTS] = n;
    d->knob[HK_FFT_SLOTS] = 1;
    if (n <= t->geom.taps || !hk_fft_layout(t, d, &p, why)) continue;
    d->knob[HK_FFT_SLOTS] = hk_max64(1, hk_min64(t->threads, p.items));
    if (!finish(t, d, why)) continue;
    if (!any || d->predicted_s < best.predicted_s) best = *d;
    any = true;
  }
  *d = best;
  return any;
}

static bool check(const hk_task *t, hk_decision *d, char *why) { return supported(t, why) && finish(t, d, why); }

static bool vary(const hk_task *t, const hk_decision *base, int index, hk_decision *d) {
  char why[HK_REASON];
  *d = *base;
  if (index > 1) return false;
  d->knob[HK_FFT_POINTS] = index ? base->knob[HK_FFT_POINTS] / 2 : base->knob[HK_FFT_POINTS] * 2;
  return finish(t, d, why);
}

/* ---- build */

typedef struct complex_d {
  double re, im;
} complex_d;

static complex_d unit(int64_t i, int64_t n) {
  const double angle = -2.0 * acos(-1.0) * (double)i / (double)n;
  return (complex_d){cos(angle), sin(angle)};
}
static complex_d add(complex_d a, complex_d b) { return (complex_d){a.re + b.re, a.im + b.im}; }
static complex_d sub(complex_d a, complex_d b) { return (complex_d){a.re - b.re, a.im - b.im}; }
static complex_d mul(complex_d a, complex_d b) {
  return (complex_d){a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re};
}

static void make_twiddles(float *w, int64_t n) {
  for (; n > 8; n /= 4)
    for (int64_t j = 0; j < n / 4; j++)
      for (int64_t i = 1; i < 4; i++) {
        const complex_d u = unit(i * j, n);
        *w++ = (float)u.re;
        *w++ = (float)u.im;
      }
  for (int64_t j = 0; n == 8 && j < 4; j++) {
    const complex_d u = unit(j, 8);
    *w++ = (float)u.re;
    *w++ = (float)u.im;
  }
}

/* The kernel's steps in double: leaves the values in the kernel's order. */
static void transform(complex_d *z, const complex_d *root, int64_t n, int64_t step) {
  const int64_t ways = n == 8 ? 2 : 4, m = n / ways;
  for (int64_t j = 0; j < m; j++) {
    const complex_d a = z[j], b = z[j + m];
    if (ways == 2) {
      z[j] = add(a, b);
      z[j + m] = mul(sub(a, b), root[j * step]);
      continue;
    }
    const complex_d c = z[j + 2 * m], d = z[j + 3 * m], s = add(a, c), t = sub(a, c), u = add(b, d), v = sub(b, d);
    z[j] = add(s, u);
    z[j + m] = mul((complex_d){t.re + v.im, t.im - v.re}, root[j * step]);
    z[j + 2 * m] = mul(sub(s, u), root[2 * j * step]);
    z[j + 3 * m] = mul((complex_d){t.re - v.im, t.im + v.re}, root[3 * j * step]);
  }
  for (int64_t i = 0; m > 1 && i < ways; i++) transform(z + i * m, root, m, step * ways);
}

/* h = the conjugate transform of the weights over n, because the steps back do not divide */
static hk_status pack(hk_plan *plan, const hk_fft *p) {
  const hk_geom *g = &plan->task.geom;
  const int64_t n = p->points;
  float *h;
  const hk_status s = hk_plan_pack_room(plan, p->blocks * n * 2 * p->vw, sizeof *h, &p->points, 1, &h);
  if (!h) return s;
  memset(h, 0, plan->packed->f_bytes);
  complex_d *z = hk_alloc((size_t)n * sizeof *z), *root = hk_alloc((size_t)n * sizeof *root);
  if (z && root) {
    for (int64_t i = 0; i < n; i++) root[i] = unit(i, n);
    for (int64_t k = 0; k < g->groups; k++) {
      memset(z, 0, (size_t)n * sizeof *z);
      for (int64_t s = 0; s < g->taps; s++) z[s].re = ((const float *)plan->raw_f)[k * g->f.group + s * g->f.at[2]];
      transform(z, root, n, 1);
      float *to = h + k / p->vw * n * 2 * p->vw + k % p->vw;
      for (int64_t i = 0; i < n; i++, to += 2 * p->vw) {
        to[0] = (float)(z[i].re / (double)n);
        to[p->vw] = (float)(-z[i].im / (double)n);
      }
    }
  }
  const bool ok = z && root;
  hk_free(z);
  hk_free(root);
  return ok ? HK_OK : hk_fail(HK_NO_MEMORY, "no memory for %zu bytes of weights", plan->packed->f_bytes);
}

static void destroy(hk_plan *plan) {
  hk_fft *p = plan->own;
  if (p) hk_free(p->twiddle);
  hk_free(p);
}

static hk_status build(hk_plan *plan) {
  char why[HK_REASON];
  hk_fft *p = plan->own = hk_alloc_zero(sizeof *p);
  if (!p) return hk_fail(HK_NO_MEMORY, "no memory for a plan");
  if (!hk_fft_layout(&plan->task, &plan->decision, p, why)) return hk_fail(HK_UNSUPPORTED, "fft: %s", why);
  p->transpose = hk_kernel_best(HK_FAMILY_TRANSPOSE, plan->decision.kernel->isa)->fn;
  p->twiddle = hk_alloc((size_t)(2 * p->points + 8) * sizeof(float));
  if (!p->twiddle) return hk_fail(HK_NO_MEMORY, "no memory for a plan");
  make_twiddles(p->twiddle, p->points);
  return pack(plan, p);
}

const hk_algo hk_algo_fft = {.name = "fft",
                             .summary = "long depthwise windows by overlap-save FFT (HK_MATH_FAST_ALGORITHMS)",
                             .fewer_products = true,
                             .knobs = {HK_KNOB("points", 16, MOST_POINTS), HK_KNOB("slots", 1, HK_THREAD_PIECES)},
                             .family = HK_FAMILY_FFT,
                             .device = HK_CPU,
                             .error_factor = HK_FFT_ERROR,
                             .offer = offer,
                             .vary = vary,
                             .check = check,
                             .build = build,
                             .run = hk_fft_run,
                             .destroy = destroy};
