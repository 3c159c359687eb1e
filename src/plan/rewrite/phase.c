/* phase: a dilated window of one dimension as windows without dilation. With dilation d the outputs q, q + d, q + 2d,
 * ... read only x there, so x and y are seen as d interleaved rows, and the taps of a row chain as if they were
 * neighbours. The inner task sees them as the rows of an image; nothing is moved. The first rows may be one longer than
 * the others, in x and in y: then there are up to three parts. Needs channels-last x and y, stride 1, padding before x
 * that is a multiple of d, and an epilogue that names no positions. */
#include "plan/rewrite/rewrite.h"

/* Rows [first, first + rows) of the interleaved ones, all as long as each other. */
typedef struct range {
  int64_t first, rows, in, out;
} range;

static int ranges_make(const hk_geom *g, range *to) {
  const int64_t d = g->dil[2], rows = hk_min64(d, g->out[2]);
  const int64_t cut[4] = {0, hk_min64(g->in[2] % d, g->out[2] % d), hk_max64(g->in[2] % d, g->out[2] % d), rows};
  int count = 0;
  for (int i = 0; i < 3; i++) {
    const int64_t first = hk_min64(cut[i], rows), next = hk_min64(cut[i + 1], rows);
    if (first == next) continue;
    to[count++] = (range){first, next - first, g->in[2] > first ? hk_ceil_div(g->in[2] - first, d) : 0,
                          hk_ceil_div(g->out[2] - first, d)};
  }
  return count;
}

static bool one_row(const hk_geom *g) {
  for (int d = 0; d < 2; d++)
    if (g->win[d] != 1 || g->in[d] != 1 || g->out[d] != 1 || g->lo[d]) return false;
  return true;
}

/* Channels of all groups next to each other. */
static bool channels_last(const hk_strides *s, int64_t groups, int64_t channels) {
  return (s->channel == 1 || channels == 1) && (s->group == channels || groups == 1);
}

/* Rows of fewer outputs have no neighbours to share taps with (8 channels, 64 outputs, 3 taps 512 apart: 0.88x of strip
 * without phases, Zen 4). */
#define LEAST_OUTPUTS 4

static bool takes(const hk_task *t, char *why) {
  const hk_geom *g = &t->geom;
  if (g->dil[2] < 2 || g->win[2] < 2) return hk_refuse(why, "the window has no dilation");
  if (g->stride[2] != 1 || g->in_dil[2] != 1) return hk_refuse(why, "stride and input dilation must be 1");
  if (!one_row(g)) return hk_refuse(why, "x and the window must have one dimension");
  if (g->gm == 0) return hk_refuse(why, "y is empty");
  if (g->out[2] < LEAST_OUTPUTS * g->dil[2]) return hk_refuse(why, "y must be at least 4 dilations long");
  if (g->lo[2] % g->dil[2]) return hk_refuse(why, "pad_lo must be a multiple of the dilation");
  if (g->x_type != HK_F32) return hk_refuse(why, "x must be f32");
  if (g->y_type != HK_F32 || !t->epi.simple || t->options.stateful)
    return hk_refuse(why, "y must be f32, the epilogue scale, bias, clamp and residual at most, the plan stateless");
  if (!channels_last(&g->x, g->groups, g->c)) return hk_refuse(why, "the channels of x must be adjacent");
  if (!channels_last(&g->y, g->groups, g->k)) return hk_refuse(why, "the channels of y must be adjacent");
  if (t->epi.e.residual && !channels_last(&t->epi.c, g->groups, g->k))
    return hk_refuse(why, "the channels of the residual must be adjacent");
  return true;
}

static int inner(const hk_task *t, int part, hk_task *to) {
  range r[HK_PARTS];
  const int count = ranges_make(&t->geom, r);
  hk_geom_set_phase(&to->geom, r[part].rows, r[part].in, r[part].out);
  to->epi.c.at[1] = to->epi.c.at[2];
  to->epi.c.at[2] *= t->geom.dil[2];
  return count;
}

/* Grouped rows of a phase begin and end more often than the sum says (2 groups of 4 channels, 100 frames, 5 taps 16
 * apart: 0.82 us for 0.74). */
static double seconds(const hk_task *t, double inner_s) { return t->geom.c > 1 ? 1.12 * inner_s : inner_s; }

static hk_status build(hk_plan *plan) {
  const hk_status s = hk_rewrite_alloc_pass(plan, HK_PARTS * sizeof(range));
  if (!s) ranges_make(&plan->task.geom, plan->pass);
  return s;
}

static hk_status run(const hk_plan *plan, const hk_call *call) {
  const hk_geom *g = &plan->task.geom;
  const range *r = plan->pass;
  hk_status s = HK_OK;
  for (int i = 0; i < HK_PARTS && plan->inner[i] && !s; i++) {
    hk_call c = *call;
    const int64_t first = r[i].first * (int64_t)sizeof(float);
    c.x += first * g->x.at[2];
    c.y += first * g->y.at[2];
    if (c.c) c.c += first * plan->task.epi.c.at[2];
    s = hk_rewrite_run_inner(plan, i, &c);
  }
  return s;
}

const hk_rewrite hk_rewrite_phase = {.name = "phase",
                                     .summary = "one dilated dimension as interleaved rows without dilation",
                                     .device = HK_CPU,
                                     .order = HK_ORDER_PHASE,
                                     .takes = takes,
                                     .inner = inner,
                                     .seconds = seconds,
                                     .build = build,
                                     .run = run};
