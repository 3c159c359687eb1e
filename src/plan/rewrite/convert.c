/* widen: bf16, f16 and f8 through the f32 algorithms. x is widened once a call into the workspace, dense in the order it
 * comes in (channels last or first), f once at creation (at execute when it comes then); sums are f32, y is narrowed in
 * the epilogue. One algorithm of this kind stands for each f32 one and takes its kernels and knobs. Widening is exact, so
 * the sums are those of the f32 algorithm. Refuses int8, f64, streaming state, and what its f32 algorithm refuses. */
#include <stdio.h>
#include <string.h>

#include "plan/rewrite/around.h"
#include "cost/cost.h"

extern const hk_algo hk_algo_igemm, hk_algo_planes, hk_algo_dwc, hk_algo_dwp;

static bool narrow_type(hk_type t) { return t == HK_F16 || t == HK_BF16 || t == HK_F8E4M3; }

/* The channels of x over all feature groups as one axis where they lie evenly, else [outer][count]. */
typedef struct channels { int64_t count, step, outer, outer_step; } channels;

static channels channels_of(const hk_geom *g) {
  const int64_t features = g->batch_grouped ? 1 : g->groups;
  if (g->c == 1) return (channels){features, features == 1 ? 1 : g->x.group, 1, 0};
  if (features == 1 || g->x.group == g->c * g->x.channel) return (channels){features * g->c, g->x.channel, 1, 0};
  return (channels){g->c, g->x.channel, features, g->x.group};
}

static bool channels_last(const hk_geom *g) {
  const channels c = channels_of(g);
  return c.step == 1 && (c.count > 1 || c.outer > 1) && !(g->in[2] > 1 && g->x.at[2] == 1);
}

/* x as it lies in the workspace: [group of batch][n][at..][group][c] or [..][n][group][c][at..] */
static hk_strides staged(const hk_geom *g) {
  const int64_t image = g->in[0] * g->in[1] * g->in[2], features = g->batch_grouped ? 1 : g->groups;
  const bool last = channels_last(g);
  hk_strides s = {0};
  s.channel = last ? 1 : image;
  s.at[2] = last ? g->c * features : 1;
  s.at[1] = s.at[2] * g->in[2];
  s.at[0] = s.at[1] * g->in[1];
  s.outer = image * g->c * features;
  s.group = g->batch_grouped ? s.outer * g->n : s.channel * g->c;
  if (g->c == 1) s.channel = 1; /* as hk_geom has it: a single channel is contiguous */
  return s;
}

static int64_t staged_elements(const hk_geom *g) {
  return g->n * g->groups * g->c * g->in[0] * g->in[1] * g->in[2];
}

/* f keeps its strides; the widened copy covers its extent */
static hk_extent filter_extent(const hk_geom *g) {
  hk_strides s = g->f;
  s.offset = 0;
  return hk_extent_of(&s, g->groups, g->k, g->c, g->win);
}

/* The f32 task: same problem, x from the workspace. */
static hk_task inner_task(const hk_task *t) {
  hk_task i = *t;
  i.geom.x_type = i.geom.f_type = i.problem.x_type = i.problem.f_type = HK_F32;
  i.geom.x = staged(&t->geom);
  i.geom.f.offset = 0;
  return i;
}

static size_t rounded(size_t bytes) { return (bytes + HK_ALIGN - 1) / HK_ALIGN * HK_ALIGN; }

static size_t own_bytes(const hk_task *t) {
  const size_t x = rounded((size_t)staged_elements(&t->geom) * sizeof(float));
  return x + (t->f_now ? 0 : rounded((size_t)filter_extent(&t->geom).elements * sizeof(float)));
}

static double pass_seconds(const hk_task *t) {
  const double moved = 6.0 * (double)staged_elements(&t->geom);
  return 2e-7 + hk_cost_move(moved, moved);
}

static const hk_around around = {inner_task, own_bytes, pass_seconds};

static bool applies(const hk_task *t, char *why) {
  const hk_geom *g = &t->geom;
  const char *no = NULL;
  if (!narrow_type(g->x_type) && !narrow_type(g->f_type)) no = "neither x nor f is a narrow float";
  else if (g->acc_type != HK_F32) no = "sums are not f32";
  else if (t->options.stateful) no = "streaming state is not widened";
  else if (g->gk == 0 || g->gm == 0 || g->k == 0 || staged_elements(g) == 0) no = "nothing to multiply";
  if (no) snprintf(why, HK_REASON, "%s", no);
  return !no;
}

static bool offer(const hk_task *t, hk_decision *d, char *why) {
  return applies(t, why) && hk_around_offer(&around, t, d, why);
}
static bool vary(const hk_task *t, const hk_decision *base, int index, hk_decision *d) {
  return hk_around_vary(&around, t, base, index, d);
}
static bool check(const hk_task *t, hk_decision *d, char *why) { return hk_around_check(&around, t, d, why); }

/* count elements of any float type from a strided place to adjacent f32 */
static void widen_run(const hk_kernel *k, hk_type t, const char *src, int64_t step, float *dst, int64_t count) {
  if (t == HK_F32 && step == 1) memcpy(dst, src, (size_t)count * sizeof *dst);
  else if (k && step == 1) k->fn(&(hk_convert_args){src, dst, count});
  else
    for (int64_t i = 0; i < count; i++) dst[i] = (float)hk_load_element(t, src, i * step);
}

static hk_status widen_filter(hk_plan *plan, const char *f, float **out, int64_t *shift) {
  const hk_geom *g = &plan->task.geom;
  const hk_extent e = filter_extent(g);
  *out = hk_alloc((size_t)e.elements * sizeof **out);
  if (!*out) return hk_fail(HK_NO_MEMORY, "no memory for %lld widened weights", (long long)e.elements);
  const int64_t bytes = (int64_t)hk_type_bytes(g->f_type);
  widen_run(hk_kernel_convert(g->f_type, HK_F32, plan->task.isa), g->f_type, f - e.below * bytes, 1, *out, e.elements);
  *shift = e.below;
  return HK_OK;
}

static hk_status build(hk_plan *plan) {
  float *wide = NULL;
  int64_t shift = 0;
  hk_status s = HK_OK;
  if (plan->task.f_now && !hk_plan_shares(plan)) s = widen_filter(plan, plan->raw_f, &wide, &shift);
  if (!s) s = hk_around_build(&around, plan, wide ? wide + shift : NULL);
  hk_free(wide);
  return s;
}

typedef struct job {
  const hk_plan *plan;
  const hk_call *call;
  const hk_kernel *kernel;
  hk_strides to;
  float *x;
  int64_t rows; /* of one image */
} job;

/* One row of one image: all positions of the last dimension, all channels. */
static void widen_row(void *context, int64_t index) {
  const job *j = context;
  const hk_geom *g = &j->plan->task.geom;
  const channels c = channels_of(g);
  const int64_t bytes = (int64_t)hk_type_bytes(g->x_type), image = index / j->rows, row = index % j->rows;
  const int64_t batch = g->batch_grouped ? image / g->n : 0, n = g->batch_grouped ? image % g->n : image;
  const int64_t i0 = row / g->in[1], i1 = row % g->in[1], plane = g->in[0] * g->in[1] * g->in[2];
  const char *src = j->call->x + (batch * g->x.group + n * g->x.outer + i0 * g->x.at[0] + i1 * g->x.at[1]) * bytes;
  float *dst = j->x + batch * j->to.group + n * j->to.outer + i0 * j->to.at[0] + i1 * j->to.at[1];
  const bool last = channels_last(g), whole = last && c.outer == 1 && g->x.at[2] == c.count;
  if (whole) {
    widen_run(j->kernel, g->x_type, src, 1, dst, c.count * g->in[2]);
    return;
  }
  for (int64_t o = 0; o < c.outer; o++, src += c.outer_step * bytes) {
    if (last)
      for (int64_t w = 0; w < g->in[2]; w++)
        widen_run(j->kernel, g->x_type, src + w * g->x.at[2] * bytes, 1, dst + w * j->to.at[2] + o * c.count, c.count);
    else
      for (int64_t k = 0; k < c.count; k++)
        widen_run(j->kernel, g->x_type, src + k * c.step * bytes, g->x.at[2], dst + (o * c.count + k) * plane, g->in[2]);
  }
}

static hk_status run(const hk_plan *plan, const hk_call *call) {
  const hk_geom *g = &plan->task.geom;
  const hk_plan *inner = plan->own;
  char *at = hk_around_workspace(plan, call);
  job j = {plan, call, hk_kernel_convert(g->x_type, HK_F32, plan->task.isa), staged(g), (float *)at, g->in[0] * g->in[1]};
  hk_plan_parallel(plan, j.rows * g->n * (g->batch_grouped ? g->groups : 1), widen_row, &j);
  hk_call in = *call;
  in.x = at;
  if (!plan->task.f_now) {
    const hk_extent e = filter_extent(g);
    float *f = (float *)(at + rounded((size_t)staged_elements(g) * sizeof(float)));
    widen_run(hk_kernel_convert(g->f_type, HK_F32, plan->task.isa), g->f_type,
              call->f - e.below * (int64_t)hk_type_bytes(g->f_type), 1, f, e.elements);
    in.f = (const char *)(f + e.below);
  } else {
    in.f = (const char *)((const float *)inner->packed->f + inner->f_shift);
  }
  return inner->decision.algo->run(inner, &in);
}

#define WIDEN(which, FAMILY)                                                                                             \
  const hk_algo hk_algo_widen_##which = {.name = "widen_" #which, .inner = &hk_algo_##which, .family = HK_FAMILY_##FAMILY, \
                                         .device = HK_CPU, .offer = offer, .vary = vary, .check = check,                 \
                                         .build = build, .run = run, .destroy = hk_around_destroy}
WIDEN(igemm, IGEMM);
WIDEN(planes, PGEMM);
WIDEN(dwc, DWC);
WIDEN(dwp, DWP);
