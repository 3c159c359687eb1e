/* Gradients as problems of the same algebra.
 *
 * Forward: y[p] = sum_s x[(p*st + s*rd - lo)/ld] * f[s].
 * Input:   dx[i] = sum over p, s with p*st + s*rd - lo = i*ld of dy[p]*f[s]: dy is dilated by st, the filter reversed,
 *          the stride is ld, lo' = (S-1)*rd - lo, and hi' is what makes the output exactly `in` long.
 * Filter:  df[s] = sum_p dy[p] * x[(p*st + s*rd - lo)/ld]: dy is the filter, dilated by st, the stride is rd, batch and
 *          channels of x change places; feature groups become batch groups and the other way round.
 * Groups are views: no data moves. */
#include <string.h>

#include "core/core.h"

hk_type hk_grad_type(const hk_problem *p) { return p->y_type == HK_S32 ? p->x_type : p->y_type; }

hk_status hk_grad_check(const hk_problem *p, hk_geom *g) {
  const hk_status s = hk_geom_make(g, p, false);
  if (s) return s;
  if (hk_type_is_int8(p->x_type) || hk_type_is_int8(p->y_type))
    return hk_fail(HK_INVALID, "gradients need float types, not x_type = %s, y_type = %s", hk_type_name(p->x_type),
                   hk_type_name(p->y_type));
  return HK_OK;
}

/* *r = the sum of the terms; false, with a sentence, where it does not fit 63 bits. */
static bool pad_sum(int64_t *r, const int64_t *terms, int count, int dimension) {
  *r = 0;
  for (int i = 0; i < count; i++)
    if (!hk_add_checked(*r, terms[i], r))
      return hk_fail(HK_INVALID, "the padding of the gradient overflows 63 bits in dimension %d", dimension), false;
  return true;
}

static void start(hk_problem *q, const hk_problem *p) {
  memset(q, 0, sizeof *q);
  q->size = sizeof *q;
  q->rank = p->rank;
  q->feature_groups = q->batch_groups = 1;
}

hk_status hk_problem_grad_input(const hk_problem *p, hk_problem *q) {
  hk_geom g;
  hk_problem room;
  if (!(p = hk_take(p, &room, sizeof room, "problem"))) return HK_INVALID;
  const hk_status s = hk_grad_check(p, &g);
  if (s) return s;
  if (!q) return hk_fail(HK_INVALID, "grad is NULL");
  hk_problem r;
  start(&r, p);
  r.x_type = hk_grad_type(p), r.f_type = p->f_type, r.y_type = p->x_type;
  r.n = g.n;
  r.c = p->k;
  r.k = g.c * g.groups; /* batch groups of x are output channel groups here */
  r.feature_groups = g.groups;
  for (int i = 0; i < p->rank; i++) {
    const int d = i + 3 - p->rank;
    const int64_t reach = g.dil[d] * (g.win[d] - 1);
    r.in[i] = g.out[d], r.window[i] = g.win[d];
    r.stride[i] = p->in_dilation[i], r.dilation[i] = p->dilation[i], r.in_dilation[i] = p->stride[i];
    r.reverse[i] = !p->reverse[i];
    const int64_t span = g.out[d] ? (g.out[d] - 1) * g.stride[d] + 1 : 0;
    /* in_dilation*(in - 1) + 1 also where x is empty */
    const int64_t in = g.in[d] ? g.in_span[d] : 1 - p->in_dilation[i];
    if (!pad_sum(&r.pad_lo[i], (const int64_t[]){reach, -g.lo[d]}, 2, i) ||
        !pad_sum(&r.pad_hi[i], (const int64_t[]){in, -span, g.lo[d]}, 3, i))
      return HK_INVALID;
  }
  r.x = p->y;
  r.y = p->x;
  r.f = p->f;
  r.f.outer = p->f.channel, r.f.channel = p->f.outer;
  *q = r;
  return hk_problem_check(q);
}

hk_status hk_problem_grad_filter(const hk_problem *p, hk_problem *q) {
  hk_geom g;
  hk_problem room;
  if (!(p = hk_take(p, &room, sizeof room, "problem"))) return HK_INVALID;
  const hk_status s = hk_grad_check(p, &g);
  if (s) return s;
  if (!q) return hk_fail(HK_INVALID, "grad is NULL");
  if (!g.pixels && g.gk) {
    /* an empty dy has no window to slide: the gradient is zero, and the caller can write zeros */
    return hk_fail(HK_INVALID, "the forward problem has an empty output: its filter gradient is zero everywhere");
  }
  hk_problem r;
  start(&r, p);
  r.x_type = p->x_type, r.f_type = hk_grad_type(p), r.y_type = p->f_type;
  r.k = p->k;
  r.n = g.batch_grouped ? g.c : p->c;
  r.c = p->n;
  r.feature_groups = g.batch_grouped ? g.groups : 1;
  r.batch_groups = g.batch_grouped ? 1 : g.groups;
  for (int i = 0; i < p->rank; i++) {
    const int d = i + 3 - p->rank;
    r.in[i] = p->in[i], r.window[i] = g.out[d];
    r.stride[i] = p->dilation[i], r.dilation[i] = p->stride[i], r.in_dilation[i] = p->in_dilation[i];
    r.pad_lo[i] = g.lo[d];
    const int64_t reach = (g.win[d] - 1) * g.dil[d], last = (g.out[d] - 1) * g.stride[d] + 1;
    if (!pad_sum(&r.pad_hi[i], (const int64_t[]){last, -g.in_span[d], reach, -g.lo[d]}, 4, i)) return HK_INVALID;
  }
  r.x = p->x;
  r.x.outer = p->x.channel, r.x.channel = p->x.outer;
  r.f = p->y;
  r.f.outer = p->y.channel, r.f.channel = p->y.outer;
  r.y = p->f;
  r.y.outer = p->f.channel, r.y.channel = p->f.outer;
  for (int i = 0; i < p->rank; i++)
    if (p->reverse[i]) { /* df is written backwards */
      r.y.offset += (p->window[i] - 1) * p->f.at[i];
      r.y.at[i] = -p->f.at[i];
    }
  *q = r;
  return hk_problem_check(q);
}
