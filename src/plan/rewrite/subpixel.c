/* subpixel (GPU): input dilation with few output channels as one convolution without. The phases of y become output
 * channels of one window that covers the taps of all, with zeros where a phase has none, so that x is read once for all
 * phases; wgmma stores the channels of a phase where they belong (hk_geom.fold). A NaN may come from a zero times an
 * Inf of x: those outputs are computed again. The filter is made at creation. */
#include <stdio.h>
#include <string.h>

#include "plan/gpu/gpu.h"
#include "plan/rewrite/polyphase.h"

#define REFUSE(...) return snprintf(why, HK_REASON, __VA_ARGS__), false

enum { MOST_CHANNELS = 64 }; /* a tile of wgmma: with more, tiles are full without */

static void merged(const hk_geom *g, hk_polyphase to[3]) {
  for (int d = 0; d < 3; d++) to[d] = hk_geom_merged(g, d);
}

static bool takes_epilogue(const hk_task *t, char *why) {
  const hk_epilogue *e = &t->epi.e;
  if (e->scale == 2 || e->bias || e->residual || e->gate || e->act == HK_ACT_PRELU || e->act == HK_ACT_USER)
    return hk_refuse(why, "the epilogue must be one scale and an activation at most");
  if (e->user2 || e->store || e->cuda_user2 || e->cuda_store)
    return hk_refuse(why, "user functions are told positions of y, and its phases have others");
  if (!hk_cu_recompute_takes(&t->geom, &t->epi, t->options.unaligned))
    return hk_refuse(why, "y must be dense, f32 or 16-bit, and aligned to 16 bytes");
  return true;
}

static bool takes(const hk_task *t, char *why) {
  const hk_geom *g = &t->geom;
  hk_polyphase m[3];
  if (g->in_dil[0] == 1 && g->in_dil[1] == 1 && g->in_dil[2] == 1) return hk_refuse(why, "x has no input dilation");
  if (g->gm == 0 || g->gk == 0 || g->k == 0 || g->in[0] * g->in[1] * g->in[2] == 0)
    return hk_refuse(why, "x, f or y is empty");
  if (!hk_cu_is_flat(g, 0) || g->groups != 1) return hk_refuse(why, "needs one or two dimensions and one group");
  if (!t->f_now) return hk_refuse(why, "f must be known at creation");
  if (t->options.stateful) return hk_refuse(why, "state goes before subpixel");
  if (!takes_epilogue(t, why)) return false;
  for (int d = 0; d < 3; d++)
    if (g->in_dil[d] > MOST_CHANNELS) return hk_refuse(why, "in_dilation must be at most 64");
  merged(g, m);
  if (m[1].every * m[2].every * g->k > MOST_CHANNELS) REFUSE("the phases have more than %d channels", MOST_CHANNELS);
  for (int d = 0; d < 3; d++) {
    if (m[d].dil > 1 && m[d].win > 1) return hk_refuse(why, "the windows of phases must not be dilated");
    if (!m[d].win || g->out[d] % m[d].every)
      REFUSE("out = %lld must be a multiple of the %lld phases, which meet taps", (long long)g->out[d],
             (long long)m[d].every);
  }
  if (g->y.channel != 1 || (m[2].every > 1 && g->y.at[2] != g->k))
    return hk_refuse(why, "the channels and the pixels of a row of y must be adjacent");
  return true;
}

static int inner(const hk_task *t, int part, hk_task *to) {
  hk_polyphase m[3];
  (void)part;
  merged(&t->geom, m);
  hk_geom_set_subpixel(&to->geom, m);
  return 1;
}

/* The outer tap of dimension d that phase `phase` has at place s of the merged window, or -1. */
static int64_t tap_of(const hk_geom *g, const hk_polyphase *m, int d, int64_t phase, int64_t s) {
  const hk_polyphase p = hk_geom_phase(g, d, phase);
  const int64_t j = s - m->lo + p.lo;
  return j < 0 || j >= p.win ? -1 : p.tap + j * p.step;
}

/* Makes the dense filter of one output channel, [window][c], from the task's. */
static void make_channel(const hk_task *t, const hk_polyphase m[3], int64_t channel, const char *from, char *to) {
  const hk_geom *g = &t->geom;
  const int64_t bytes = (int64_t)hk_type_bytes(g->f_type), k = channel % g->k, p2 = channel / g->k % m[2].every,
                p1 = channel / g->k / m[2].every;
  for (int64_t i = 0; i < m[1].win * m[2].win; i++, to += g->c * bytes) {
    const int64_t r = tap_of(g, &m[1], 1, p1, i / m[2].win), s = tap_of(g, &m[2], 2, p2, i % m[2].win);
    if (r < 0 || s < 0) continue;
    const char *tap = from + (k * g->f.outer + r * g->f.at[1] + s * g->f.at[2]) * bytes;
    for (int64_t c = 0; c < g->c; c++) memcpy(to + c * bytes, tap + c * g->f.channel * bytes, (size_t)bytes);
  }
}

int64_t hk_subpixel_elements(const hk_task *t) {
  const hk_geom *g = &t->geom;
  hk_polyphase m[3];
  merged(g, m);
  return g->c * m[1].win * m[2].win * m[1].every * m[2].every * g->k;
}

void hk_subpixel_filter(const hk_task *t, const char *f, char *to) {
  const hk_geom *g = &t->geom;
  hk_polyphase m[3];
  merged(g, m);
  const int64_t each = g->c * m[1].win * m[2].win * (int64_t)hk_type_bytes(g->f_type);
  for (int64_t i = 0; i < m[1].every * m[2].every * g->k; i++) make_channel(t, m, i, f, to + i * each);
}

/* The caller's weights may lie on the device. */
static hk_status filter(const hk_plan *plan, const void **f, void **made) {
  const hk_geom *g = &plan->task.geom;
  const int64_t bytes = (int64_t)hk_type_bytes(g->f_type);
  const hk_extent e = hk_extent_of(&g->f, 1, g->k, g->c, g->win);
  const int64_t below = (e.below + g->f.offset) * bytes; /* bytes before f[0] */
  char *host = hk_alloc((size_t)(e.elements * bytes));
  char *to = *made = hk_alloc_zero((size_t)(hk_subpixel_elements(&plan->task) * bytes));
  hk_status s = host && to ? HK_OK : hk_fail(HK_NO_MEMORY, "no memory for the filters of all phases");
  if (!s) s = hk_cu_copy(host, (const char *)*f - below, (size_t)(e.elements * bytes));
  if (!s) hk_subpixel_filter(&plan->task, host + below, to);
  hk_free(host);
  *f = to;
  return s;
}

static hk_status build(hk_plan *plan) {
  const hk_geom *g = &plan->task.geom;
  hk_cu_weights *w = plan->packed->f;
  hk_status s = hk_rewrite_alloc_pass(plan, sizeof(hk_cu_direct_state));
  if (!s) s = hk_cu_recompute_build(plan->pass, g, &plan->task.epi);
  if (!s && plan->raw_f && !hk_plan_shares(plan)) s = hk_cu_filters_make(&w->raw, g, plan->raw_f, &w->raw_shift);
  return s;
}

static hk_status run(const hk_plan *plan, const hk_call *call) {
  const hk_cu_weights *w = plan->packed->f;
  const hk_plan *part = plan->inner[0];
  if (hk_cu_misaligned(call->y)) return hk_cu_unaligned("y", call->y); /* hk_recompute_nan reads 16 bytes at a time */
  const hk_status s = hk_rewrite_run_inner(plan, 0, call);
  if (s) return s;
  hk_cu_call c = hk_plan_cuda_call(part, call);
  c.f = (const char *)w->raw.data + w->raw_shift * (int64_t)hk_type_bytes(plan->task.geom.f_type);
  return hk_cu_direct_run(plan->pass, &c, w->slopes.data, NULL);
}

static double seconds(const hk_task *t, double inner_s) {
  return inner_s + 3e-6 + (double)(t->geom.gm * t->geom.k) * (double)hk_type_bytes(t->geom.y_type) / 3e12;
}

const hk_rewrite hk_rewrite_subpixel = {.name = "subpixel",
                                        .summary = "input dilation with few output channels: phases of y as channels",
                                        .device = HK_CUDA,
                                        .order = HK_ORDER_PHASE,
                                        .takes = takes,
                                        .inner = inner,
                                        .seconds = seconds,
                                        .filter = filter,
                                        .build = build,
                                        .run = run};
