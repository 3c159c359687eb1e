/* phase: a dilated window of one dimension as windows without dilation. With dilation d the outputs q, q + d, q + 2d, ...
 * read only x there, so x and y are seen as d interleaved rows, and the taps of a row chain as if they were neighbours. The
 * inner algorithm runs on them as on rows of an image, nothing is moved. The first rows may be one longer than the others,
 * in x and in y: then they are up to three plans. Needs channels-last (dwc's), stride 1, padding before x that is a multiple
 * of d, an epilogue that kernels fuse; refuses what its inner algorithm refuses. */
#include <stdio.h>

#include "plan/depthwise/depthwise.h"

extern const hk_algo hk_algo_dwc;

#define RANGES 3

/* Rows [first, first + rows) of the interleaved ones, all as long as each other. */
typedef struct range {
  int64_t first, rows, in, out;
} range;

typedef struct own {
  int count;
  range range[RANGES];
  hk_plan *inner[RANGES];
} own;

static int ranges_make(const hk_geom *g, range *to) {
  const int64_t d = g->dil[2], rows = hk_min64(d, g->out[2]);
  const int64_t cut[4] = {0, hk_min64(g->in[2] % d, g->out[2] % d), hk_max64(g->in[2] % d, g->out[2] % d), rows};
  int count = 0;
  for (int i = 0; i < 3; i++) {
    const int64_t first = hk_min64(cut[i], rows), next = hk_min64(cut[i + 1], rows);
    if (first == next) continue;
    to[count++] = (range){first, next - first, g->in[2] > first ? hk_ceil_div(g->in[2] - first, d) : 0, hk_ceil_div(g->out[2] - first, d)};
  }
  return count;
}

static void interleave(hk_strides *s, int64_t d) {
  s->at[1] = s->at[2];
  s->at[2] *= d;
}

static hk_task inner_task(const hk_task *t, const range *r) {
  hk_task i = *t;
  hk_geom *g = &i.geom;
  const double share = (double)(r->rows * r->out) / (double)t->geom.out[2];
  interleave(&g->x, g->dil[2]);
  interleave(&g->y, g->dil[2]);
  interleave(&i.epi.c, g->dil[2]);
  g->in[1] = g->in_span[1] = g->out[1] = r->rows;
  g->in[2] = g->in_span[2] = r->in;
  g->out[2] = r->out;
  g->lo[2] /= g->dil[2];
  g->dil[2] = g->dil[1] = g->stride[1] = 1; /* those of a window and a result of one row meant nothing */
  g->pixels = r->rows * r->out;
  g->gm = g->n * g->pixels;
  g->flops *= share;
  g->bytes *= share;
  return i;
}

static bool applies(const hk_task *t, char *why) {
  const hk_geom *g = &t->geom;
  hk_dw_fuse fuse;
  const char *no = NULL;
  if (g->dil[2] < 2 || g->win[2] < 2) no = "there is no dilation";
  else if (g->stride[2] != 1 || g->in_dil[2] != 1) no = "the stride or the input's dilation is not 1";
  else if (g->win[0] != 1 || g->win[1] != 1 || g->in[0] != 1 || g->in[1] != 1 || g->out[0] != 1 || g->out[1] != 1 || g->lo[0] || g->lo[1])
    no = "is for one dimension";
  else if (g->gm == 0) no = "the result is empty";
  else if (g->lo[2] % g->dil[2]) no = "the padding is no multiple of the dilation";
  else if (!hk_dw_fuse_make(t, &fuse) || t->epi.e.gate || t->options.stateful) no = "the epilogue is not one that kernels fuse, or the plan is stateful";
  else if ((g->y.channel != 1 && g->k > 1) || (g->y.group != g->k && g->groups > 1)) no = "the channels of y are not adjacent";
  else if (t->epi.e.residual && ((t->epi.c.channel != 1 && g->k > 1) || (t->epi.c.group != g->k && g->groups > 1)))
    no = "the channels of the residual are not adjacent";
  if (no) snprintf(why, HK_REASON, "%s", no);
  return !no;
}

/* The inner algorithm's answer for every range, with the knobs of the first. */
static bool ask(const hk_task *t, hk_decision *d, bool free_knobs, char *why) {
  range r[RANGES];
  const int count = ranges_make(&t->geom, r);
  double seconds = 0;
  hk_decision in = *d;
  in.algo = d->algo->inner;
  for (int i = 0; i < count; i++) {
    const hk_task task = inner_task(t, &r[i]);
    if (!(i == 0 && free_knobs ? in.algo->offer(&task, &in, why) : hk_decision_check(&task, &in, why))) return false;
    seconds += in.predicted_s;
  }
  for (int i = 0; i < HK_KNOBS; i++) d->knob[i] = in.knob[i];
  /* grouped rows of a phase begin and end more often than the sum says (2 groups of 4 channels, 100 frames, 5 taps 16 apart: 0.82 us for 0.74) */
  d->predicted_s = t->geom.c > 1 ? 1.12 * seconds : seconds;
  d->workspace_bytes = 0;
  return true;
}

static bool offer(const hk_task *t, hk_decision *d, char *why) { return applies(t, why) && ask(t, d, true, why); }
static bool check(const hk_task *t, hk_decision *d, char *why) { return applies(t, why) && ask(t, d, false, why); }

static void destroy(hk_plan *plan) {
  own *o = plan->own;
  for (int i = 0; o && i < o->count; i++) hk_plan_destroy(o->inner[i]);
  hk_free(o);
}

static hk_status build(hk_plan *plan) {
  hk_decision d = plan->decision;
  d.algo = d.algo->inner;
  own *o = hk_alloc_zero(sizeof *o);
  if (!o) return hk_fail(HK_NO_MEMORY, "no memory for a plan");
  const int count = ranges_make(&plan->task.geom, o->range);
  const hk_task first = inner_task(&plan->task, &o->range[0]);
  hk_status s = hk_plan_build_inner(plan, &first, &d, plan->raw_f);
  if (!s) {
    o->inner[0] = plan->own;
    o->count = 1;
  }
  plan->own = o;
  for (int i = 1; i < count && !s; i++) {
    hk_task t = inner_task(&plan->task, &o->range[i]);
    t.geom.f.offset = 0;
    s = hk_plan_build(&o->inner[i], &t, &d, NULL, o->inner[0]);
    o->count += !s;
  }
  return s;
}

static hk_status run(const hk_plan *plan, const hk_call *call) {
  const hk_geom *g = &plan->task.geom;
  const own *o = plan->own;
  hk_status s = HK_OK;
  for (int i = 0; i < o->count && !s; i++) {
    hk_call c = *call;
    const int64_t first = o->range[i].first * (int64_t)sizeof(float);
    c.x += first * g->x.at[2];
    c.y += first * g->y.at[2];
    if (c.c) c.c += first * plan->task.epi.c.at[2];
    s = o->inner[i]->decision.algo->run(o->inner[i], &c);
  }
  return s;
}

const hk_algo hk_algo_phase_dwc = {.name = "phase_dwc", .inner = &hk_algo_dwc, .family = HK_FAMILY_DWC, .device = HK_CPU,
                                   .offer = offer, .check = check, .build = build, .run = run, .destroy = destroy};
