/* karatsuba: depthwise windows of some dozens of taps along one dimension, channels-last: four outputs by four taps
 * take nine products instead of sixteen (see cpu/tmpl/karatsuba.tmpl.h), at the price of sums before and after. Stride
 * 1, no dilation, any padding, f32, an epilogue that kernels fuse, weights at creation; allowed by
 * HK_MATH_FAST_ALGORITHMS only, because inputs are subtracted from their neighbours first: exact on integers as long as
 * the sums are, else under error_factor * gk * eps * sum |f| times the largest |x| of the stretch
 * (tests/c/cpu/fft_test.c): beside a very large value small ones lose digits, and a NaN spreads over four outputs and a
 * tap. A stretch of outputs at a time, its planes on the stack; no workspace. */
#include <string.h>

#include "cost/cost.h"
#include "plan/depthwise/depthwise.h"

#define LEAST_TAPS 8
#define MOST_TAPS 128
#define PLANES 9
#define PLANE_FLOATS 7168 /* of all planes of a stretch, in L1 with the weights of a block */
#define ERROR 1           /* tests/c/cpu/fft_test.c finds 0.05 at most */

enum { KNOB_PARTS };

typedef struct own {
  int64_t vw, parts, fours;
  int64_t stretch; /* outputs of one */
  int64_t entries; /* vectors of a plane */
  int64_t stretches, blocks, items;
  hk_dw_fuse fuse;
} own;

static bool supported(const hk_task *t, char *why) {
  const hk_geom *g = &t->geom;
  hk_dw_fuse fuse;
  const char *no = hk_dw_line_refuses(t, LEAST_TAPS, MOST_TAPS);
  if (!no && g->dil[2] != 1) no = "a dilation is not 1";
  if (!no && (!hk_dw_flat(&g->x, g->groups) || !hk_dw_flat(&g->y, g->groups)))
    no = "the channels of x and y must be adjacent";
  if (!no && !hk_dw_fuse_make(t, &fuse)) no = "the epilogue is not one that kernels fuse";
  if (!no && t->epi.e.residual && !hk_dw_flat(&t->epi.c, g->groups))
    no = "the channels of the residual must be adjacent";
  return !no || hk_refuse(why, no);
}

static bool layout(const hk_task *t, const hk_decision *d, own *p, char *why) {
  const hk_geom *g = &t->geom;
  const int64_t mr = d->kernel->mr;
  *p = (own){.vw = d->kernel->nr, .parts = d->knob[KNOB_PARTS], .fours = hk_ceil_div(g->taps, 4)};
  (void)why;
  const int64_t most =
      (PLANE_FLOATS / (PLANES * p->vw) - p->fours + 1) / mr; /* tiles; at least one with up to 128 taps */
  const int64_t tiles = hk_min64(most, hk_ceil_div(g->out[2], 4 * mr));
  p->stretch = 4 * mr * tiles;
  p->entries = mr * tiles + p->fours - 1;
  p->stretches = hk_ceil_div(g->out[2], p->stretch);
  p->blocks = hk_ceil_div(g->groups, p->vw);
  p->items = g->n * p->stretches * p->blocks;
  hk_dw_fuse_make(t, &p->fuse);
  return true;
}

/* Measured on Zen 4, 64 channels x 4096, 16 to 64 taps: 9.4 cycles a quad and four taps, and 35 a quad besides; with
 * AVX2 4.3 and 33. Memory is waited for, and with AVX2 pixels 4 KiB apart are (1024 channels x 1024: 890 us, 640 by
 * the count). */
static double predict(const hk_task *t, const hk_decision *d, const own *p) {
  const hk_geom *g = &t->geom;
  const bool few = d->kernel->isa == HK_ISA_AVX2; /* registers */
  const double product = 2.0 * (double)p->vw / hk_cost_flops(d->kernel->isa);
  const double quads = (double)hk_ceil_div(g->out[2], 4 * d->kernel->mr) * (double)d->kernel->mr;
  const double masked = g->groups % p->vw ? 1.0 + 3.0 / (double)p->blocks : 1.0;
  const double before = (few ? 26.0 : 18.0) * masked * (quads + (double)(p->stretches * (p->fours - 1))),
               after = (few ? 22.0 : 15.0) * quads;
  const double wait = g->bytes > 0.45 * (double)hk_cost_l3() ? (few ? 1.25 : 1.75) : 1.0;
  const double apart = few && g->x.at[2] * 4 % 4096 == 0 ? 1.35 : 1.0;
  const double cycles =
      (double)(g->n * p->blocks) * product * apart * (1.04 * PLANES * (double)p->fours * quads + before + after);
  const hk_work w = {.cycles = cycles, .moved = wait * hk_cost_move(g->bytes, g->bytes)};
  return hk_cost_seconds(&hk_cost_here()->karatsuba, &w, p->parts, t->threads);
}

static bool finish(const hk_task *t, hk_decision *d, char *why) {
  own p;
  if (!layout(t, d, &p, why)) return false;
  d->predicted_s = predict(t, d, &p);
  d->workspace_bytes = 0;
  return true;
}

static bool offer(const hk_task *t, hk_decision *d, char *why) {
  own p;
  if (!supported(t, why)) return false;
  d->knob[KNOB_PARTS] = 1;
  if (!layout(t, d, &p, why)) return false;
  d->knob[KNOB_PARTS] = hk_min64(p.items, t->threads > 1 ? 2 * t->threads : 1);
  return finish(t, d, why);
}

static bool check(const hk_task *t, hk_decision *d, char *why) { return supported(t, why) && finish(t, d, why); }

static hk_status pack(hk_plan *plan, const own *p) {
  const hk_geom *g = &plan->task.geom;
  float *to;
  const hk_status s = hk_plan_pack_room(plan, p->blocks * PLANES * p->fours * p->vw, sizeof *to, &p->fours, 1, &to);
  if (!to) return s;
  memset(to, 0, plan->packed->f_bytes);
  for (int64_t k = 0; k < g->groups; k++)
    for (int64_t i = 0; i < p->fours; i++) {
      double w[4];
      for (int64_t s = 0; s < 4; s++)
        w[s] =
            4 * i + s < g->taps ? (double)((const float *)plan->raw_f)[k * g->f.group + hk_dw_tap(g, 4 * i + s)] : 0.0;
      const double sum[PLANES] = {w[0],        w[0] + w[1], w[1],        w[0] + w[2], w[0] + w[1] + w[2] + w[3],
                                  w[1] + w[3], w[2],        w[2] + w[3], w[3]};
      for (int64_t plane = 0; plane < PLANES; plane++)
        to[((k / p->vw * PLANES + plane) * p->fours + i) * p->vw + k % p->vw] = (float)sum[plane];
    }
  return HK_OK;
}

static hk_status build(hk_plan *plan) {
  char why[HK_REASON];
  own *p = plan->own = hk_alloc_zero(sizeof *p);
  if (!p) return hk_fail(HK_NO_MEMORY, "no memory for a plan");
  if (!layout(&plan->task, &plan->decision, p, why)) return hk_fail(HK_UNSUPPORTED, "karatsuba: %s", why);
  return pack(plan, p);
}

static void destroy(hk_plan *plan) { hk_free(plan->own); }

/* One block of channels of one stretch. */
static void run_item(const hk_plan *plan, const hk_call *call, int64_t i, float *planes) {
  const hk_geom *g = &plan->task.geom;
  const own *p = plan->own;
  const hk_epilogue *e = &plan->task.epi.e;
  const hk_strides *cs = &plan->task.epi.c;
  const int64_t block = i % p->blocks, n = i / p->blocks / p->stretches, q = i / p->blocks % p->stretches * p->stretch;
  const int64_t channel = block * p->vw, left = q - g->lo[2];
  hk_karatsuba_args a = {.f = (const float *)plan->packed->f + block * PLANES * p->fours * p->vw,
                         .planes = planes,
                         .x_step = g->x.at[2],
                         .y_step = g->y.at[2],
                         .c_step = cs->at[2],
                         .fours = p->fours,
                         .entries = p->entries,
                         .outputs = hk_min64(p->stretch, g->out[2] - q),
                         .lanes = (int32_t)hk_min64(p->vw, g->groups - channel),
                         .scale_one = e->scale == 1,
                         .fuse = p->fuse};
  a.first = hk_max64(0, -left);
  a.last =
      hk_max64(a.first, hk_min64(a.outputs + g->taps - 1, g->in[2] - left)); /* columns that a stored output sees */
  a.x = (const float *)(const void *)call->x + n * g->x.outer + channel + left * g->x.at[2];
  a.y = (float *)(void *)call->y + n * g->y.outer + channel + q * g->y.at[2];
  if (e->scale) a.scale = (const float *)call->scale + (e->scale == 2 ? channel : 0);
  if (e->bias) a.bias = (const float *)call->bias + channel;
  if (e->residual) a.c = (const float *)(const void *)call->c + n * cs->outer + channel + q * cs->at[2];
  plan->decision.kernel->fn(&a);
}

static void body(void *context, int64_t part) {
  const hk_shared *h = context;
  const own *p = h->plan->own;
  _Alignas(HK_ALIGN) float planes[PLANE_FLOATS];
  int64_t i, last;
  hk_piece(p->items, part, p->parts, &i, &last);
  for (; i < last; i++) run_item(h->plan, h->call, i, planes);
}

static hk_status run(const hk_plan *plan, const hk_call *call) {
  const own *p = plan->own;
  hk_shared h = {plan, call};
  hk_plan_parallel(plan, p->parts, body, &h);
  return HK_OK;
}

const hk_algo hk_algo_karatsuba = {
    .name = "karatsuba",
    .summary = "depthwise windows of some dozens of taps: 9 products for 16 (HK_MATH_FAST_ALGORITHMS)",
    .fewer_products = true,
    .knobs = {HK_KNOB("parts", 1, HK_THREAD_PIECES)},
    .family = HK_FAMILY_KARATSUBA,
    .device = HK_CPU,
    .error_factor = ERROR,
    .offer = offer,
    .check = check,
    .build = build,
    .run = run,
    .destroy = destroy};
