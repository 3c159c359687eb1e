/* The result of outer: the slices' partial sums are added in their order, then go to y. Rows that are adjacent in y are
 * copied, others transposed by tiles; epilogues other than a residual take the plan's rows of output channels. */
#include <string.h>

#include "plan/gradient/outer.h"

enum { BLOCK = 64, ROOM = 2048 }; /* output channels per job; floats on the stack */

typedef struct store {
  const hk_plan *plan;
  const hk_call *call;
  const hk_outer *o;
  float *sums;
} store;

#define PIECE 16384 /* floats that a thread adds at a time */

static void add_slices(void *context, int64_t index) {
  const store *s = context;
  const int64_t all = s->plan->task.geom.groups * s->o->taps * s->o->rows * s->o->columns;
  const int64_t from = index * PIECE, count = hk_min64(PIECE, all - from);
  float *restrict to = s->sums + from;
  for (int64_t i = 1; i < s->o->slices; i++) {
    const float *restrict part = s->sums + i * all + from;
    for (int64_t j = 0; j < count; j++) to[j] += part[j];
  }
}

bool hk_outer_store_is_plain(const hk_task *t) {
  const hk_epilogue *e = &t->epi.e;
  return t->geom.y_type == HK_F32 && (!t->epi.any || (t->epi.simple && !e->scale && !e->bias && !e->act));
}

/* A part that is being stored. */
typedef struct part {
  const hk_plan *plan;
  const hk_call *call;
  const hk_outer_sums *s;
} part;

/* Where the part's sums of position p of y begin. */
static const float *sum_at(const part *a, const int64_t p[3]) {
  const hk_outer *o = a->plan->own;
  const hk_geom *g = &a->plan->task.geom;
  if (o->merged) return a->s->from + (p[0] * g->out[1] + p[1]) * a->s->tap_step + p[2] * g->n * a->s->n_step;
  return a->s->from + ((p[0] * g->out[1] + p[1]) * g->out[2] + p[2]) * a->s->tap_step;
}

/* A matrix of n x k sums and where it goes in y. */
typedef struct patch {
  const float *from, *c;
  float *y;
  int64_t n, k;
  int64_t from_n, from_k, y_n, y_k, c_n, c_k;
} patch;

static patch transposed(const patch *p) {
  return (patch){p->from, p->c, p->y, p->k, p->n, p->from_k, p->from_n, p->y_k, p->y_n, p->c_k, p->c_n};
}

/* to = v + beta*c; to may be c. */
static void add_row(float *to, const float *v, const float *c, float beta, int64_t count) {
#pragma GCC ivdep
  for (int64_t i = 0; i < count; i++) to[i] = v[i] + beta * c[i];
}

static void add_residual(const part *a, const patch *p) {
  const float beta = a->plan->task.epi.e.beta;
  if (p->from_n == 1 && p->y_n == 1 && p->c_n == 1) {
    for (int64_t k = 0; k < p->k; k++)
      add_row(p->y + k * p->y_k, p->from + k * p->from_k, p->c + k * p->c_k, beta, p->n);
    return;
  }
  for (int64_t k = 0; k < p->k; k++)
    for (int64_t n = 0; n < p->n; n++)
      p->y[k * p->y_k + n * p->y_n] = p->from[k * p->from_k + n * p->from_n] + beta * p->c[k * p->c_k + n * p->c_n];
}

static void write_patch(const part *a, const patch *given) {
  if (given->c) {
    add_residual(a, given);
    return;
  }
  const patch flipped = transposed(given), *p = given->y_n == 1 || given->y_k != 1 ? given : &flipped;
  if (p->y_n == 1 && p->from_n == 1) {
    for (int64_t k = 0; k < p->k; k++) memcpy(p->y + k * p->y_k, p->from + k * p->from_k, (size_t)p->n * sizeof *p->y);
  } else if (p->y_n == 1 && p->from_k == 1) {
    hk_kernel_best(HK_FAMILY_TRANSPOSE, a->plan->decision.kernel->isa)
        ->fn(&(hk_transpose_args){p->from, p->y, p->from_n, p->y_k, p->n, p->k});
  } else {
    for (int64_t k = 0; k < p->k; k++)
      for (int64_t n = 0; n < p->n; n++) p->y[k * p->y_k + n * p->y_n] = p->from[k * p->from_k + n * p->from_n];
  }
}

static bool follow(const hk_geom *g, const hk_strides *y) {
  return (g->out[2] == 1 || y->at[2] == 1) && (g->out[1] == 1 || y->at[1] == g->out[2]) &&
         (g->out[0] == 1 || y->at[0] == g->out[1] * g->out[2]);
}

/* Taps that follow each other in y, and in the residual, k by k: [tap][n] becomes [n][tap]. */
static bool taps_adjacent(const part *a) {
  const hk_outer *o = a->plan->own;
  const hk_geom *g = &a->plan->task.geom;
  const bool sum = a->plan->task.epi.e.residual;
  return !o->along_k && !o->merged && g->pixels > 1 && g->pixels <= ROOM && follow(g, &g->y) &&
         (!sum || follow(g, &a->plan->task.epi.c));
}

static void store_taps(const part *a, int64_t k, float *y) {
  const hk_geom *g = &a->plan->task.geom;
  const hk_outer_sums *s = a->s;
  const hk_strides *c = &a->plan->task.epi.c;
  const hk_kernel *transpose = hk_kernel_best(HK_FAMILY_TRANSPOSE, a->plan->decision.kernel->isa);
  const float *from = s->from + k * s->k_step;
  if (!a->plan->task.epi.e.residual) {
    transpose->fn(&(hk_transpose_args){from, y, s->tap_step, g->y.outer, g->pixels, s->n.count});
    return;
  }
  const float *add = (const float *)(const void *)a->call->c + s->group * c->group + (s->k.first + k) * c->channel;
  float room[ROOM];
  const int64_t most = ROOM / g->pixels;
  for (int64_t n = 0; n < s->n.count; n += most) {
    const int64_t count = hk_min64(most, s->n.count - n);
    transpose->fn(&(hk_transpose_args){from + n, room, s->tap_step, g->pixels, g->pixels, count});
    for (int64_t i = 0; i < count; i++)
      add_row(y + (n + i) * g->y.outer, room + i * g->pixels, add + (s->n.first + n + i) * c->outer,
              a->plan->task.epi.e.beta, g->pixels);
  }
}

static void store_plain(const part *a) {
  const hk_geom *g = &a->plan->task.geom;
  const hk_outer_sums *s = a->s;
  const hk_strides *c = &a->plan->task.epi.c;
  float *y = (float *)(void *)a->call->y + s->group * g->y.group + s->k.first * g->y.channel + s->n.first * g->y.outer;
  if (taps_adjacent(a)) {
    for (int64_t k = 0; k < s->k.count; k++) store_taps(a, k, y + k * g->y.channel);
    return;
  }
  patch p = {.n = s->n.count,
             .k = s->k.count,
             .from_n = s->n_step,
             .from_k = s->k_step,
             .y_n = g->y.outer,
             .y_k = g->y.channel,
             .c_n = c->outer,
             .c_k = c->channel};
  for (int64_t i = 0; i < g->pixels; i++) {
    const int64_t at[3] = {i / g->out[2] / g->out[1], i / g->out[2] % g->out[1], i % g->out[2]};
    p.from = sum_at(a, at);
    p.y = y + at[0] * g->y.at[0] + at[1] * g->y.at[1] + at[2] * g->y.at[2];
    if (a->plan->task.epi.e.residual)
      p.c = (const float *)(const void *)a->call->c + s->group * c->group + s->k.first * c->channel +
            s->n.first * c->outer + at[0] * c->at[0] + at[1] * c->at[1] + at[2] * c->at[2];
    write_patch(a, &p);
  }
}

static void store_rows(const part *a) {
  const hk_geom *g = &a->plan->task.geom;
  const hk_outer_sums *s = a->s;
  float row[BLOCK];
  for (int64_t i = 0; i < g->pixels * s->n.count; i++) {
    const int64_t pixel = i / s->n.count, n = i % s->n.count;
    const int64_t p[3] = {pixel / g->out[2] / g->out[1], pixel / g->out[2] % g->out[1], pixel % g->out[2]};
    for (int64_t k = 0; k < s->k.count; k += BLOCK) {
      const float *from = sum_at(a, p) + n * s->n_step + k * s->k_step;
      const int64_t count = hk_min64(BLOCK, s->k.count - k);
      for (int64_t j = 0; j < count; j++) row[j] = from[j * s->k_step];
      hk_at at = {.n = s->n.first + n, .k = s->group * g->k + s->k.first + k, .along_k = 1};
      for (int d = 0; d < g->rank; d++) at.p[d] = p[d + 3 - g->rank];
      hk_plan_store_row(a->plan, a->call, &at, count, row);
    }
  }
}

void hk_outer_store_part(const hk_plan *plan, const hk_call *call, const hk_outer_sums *s) {
  const part a = {plan, call, s};
  if (hk_outer_store_is_plain(&plan->task)) store_plain(&a);
  else store_rows(&a);
}

static void body(void *context, int64_t index) {
  const store *s = context;
  const hk_outer *o = s->o;
  const hk_geom *g = &s->plan->task.geom;
  const int64_t blocks = hk_ceil_div(g->k, BLOCK), k = index % blocks * BLOCK, group = index / blocks;
  const hk_outer_sums all = {.from =
                                 s->sums + group * o->taps * o->rows * o->columns + k * (o->along_k ? 1 : o->columns),
                             .tap_step = o->rows * o->columns,
                             .n_step = o->along_k ? o->columns : 1,
                             .k_step = o->along_k ? 1 : o->columns,
                             .group = group,
                             .n = {0, g->n, 0},
                             .k = {k, hk_min64(BLOCK, g->k - k), 0}};
  hk_outer_store_part(s->plan, s->call, &all);
}

void hk_outer_store(const hk_plan *plan, const hk_call *call, float *sums) {
  const hk_geom *g = &plan->task.geom;
  store s = {plan, call, plan->own, sums};
  const int64_t all = g->groups * s.o->taps * s.o->rows * s.o->columns;
  if (s.o->slices > 1) hk_plan_parallel(plan, hk_ceil_div(all, PIECE), add_slices, &s);
  hk_plan_parallel(plan, g->groups * hk_ceil_div(g->k, BLOCK), body, &s);
}
