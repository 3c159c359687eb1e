/* Chains of taps and what depends on them; see dw.h. */
#include "plan/depthwise/depthwise.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct tap {
  int64_t offset;
  int32_t index, used;
} tap;

static int by_offset(const void *a, const void *b) {
  const tap *p = a, *q = b;
  return p->offset < q->offset ? -1 : p->offset > q->offset;
}

static tap *find(tap *taps, int64_t count, int64_t offset) {
  const tap key = {offset, 0, 0};
  return bsearch(&key, taps, (size_t)count, sizeof key, by_offset);
}

/* Sorted by offset, chains start as low as they can, so that weights of one block of taps stay together. */
static void link_taps(hk_tap_runs *c, tap *sorted, int64_t step) {
  const int64_t gap = step ? step : 1;
  int64_t placed = 0;
  for (int64_t i = 0; i < c->taps; i++) {
    if (sorted[i].used) continue;
    hk_dw_run *r = &c->runs[c->run_count++];
    *r = (hk_dw_run){.offset = (int32_t)sorted[i].offset, .first = 0, .last = INT16_MAX};
    for (tap *t = &sorted[i]; t && !t->used && r->taps < HK_RUN_TAPS; t = find(sorted, c->taps, t->offset + gap)) {
      t->used = 1;
      c->order[placed++] = t->index;
      r->taps++;
    }
    r->fan = !step && r->taps > 1;
  }
}

bool hk_tap_runs_make(hk_tap_runs *c, const int64_t *offset, int64_t taps, int64_t step) {
  *c = (hk_tap_runs){.taps = taps};
  tap *sorted = hk_alloc((size_t)taps * sizeof *sorted);
  c->runs = hk_alloc((size_t)taps * sizeof *c->runs);
  c->order = hk_alloc((size_t)taps * sizeof *c->order);
  c->place = hk_alloc((size_t)taps * sizeof *c->place);
  const bool ok = sorted && c->runs && c->order && c->place;
  if (ok) {
    for (int64_t i = 0; i < taps; i++) sorted[i] = (tap){offset[i], (int32_t)i, 0};
    qsort(sorted, (size_t)taps, sizeof *sorted, by_offset);
    link_taps(c, sorted, step);
    for (int64_t i = 0; i < taps; i++) c->place[c->order[i]] = (int32_t)i;
  } else {
    hk_tap_runs_free(c);
  }
  hk_free(sorted);
  return ok;
}

void hk_tap_runs_free(hk_tap_runs *c) {
  hk_free(c->runs);
  hk_free(c->order);
  hk_free(c->place);
  c->runs = NULL;
  c->order = c->place = NULL;
}

static size_t order_bytes(const hk_tap_runs *c) { return (size_t)hk_round_up(c->taps * 4, HK_ALIGN); }

const float *hk_tap_runs_weights(const hk_plan *plan, const hk_tap_runs *c) {
  return (const float *)(const void *)((const char *)plan->packed->f + order_bytes(c));
}

hk_status hk_tap_runs_pack(hk_plan *plan, const hk_tap_runs *c) {
  const hk_geom *g = &plan->task.geom;
  const int64_t channels = g->groups * g->k;
  float *to;
  const hk_status s =
      hk_plan_pack_room(plan, (int64_t)order_bytes(c) / 4 + channels * c->taps, sizeof *to, NULL, 0, &to);
  if (!s && plan->task.f_now && hk_plan_shares(plan) && memcmp(plan->packed->f, c->order, (size_t)c->taps * 4))
    return hk_fail(HK_UNSUPPORTED, "the packed weights have another order of taps");
  if (!to) return s;
  memcpy(to, c->order, (size_t)c->taps * 4);
  to += order_bytes(c) / 4;
  for (int64_t k = 0; k < channels; k++) {
    const float *from = (const float *)plan->raw_f + k / g->k * g->f.group + k % g->k * g->f.outer;
    for (int64_t i = 0; i < c->taps; i++) *to++ = from[hk_dw_tap(g, c->order[i])];
  }
  return HK_OK;
}

const char *hk_dw_line_refuses(const hk_task *t, int64_t least_taps, int64_t most_taps) {
  const hk_geom *g = &t->geom;
  if (!(t->options.math & HK_MATH_FAST_ALGORITHMS)) return "options.math must allow fast algorithms";
  if (g->x_type != HK_F32 || g->f_type != HK_F32 || g->acc_type != HK_F32) return "x and f must be f32";
  if (g->c != 1 || g->k != 1 || g->batch_grouped) return "c and k must be 1 per group";
  if (!t->f_now) return "the weights must be known at creation";
  if (g->gm == 0 || g->in[2] < 1) return "x or the result is empty";
  if (g->win[0] != 1 || g->win[1] != 1 || g->in[0] != 1 || g->in[1] != 1 || g->out[0] != 1 || g->out[1] != 1 ||
      g->lo[0] || g->lo[1])
    return "x and the window must have one dimension";
  if (g->stride[2] != 1 || g->in_dil[2] != 1) return "stride and input dilation must be 1";
  if (g->taps < least_taps || g->taps > most_taps) return "the window has too few or too many taps";
  if (t->epi.e.gate || t->options.stateful) return "epilogue.gate and options.stateful must be 0";
  return NULL;
}

bool hk_dw_fuse_make(const hk_task *task, hk_dw_fuse *fuse) {
  const hk_epilogue *e = &task->epi.e;
  *fuse = (hk_dw_fuse){.beta = e->beta, .lo = -INFINITY, .hi = INFINITY};
  if (task->geom.y_type != HK_F32 || (task->epi.any && !task->epi.simple)) return false;
  if (e->scale || e->bias) fuse->flags |= HK_DW_AFFINE;
  if (e->act != HK_ACT_NONE) {
    const bool plain = e->act == HK_ACT_HARDTANH && e->a == 0 && e->b == 0;
    fuse->flags |= HK_DW_CLAMP;
    fuse->lo = e->act == HK_ACT_RELU ? 0.0f : plain ? -1.0f : e->a;
    if (e->act != HK_ACT_RELU) fuse->hi = plain ? 1.0f : e->b;
  }
  if (e->residual == HK_RESIDUAL_BEFORE) fuse->flags |= HK_DW_BEFORE;
  if (e->residual == HK_RESIDUAL_AFTER) fuse->flags |= HK_DW_AFTER;
  return true;
}
