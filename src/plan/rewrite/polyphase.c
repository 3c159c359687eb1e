/* polyphase: input dilation (transposed convolutions, input gradients of strided ones) as dense convolutions. With
 * dilation d the outputs whose place modulo d is the same read one in d taps and leave out the zeros between the
 * elements of x; they are a dense convolution of x by those taps, written to a strided view of y. There is one part for
 * each combination of phases, d^rank where d and the stride have no common divisor; nothing is moved. Outputs that meet
 * no tap (windows shorter than d) are stored by the plan's epilogue of 0. */
#include <stdio.h>

#include "cost/cost.h"
#include "plan/rewrite/polyphase.h"

enum { MOST_STEPS = 4096 }; /* candidates for the first tap of a phase, which are tried one by one */

void hk_phases_make(const hk_geom *g, hk_phases *to) {
  to->parts = 1;
  for (int d = 0; d < 3; d++) {
    to->count[d] = (int)hk_geom_phases(g, d);
    to->live[d] = 0;
    for (int i = 0; i < to->count[d]; i++) {
      const hk_polyphase p = hk_geom_phase(g, d, i);
      int at = i;
      for (; at && p.win && (!to->at[d][at - 1].win || to->at[d][at - 1].tap > p.tap); at--)
        to->at[d][at] = to->at[d][at - 1];
      to->at[d][at] = p;
      to->live[d] += p.win > 0;
    }
    to->parts *= to->live[d];
  }
}

void hk_phases_part(const hk_phases *phases, int part, hk_polyphase to[3]) {
  for (int d = 2; d >= 0; part /= phases->live[d], d--) to[d] = phases->at[d][part % phases->live[d]];
}

bool hk_phases_gaps(const hk_phases *p) {
  return p->live[0] < p->count[0] || p->live[1] < p->count[1] || p->live[2] < p->count[2];
}

/* Of dimension d the phases without taps, of those before it the ones with, of those behind it all outputs. */
bool hk_phases_gap(const hk_phases *p, const hk_geom *g, int index, hk_polyphase to[3]) {
  for (int d = 0, before = 1; d < 3; before *= p->live[d], d++) {
    const int empty = p->count[d] - p->live[d];
    if (index >= before * empty) {
      index -= before * empty;
      continue;
    }
    for (int i = 0; i < 3; i++) to[i] = (hk_polyphase){.every = 1, .out = g->out[i]};
    to[d] = p->at[d][p->live[d] + index % empty];
    index /= empty;
    for (int i = d - 1; i >= 0; index /= p->live[i], i--) to[i] = p->at[i][index % p->live[i]];
    return true;
  }
  return false;
}

bool hk_polyphase_takes(const hk_task *t, char *why) {
  const hk_geom *g = &t->geom;
  const hk_epilogue *e = &t->epi.e;
  if (g->in_dil[0] == 1 && g->in_dil[1] == 1 && g->in_dil[2] == 1) return hk_refuse(why, "x has no input dilation");
  if (g->gm == 0 || g->gk == 0 || g->k == 0 || g->in[0] * g->in[1] * g->in[2] == 0)
    return hk_refuse(why, "x, f or y is empty");
  if (t->options.stateful) return hk_refuse(why, "state goes before polyphase");
  if (e->act == HK_ACT_USER || e->act2 == HK_ACT_USER || e->user2 || e->store || e->cuda_user2 || e->cuda_store)
    return hk_refuse(why, "user functions are told positions of y, and its phases have others");
  int64_t parts = 1;
  for (int d = 0; d < 3; d++) {
    const int64_t here = hk_geom_phases(g, d);
    if (here > HK_PARTS || (parts *= here) > HK_PARTS) {
      snprintf(why, HK_REASON, "y has more than %d phases (in_dilation divided by its common divisor with stride)",
               HK_PARTS);
      return false;
    }
    if (g->in_dil[d] > MOST_STEPS) return hk_refuse(why, "in_dilation must be at most 4096");
  }
  hk_phases phases;
  hk_phases_make(g, &phases);
  if (!phases.parts) return hk_refuse(why, "no output meets a tap");
  if (hk_phases_gaps(&phases) && (e->gate || g->acc_type != HK_F32))
    return hk_refuse(why, "outputs without taps need f32 sums and no gate");
  return true;
}

static void view(hk_strides *s, const hk_polyphase p[3]) {
  for (int d = 0; d < 3; d++) s->at[d] *= p[d].every;
}

int64_t hk_phases_place(const hk_strides *s, const hk_polyphase p[3]) {
  return p[0].first * s->at[0] + p[1].first * s->at[1] + p[2].first * s->at[2];
}

int hk_polyphase_inner(const hk_task *t, int part, hk_task *to) {
  hk_phases phases;
  hk_polyphase p[3];
  hk_phases_make(&t->geom, &phases);
  hk_phases_part(&phases, part, p);
  const int64_t y = hk_phases_place(&t->geom.y, p), c = t->epi.e.residual ? hk_phases_place(&t->epi.c, p) : 0;
  hk_geom_set_polyphase(&to->geom, p);
  to->part_of = phases.parts == 1 ? 0 : part ? 2 : 1;
  view(&to->epi.c, p);
  if ((y | c) * (int64_t)hk_type_bytes(t->geom.y_type) % 16) to->y_unaligned = true;
  return phases.parts;
}

int64_t hk_polyphase_filter_at(const hk_task *t, int part, int64_t *first) {
  const hk_strides *f = &t->geom.f;
  hk_phases phases;
  hk_polyphase p[3];
  hk_phases_make(&t->geom, &phases);
  hk_phases_part(&phases, part, p);
  *first = (p[0].tap * t->geom.win[1] + p[1].tap) * t->geom.win[2] + p[2].tap;
  return p[0].tap * f->at[0] + p[1].tap * f->at[1] + p[2].tap * f->at[2];
}

int64_t hk_polyphase_copies(const hk_task *t) {
  hk_phases phases;
  if (t->options.device != HK_CUDA || t->f_now || t->geom.x.channel != 1) return 1;
  hk_phases_make(&t->geom, &phases);
  return phases.parts;
}

/* The call that part i sees. */
static hk_call call_of(const hk_plan *plan, const hk_phases *phases, const hk_call *call, int i) {
  const hk_task *t = &plan->task;
  const int64_t yb = (int64_t)hk_type_bytes(t->geom.y_type), fb = (int64_t)hk_type_bytes(t->geom.f_type);
  hk_polyphase p[3];
  hk_call c = *call;
  hk_phases_part(phases, i, p);
  c.y += yb * hk_phases_place(&t->geom.y, p);
  if (c.c) c.c += yb * hk_phases_place(&t->epi.c, p);
  for (int d = 0; d < 3 && !t->f_now; d++) c.f += fb * p[d].tap * t->geom.f.at[d];
  for (int part = 0; part < i && hk_polyphase_copies(t) > 1; part++)
    c.workspace += hk_round_up((int64_t)plan->inner[part]->decision.workspace_bytes, HK_ALIGN);
  return c;
}

hk_status hk_polyphase_run_parts(const hk_plan *plan, const hk_phases *phases, const hk_call *call) {
  const hk_algo *algo = plan->decision.algo;
  const bool prepares = algo->prepare && hk_polyphase_copies(&plan->task) > 1;
  hk_status s = HK_OK;
  for (int i = 0; i < phases->parts && !s && prepares; i++) {
    const hk_call c = call_of(plan, phases, call, i);
    s = algo->prepare(plan->inner[i], &c);
  }
  for (int i = 0; i < phases->parts && !s; i++) {
    hk_call c = call_of(plan, phases, call, i);
    c.prepared = prepares;
    s = hk_rewrite_run_inner(plan, i, &c);
  }
  return s;
}

/* The outputs without taps, stored by rows of this many values. */
enum { RUN = 256 };

typedef struct gap_job {
  hk_shared shared;
  hk_phases *phases;
} gap_job;

static bool is_live(const hk_phases *phases, int d, int64_t position) {
  for (int i = 0; i < phases->live[d]; i++)
    if (phases->at[d][i].first == position % phases->count[d]) return true;
  return false;
}

/* One output position (along_k), or `count` along a row, from position q on. */
static void store_gap(const hk_shared *s, hk_at at, int64_t q, int64_t count) {
  const hk_geom *g = &s->plan->task.geom;
  float zero[RUN];
  at.p[g->rank - 1] = q;
  const int64_t all = at.along_k ? g->k * g->groups : count;
  for (int64_t done = 0; done < all; done += RUN) {
    const int64_t n = hk_min64(RUN, all - done);
    for (int64_t i = 0; i < n; i++) zero[i] = 0;
    hk_plan_store_row(s->plan, s->call, &at, n, zero);
    *(at.along_k ? &at.k : &at.p[g->rank - 1]) += n;
  }
}

/* Row i of y, all images and rows counted. */
static void store_gaps(void *context, int64_t i) {
  const gap_job *j = context;
  const hk_geom *g = &j->shared.plan->task.geom;
  const int64_t p1 = i % g->out[1], p0 = i / g->out[1] % g->out[0];
  hk_at at = {.n = i / g->out[1] / g->out[0]};
  const bool some = is_live(j->phases, 0, p0) && is_live(j->phases, 1, p1), last = g->y.channel == 1;
  if (some && j->phases->live[2] == j->phases->count[2]) return;
  if (g->rank == 3) at.p[0] = p0;
  if (g->rank > 1) at.p[g->rank - 2] = p1;
  if (!some && !last) {
    for (at.k = 0; at.k < g->k * g->groups; at.k++) store_gap(&j->shared, at, 0, g->out[2]);
    return;
  }
  at.along_k = 1;
  for (int64_t q = 0; q < g->out[2]; q++)
    if (!some || !is_live(j->phases, 2, q)) store_gap(&j->shared, at, q, 1);
}

static hk_status build(hk_plan *plan) {
  const hk_status s = hk_rewrite_alloc_pass(plan, sizeof(hk_phases));
  if (!s) hk_phases_make(&plan->task.geom, plan->pass);
  return s;
}

static hk_status run(const hk_plan *plan, const hk_call *call) {
  const hk_geom *g = &plan->task.geom;
  gap_job j = {{plan, call}, plan->pass};
  if (hk_phases_gaps(j.phases)) hk_plan_parallel(plan, g->n * g->out[0] * g->out[1], store_gaps, &j);
  return hk_polyphase_run_parts(plan, j.phases, call);
}

/* Outputs without taps take 60 cycles and their bytes (Zen 5, 256 channels of 56 x 56, one tap in 2 x 2). Columns that
 * were adjacent are stored with gaps, and lines of y several times: 3 cycles each (Zen 5, 3 channels of 128 x 128). */
static double seconds(const hk_task *t, double inner_s) {
  const hk_geom *g = &t->geom;
  hk_phases phases;
  hk_phases_make(g, &phases);
  double live = 1;
  for (int d = 0; d < 3; d++) live *= (double)phases.live[d] / (double)phases.count[d];
  const double gaps = (1 - live) * (double)g->gm / (double)t->threads,
               bytes = gaps * (double)(g->k * g->groups) * (double)hk_type_bytes(g->y_type);
  const bool columns = g->y.at[2] == 1 && g->out[2] > 1 && phases.count[2] > 1 && g->k * g->groups > 1;
  const double spread = columns ? 3 * (double)(g->gm * g->k * g->groups) / (double)t->threads : 0;
  return inner_s + (60 * gaps + spread) / hk_cost_clock() + hk_cost_move(2 * bytes, 2 * bytes);
}

const hk_rewrite hk_rewrite_polyphase = {.name = "polyphase",
                                         .summary = "input dilation as one dense convolution per phase of y",
                                         .device = HK_CPU,
                                         .order = HK_ORDER_PHASE,
                                         .takes = hk_polyphase_takes,
                                         .inner = hk_polyphase_inner,
                                         .filter_at = hk_polyphase_filter_at,
                                         .seconds = seconds,
                                         .build = build,
                                         .run = run};
