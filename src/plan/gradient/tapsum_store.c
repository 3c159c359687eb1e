/* The result of tapsum: the slices' partial sums are added in their order, then go to y, one output channel of every
 * group at a time. */
#include "plan/gradient/tapsum.h"

#include <string.h>

typedef struct store {
  const hk_plan *plan;
  const hk_call *call;
  const hk_tapsum *o;
  float *sums;
} store;

static void add_slices(const store *s) {
  const int64_t all = s->plan->task.geom.pixels * s->plan->task.geom.k * s->o->channels;
  for (int64_t i = 1; i < s->o->slices; i++) {
    const float *restrict part = s->sums + i * all;
    float *restrict to = s->sums;
    for (int64_t j = 0; j < all; j++) to[j] += part[j];
  }
}

static const float *sums_of(const store *s, int64_t pixel, int64_t j) {
  return s->sums + (pixel * s->plan->task.geom.k + j) * s->o->channels;
}

static int64_t offset_of(const hk_geom *g, const hk_strides *y, int64_t pixel) {
  return pixel / g->out[2] / g->out[1] * y->at[0] + pixel / g->out[2] % g->out[1] * y->at[1] +
         pixel % g->out[2] * y->at[2];
}

/* Output channel j of every group, tap by tap. */
static void store_plain(const store *s, int64_t j) {
  const hk_geom *g = &s->plan->task.geom;
  const hk_strides *c = &s->plan->task.epi.c;
  const bool sum = s->plan->task.epi.e.residual;
  const float beta = s->plan->task.epi.e.beta;
  for (int64_t i = 0; i < g->pixels; i++) {
    const float *from = sums_of(s, i, j);
    float *y = (float *)(void *)s->call->y + j * g->y.channel + offset_of(g, &g->y, i);
    const float *add = (const float *)(const void *)s->call->c;
    if (sum) add += j * c->channel + offset_of(g, c, i);
    for (int64_t group = 0; group < g->groups; group++)
      for (int64_t n = 0; n < g->n; n++) {
        const float v = *from++;
        y[group * g->y.group + n * g->y.outer] = sum ? v + beta * add[group * c->group + n * c->outer] : v;
      }
  }
}

enum { PART = 64 }; /* channels transposed at a time */

/* Taps that follow each other in y: [tap][c] becomes [c][tap] before it is written. */
static bool taps_adjacent(const store *s) {
  const hk_geom *g = &s->plan->task.geom;
  return g->pixels <= 64 && (g->out[2] == 1 || g->y.at[2] == 1) && (g->out[1] == 1 || g->y.at[1] == g->out[2]) &&
         (g->out[0] == 1 || g->y.at[0] == g->out[1] * g->out[2]) && !s->plan->task.epi.e.residual;
}

static void store_transposed(const store *s, int64_t j) {
  const hk_geom *g = &s->plan->task.geom;
  const hk_kernel *transpose = hk_kernel_best(HK_FAMILY_TRANSPOSE, s->plan->decision.kernel->isa);
  float part[PART * PART];
  for (int64_t c0 = 0; c0 < s->o->channels; c0 += PART) {
    const int64_t count = hk_min64(PART, s->o->channels - c0);
    transpose->fn(
        &(hk_transpose_args){sums_of(s, 0, j) + c0, part, g->k * s->o->channels, g->pixels, g->pixels, count});
    for (int64_t c = 0; c < count; c++)
      memcpy((float *)(void *)s->call->y + (c0 + c) / g->n * g->y.group + (c0 + c) % g->n * g->y.outer +
                 j * g->y.channel,
             part + c * g->pixels, (size_t)g->pixels * sizeof *part);
  }
}

static void store_rows(const store *s) {
  const hk_geom *g = &s->plan->task.geom;
  for (int64_t i = 0; i < g->pixels * s->o->channels; i++) {
    const int64_t pixel = i / s->o->channels, c = i % s->o->channels;
    const int64_t p[3] = {pixel / g->out[2] / g->out[1], pixel / g->out[2] % g->out[1], pixel % g->out[2]};
    float row[PART];
    for (int64_t k = 0; k < g->k; k += PART) {
      const int64_t count = hk_min64(PART, g->k - k);
      for (int64_t j = 0; j < count; j++) row[j] = sums_of(s, pixel, k + j)[c];
      hk_at at = {.n = c % g->n, .k = c / g->n * g->k + k, .along_k = 1};
      for (int d = 0; d < g->rank; d++) at.p[d] = p[d + 3 - g->rank];
      hk_plan_store_row(s->plan, s->call, &at, count, row);
    }
  }
}

void hk_tapsum_store(const hk_plan *plan, const hk_call *call, float *sums) {
  const store s = {plan, call, plan->own, sums};
  add_slices(&s);
  if (!hk_outer_store_is_plain(&plan->task)) {
    store_rows(&s);
    return;
  }
  for (int64_t j = 0; j < plan->task.geom.k; j++) {
    if (taps_adjacent(&s)) store_transposed(&s, j);
    else store_plain(&s, j);
  }
}
