/* Sizes and addresses of a case, written from the specification over hk_problem and not shared with the library, so
 * that a mistake in its geometry cannot hide behind the same mistake here. */
#include <string.h>

#include "check/check.h"

static int64_t ones(int64_t v) { return v > 1 ? v : 1; }

static void axes_make(check_axes *a, const hk_strides *st, int rank, int64_t group, int64_t outer, int64_t channel,
                      const int64_t at[3]) {
  int64_t size[6] = {group, outer, channel, at[0], at[1], at[2]}, low = st->offset, high = st->offset;
  int64_t stride[6] = {st->group, st->outer, st->channel, 0, 0, 0};
  for (int d = 0; d < rank; d++) stride[3 + 3 - rank + d] = st->at[d];
  bool empty = false;
  for (int i = 0; i < 6; i++) {
    empty |= size[i] == 0;
    if (size[i] < 2) continue;
    if (stride[i] < 0) low += (size[i] - 1) * stride[i];
    else high += (size[i] - 1) * stride[i];
  }
  memcpy(a->size, size, sizeof size);
  memcpy(a->stride, stride, sizeof stride);
  a->offset = st->offset;
  a->elements = empty ? 0 : high - low + 1;
  a->below = empty ? 0 : -low;
}

/* W' = W ? lhs_d*(W-1)+1 : 0; Q = 0 if W'+lo+hi < rhs_d*(S-1)+1 or W'+lo+hi = 0, else floor(..)/stride + 1. */
static void dimension_make(check_shape *s, const hk_problem *p, int i, int d) {
  s->in[d] = p->in[i];
  s->window[d] = p->window[i];
  s->stride[d] = p->stride[i];
  s->lo[d] = p->pad_lo[i];
  s->dilation[d] = p->dilation[i];
  s->in_dilation[d] = p->in_dilation[i];
  s->reverse[d] = p->reverse[i] != 0;
  s->span[d] = p->in[i] ? p->in_dilation[i] * (p->in[i] - 1) + 1 : 0;
  int64_t padded = s->span[d] + p->pad_lo[i] + p->pad_hi[i], reach = p->dilation[i] * (p->window[i] - 1) + 1;
  s->out[d] = padded < reach || padded == 0 ? 0 : (padded - reach) / p->stride[i] + 1;
}

void check_shape_make(check_shape *s, const check_case *t) {
  const hk_problem *p = &t->p;
  memset(s, 0, sizeof *s);
  s->batch_grouped = p->batch_groups > 1;
  s->groups = ones(p->feature_groups) * ones(p->batch_groups);
  s->n = p->n / ones(p->batch_groups);
  s->c = p->c / ones(p->feature_groups);
  s->k = p->k / s->groups;
  s->channels = t->e.gate ? p->k / 2 : p->k;
  for (int d = 0; d < 3; d++)
    s->in[d] = s->span[d] = s->window[d] = s->out[d] = s->stride[d] = s->dilation[d] = s->in_dilation[d] = 1;
  for (int i = 0; i < p->rank; i++) dimension_make(s, p, i, i + 3 - p->rank);
  s->gk = s->c * s->window[0] * s->window[1] * s->window[2];
  s->pixels = s->out[0] * s->out[1] * s->out[2];
  s->outputs = s->n * s->channels * s->pixels;
  s->sums = s->n * p->k * s->pixels;
  s->past = s->dilation[2] * (s->window[2] - 1);
  int64_t y_groups = t->e.gate ? 1 : s->groups, y_k = t->e.gate ? s->channels : s->k;
  axes_make(&s->x, &p->x, p->rank, s->groups, s->n, s->c, s->in);
  axes_make(&s->f, &p->f, p->rank, s->groups, s->k, s->c, s->window);
  axes_make(&s->y, &p->y, p->rank, y_groups, s->n, y_k, s->out);
  axes_make(&s->residual, t->e.c_strided ? &t->e.c : &p->y, p->rank, y_groups, s->n, y_k, s->out);
}

int64_t check_offset(const check_axes *a, int64_t group, int64_t outer, int64_t channel, const int64_t at[3]) {
  return a->offset + a->stride[0] * group + a->stride[1] * outer + a->stride[2] * channel + a->stride[3] * at[0] +
         a->stride[4] * at[1] + a->stride[5] * at[2];
}

int64_t check_y_offset(const check_shape *s, const check_axes *a, int64_t n, int64_t channel, const int64_t at[3]) {
  (void)s;
  int64_t k = ones(a->size[2]);
  return check_offset(a, channel / k, n, channel % k, at);
}

void check_output_at(const check_shape *s, int64_t index, int64_t *n, int64_t *channel, int64_t p[3]) {
  for (int d = 2; d >= 0; d--) {
    p[d] = index % s->out[d];
    index /= s->out[d];
  }
  *channel = index % s->channels;
  *n = index / s->channels;
}

void check_shape_size(const check_case *t, double *elements, double *products) {
  check_shape s;
  check_shape_make(&s, t);
  const double pixels = (double)s.out[0] * (double)s.out[1] * (double)s.out[2];
  const double sums = (double)s.n * (double)t->p.k * pixels;
  const double x = (double)s.groups * (double)s.n * (double)s.c * (double)s.in[0] * (double)s.in[1] * (double)s.in[2];
  *elements = x + sums + (double)t->p.k * (double)s.gk;
  *products = sums * (double)s.gk;
}
