/* convert: bf16, f16 and f8 through f32 algorithms, where slice refuses. x is converted once per call into the
 * workspace, dense in the order it comes in (channels last or first), f once at creation (at execute when it comes
 * then); sums are f32, and y is rounded to its type in the epilogue. The conversion to f32 is exact, so the sums are
 * those of the f32 algorithm. */
#include "cost/cost.h"
#include "plan/rewrite/widen.h"

/* x as it lies in the workspace: [group of batch][n][at..][group][c] or [..][n][group][c][at..] */
static hk_strides staged(const hk_geom *g) {
  const int64_t image = g->in[0] * g->in[1] * g->in[2], features = g->batch_grouped ? 1 : g->groups;
  const bool last = hk_widen_last(g);
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

static int64_t staged_elements(const hk_geom *g) { return g->n * g->groups * g->c * g->in[0] * g->in[1] * g->in[2]; }

static size_t rounded(size_t bytes) { return (bytes + HK_ALIGN - 1) / HK_ALIGN * HK_ALIGN; }

static size_t own_bytes(const hk_task *t) {
  return rounded((size_t)staged_elements(&t->geom) * sizeof(float)) + hk_widen_filter_bytes(t);
}

/* Cycles per value; x that lies neither channels-last nor -first is converted one by one. */
static double seconds(const hk_task *t, double inner_s) {
  const double values = (double)staged_elements(&t->geom), moved = 6.0 * values;
  const bool adjacent = hk_widen_last(&t->geom) || t->geom.x.at[2] == 1;
  const hk_work w = {.cycles = values * (adjacent ? 1.0 : 100.0), .moved = hk_cost_move(moved, moved)};
  return inner_s + hk_cost_seconds(&hk_cost_here()->convert, &w, 1, 1);
}

static bool takes(const hk_task *t, char *why) {
  const hk_geom *g = &t->geom;
  if (!hk_widen_narrow(g->x_type) && !hk_widen_narrow(g->f_type))
    return hk_refuse(why, "neither x nor f is f16, bf16 or f8e4m3");
  if (g->acc_type != HK_F32) return hk_refuse(why, "sums are f64; convert takes f32 sums only");
  if (t->options.stateful) return hk_refuse(why, "options.stateful is 1: state goes before convert");
  if (g->gk == 0 || g->gm == 0 || g->k == 0 || staged_elements(g) == 0) return hk_refuse(why, "x, f or y is empty");
  return true;
}

static int inner(const hk_task *t, int part, hk_task *to) {
  const hk_strides x = staged(&t->geom);
  (void)part;
  hk_geom_set_types(&to->geom, HK_F32, HK_F32, t->geom.y_type);
  hk_geom_set_layout(&to->geom, &x, NULL);
  return 1;
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
static void convert_row(void *context, int64_t index) {
  const job *j = context;
  const hk_geom *g = &j->plan->task.geom;
  const hk_channels c = hk_widen_channels(g);
  const int64_t bytes = (int64_t)hk_type_bytes(g->x_type), image = index / j->rows, row = index % j->rows;
  const int64_t batch = g->batch_grouped ? image / g->n : 0, n = g->batch_grouped ? image % g->n : image;
  const int64_t i0 = row / g->in[1], i1 = row % g->in[1], plane = g->in[0] * g->in[1] * g->in[2];
  const char *src = j->call->x + (batch * g->x.group + n * g->x.outer + i0 * g->x.at[0] + i1 * g->x.at[1]) * bytes;
  float *dst = j->x + batch * j->to.group + n * j->to.outer + i0 * j->to.at[0] + i1 * j->to.at[1];
  const bool last = hk_widen_last(g), whole = last && c.outer == 1 && g->x.at[2] == c.count;
  if (whole) {
    hk_widen_run(j->kernel, g->x_type, src, 1, dst, c.count * g->in[2]);
    return;
  }
  for (int64_t o = 0; o < c.outer; o++, src += c.outer_step * bytes) {
    if (last)
      for (int64_t w = 0; w < g->in[2]; w++)
        hk_widen_run(j->kernel, g->x_type, src + w * g->x.at[2] * bytes, 1, dst + w * j->to.at[2] + o * c.count,
                     c.count);
    else
      for (int64_t k = 0; k < c.count; k++)
        hk_widen_run(j->kernel, g->x_type, src + k * c.step * bytes, g->x.at[2], dst + (o * c.count + k) * plane,
                     g->in[2]);
  }
}

static hk_status run(const hk_plan *plan, const hk_call *call) {
  const hk_geom *g = &plan->task.geom;
  char *at = hk_rewrite_workspace(plan, call);
  job j = {plan,      call,        hk_kernel_convert(g->x_type, HK_F32, plan->decision.isa),
           staged(g), (float *)at, g->in[0] * g->in[1]};
  hk_plan_parallel(plan, j.rows * g->n * (g->batch_grouped ? g->groups : 1), convert_row, &j);
  hk_call in = *call;
  in.x = at;
  if (!plan->task.f_now) {
    float *f = (float *)(void *)(at + rounded((size_t)staged_elements(g) * sizeof(float)));
    in.f = hk_widen_filter_to(plan, call->f, f);
  }
  return hk_rewrite_run_inner(plan, 0, &in);
}

const hk_rewrite hk_rewrite_convert = {.name = "convert",
                                       .summary =
                                           "bf16, f16 and f8 through f32: x converted in the workspace, f at creation",
                                       .device = HK_CPU,
                                       .order = HK_ORDER_CONVERT,
                                       .last_resort = true,
                                       .takes = takes,
                                       .inner = inner,
                                       .bytes = own_bytes,
                                       .seconds = seconds,
                                       .filter = hk_widen_filter,
                                       .run = run};
