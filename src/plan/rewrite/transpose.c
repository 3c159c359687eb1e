/* transpose and transpose_x: channels-first tensors through channels-last algorithms. x is transposed in the workspace.
 * With transpose y is written there too, channels-last, in f32 and with the whole epilogue done, and then transposed
 * into its own layout and type; the residual goes the other way first, into the place of y. With transpose_x the
 * algorithm writes y in place. Worth it where each element takes part in many products. */
#include <string.h>

#include "cost/cost.h"
#include "plan/rewrite/rewrite.h"

static bool adjacent(const hk_strides *s, const int64_t size[3]) {
  int64_t step = 1;
  for (int d = 2; d >= 0; step *= size[d], d--)
    if (size[d] > 1 && s->at[d] != step) return false;
  return true;
}

/* x and f of types that dots multiplies as they are. */
static bool is_narrow(const hk_geom *g) {
  return g->acc_type == HK_S32 || (g->x_type == HK_BF16 && g->f_type == HK_BF16 && g->acc_type == HK_F32);
}

static const hk_kernel *narrow_kernel(const hk_geom *g, hk_isa isa) {
  return hk_kernel_best(hk_type_bytes(g->x_type) == 1 ? HK_FAMILY_TRANSPOSE8 : HK_FAMILY_TRANSPOSE16, isa);
}

/* What both require of x; the type is theirs to check. */
static bool takes(const hk_task *t, char *why) {
  const hk_geom *g = &t->geom;
  if (g->batch_grouped) return hk_refuse(why, "batch_groups must be 1");
  if (g->c < 2 || g->x.channel == 1) return hk_refuse(why, "the channels of x are adjacent already");
  if (!adjacent(&g->x, g->in)) return hk_refuse(why, "the pixels of x must be adjacent");
  if (t->epi.e.gate || t->options.stateful) return hk_refuse(why, "gate and state go before transpose");
  if (g->gk == 0 || g->gm == 0 || g->k == 0 || g->in[0] * g->in[1] * g->in[2] == 0)
    return hk_refuse(why, "x, f or y is empty");
  return true;
}

static bool is_f32(const hk_geom *g) { return g->x_type == HK_F32 && g->f_type == HK_F32 && g->acc_type == HK_F32; }

/* Narrow problems: for dots, which stores to any y. */
static bool takes_x(const hk_task *t, char *why) {
  const hk_geom *g = &t->geom;
  const bool narrow = is_narrow(g) && narrow_kernel(g, t->isa);
  if (!is_f32(g) && !narrow) return hk_refuse(why, "x and f must be f32, or bf16 or int8 on AVX2 or above");
  if (!takes(t, why)) return false;
  if (narrow) return true;
  if (g->k < 2 || g->y.channel == 1) return hk_refuse(why, "the channels of y are adjacent already");
  if (g->y_type != HK_F32 || !t->epi.simple || t->epi.e.residual)
    return hk_refuse(why, "y must be f32, the epilogue scale, bias and clamp at most");
  if (g->y.at[2] != 1 && g->out[2] != 1) return hk_refuse(why, "the columns of y must be adjacent");
  if (g->in_dil[0] != 1 || g->in_dil[1] != 1 || g->in_dil[2] != 1) return hk_refuse(why, "input dilation must be 1");
  return true;
}

static bool is_float(hk_type t) { return t == HK_F32 || t == HK_F16 || t == HK_BF16 || t == HK_F8E4M3; }

static bool takes_both(const hk_task *t, char *why) {
  const hk_geom *g = &t->geom;
  const hk_epilogue *e = &t->epi.e;
  if (!is_f32(g)) return hk_refuse(why, "x and f must be f32");
  if (!takes(t, why)) return false;
  if (!is_float(g->y_type)) return hk_refuse(why, "y must be f32, f16, bf16 or f8e4m3");
  if (!adjacent(&g->y, g->out)) return hk_refuse(why, "the pixels of y must be adjacent");
  if (e->store) return hk_refuse(why, "a store function leaves no y to transpose");
  if (e->residual && !adjacent(&t->epi.c, g->out)) return hk_refuse(why, "the pixels of the residual must be adjacent");
  return true;
}

/* From pixel to pixel. Pixels a multiple of 1 KiB apart would share a few sets of L1 while they are transposed and
 * while a tile walks along several (Zen 4, 1024 to 256 channels of 14 x 14). */
static int64_t step_of(int64_t channels, int64_t bytes) {
  return channels * bytes % 1024 ? channels : channels + 64 / bytes;
}

/* [n][at..][group][channel] */
static hk_strides last(int64_t channels, int64_t groups, const int64_t size[3], hk_type type) {
  hk_strides s = {.channel = 1, .group = channels};
  s.at[2] = step_of(channels * groups, (int64_t)hk_type_bytes(type));
  s.at[1] = s.at[2] * size[2];
  s.at[0] = s.at[1] * size[1];
  s.outer = s.at[0] * size[0];
  return s;
}

static int inner_x(const hk_task *t, int part, hk_task *to) {
  const hk_strides x = last(t->geom.c, t->geom.groups, t->geom.in, t->geom.x_type);
  (void)part;
  hk_geom_set_layout(&to->geom, &x, NULL);
  return 1;
}

static int inner_both(const hk_task *t, int part, hk_task *to) {
  const hk_geom *g = &t->geom;
  const hk_strides x = last(g->c, g->groups, g->in, HK_F32), y = last(g->k, g->groups, g->out, HK_F32);
  (void)part;
  hk_geom_set_types(&to->geom, g->x_type, g->f_type, HK_F32);
  hk_geom_set_layout(&to->geom, &x, &y);
  to->epi.c = y;
  return 1;
}

static size_t rounded(int64_t floats) { return (size_t)hk_round_up(floats * (int64_t)sizeof(float), HK_ALIGN); }
static size_t x_bytes(const hk_task *t) {
  const hk_geom *g = &t->geom;
  const int64_t bytes = (int64_t)hk_type_bytes(g->x_type), row = step_of(g->groups * g->c, bytes) * bytes;
  return (size_t)hk_round_up(g->n * row * g->in[0] * g->in[1] * g->in[2], HK_ALIGN);
}
static size_t both_bytes(const hk_task *t) {
  return x_bytes(t) + rounded(step_of(t->geom.groups * t->geom.k, 4) * t->geom.gm);
}

/* Some cycles per element, `times` what the machine takes, and the bytes. */
static double pass(const hk_task *t, const hk_cost_family *f, double bytes, double times) {
  const double threads = (double)t->threads;
  const hk_work w = {.cycles = bytes / 4 * times / threads, .moved = hk_cost_move(2 * bytes, 2 * bytes) / threads};
  return hk_cost_seconds(f, &w, 1, 1);
}

static double y_size(const hk_geom *g) { return (double)rounded(g->groups * g->k * g->gm); }

/* Half a cycle per element of x, and of y while its blocks are hot (igemm on Zen 4, 128 channels of 28 x 28). */
static double seconds_x(const hk_task *t, double inner_s) {
  const double elements_a_word = 4.0 / (double)hk_type_bytes(t->geom.x_type);
  if (!is_f32(&t->geom)) return inner_s + pass(t, &hk_cost_here()->transpose_x, (double)x_bytes(t), elements_a_word);
  return inner_s + pass(t, &hk_cost_here()->transpose_x, (double)x_bytes(t) + y_size(&t->geom), 1);
}

/* Around strip both ways of 256 channels of 28 x 28 took 40 us, of 56 x 56, which no L2 holds, 150 to 200 (Zen 4).
 * Other activations cost igemm 80 cycles per pixel beyond their values (16 channels of 4112, silu); 15 of them are
 * counted, because planes and small do not predict theirs either. */
static double seconds_both(const hk_task *t, double inner_s) {
  const double bytes = (double)x_bytes(t) + y_size(&t->geom) * (t->epi.e.residual ? 2 : 1);
  const hk_cost_family *f = &hk_cost_here()->transpose;
  if (t->epi.simple) return inner_s + pass(t, f, bytes, bytes > 3.0 * (double)hk_cost_l2() ? 2 : 1);
  return inner_s + pass(t, f, bytes, 1.7) + (double)t->geom.gm * 15 / hk_cost_clock() / (double)t->threads;
}

enum { CHUNK = 64, ROWS = 16 }; /* pixels of a piece of work; channels converted at a time */

/* Planes of any float type, at strides s, and f32 channels-last at `flat`. */
typedef struct job {
  const hk_kernel *transpose, *convert;
  hk_type type;
  const hk_strides *s;
  char *planes;
  float *flat;
  bool back;                                /* from flat to planes */
  int64_t chunks, pixels, channels, groups; /* groups a step of their channels apart are transposed as one */
} job;

/* Rows of planes that are not f32 go through f32 rows on the stack. */
static void convert_rows(const job *j, char *plane, float rows[ROWS][CHUNK], int64_t channels, int64_t count) {
  for (int64_t c = 0; c < channels; c++) {
    char *at = plane + c * j->s->channel * (int64_t)hk_type_bytes(j->type);
    const hk_convert_args a = {j->back ? (void *)rows[c] : at, j->back ? at : (void *)rows[c], count};
    if (j->convert) j->convert->fn(&a);
    else if (j->back)
      for (int64_t i = 0; i < count; i++) hk_store_element(j->type, at, i, rows[c][i]);
    else
      for (int64_t i = 0; i < count; i++) rows[c][i] = (float)hk_load_element(j->type, at, i);
  }
}

static void transpose_converted(const job *j, char *plane, float *flat, int64_t all, int64_t count) {
  float rows[ROWS][CHUNK];
  for (int64_t c = 0; c < j->channels; c += ROWS) {
    const int64_t few = hk_min64(ROWS, j->channels - c);
    char *at = plane + c * j->s->channel * (int64_t)hk_type_bytes(j->type);
    if (!j->back) convert_rows(j, at, rows, few, count);
    if (j->back) j->transpose->fn(&(hk_transpose_args){flat + c, rows[0], all, CHUNK, count, few});
    else j->transpose->fn(&(hk_transpose_args){rows[0], flat + c, CHUNK, all, few, count});
    if (j->back) convert_rows(j, at, rows, few, count);
  }
}

static void transpose_piece(void *context, int64_t i) {
  const job *j = context;
  const int64_t chunk = i % j->chunks, group = i / j->chunks % j->groups, n = i / j->chunks / j->groups;
  const int64_t m = chunk * CHUNK, count = hk_min64(CHUNK, j->pixels - m), all = step_of(j->channels * j->groups, 4);
  float *flat = j->flat + (n * j->pixels + m) * all + group * j->channels;
  char *plane = j->planes + (n * j->s->outer + group * j->s->group + m) * (int64_t)hk_type_bytes(j->type);
  if (j->type != HK_F32) {
    transpose_converted(j, plane, flat, all, count);
    return;
  }
  float *p = (float *)(void *)plane;
  if (j->back) j->transpose->fn(&(hk_transpose_args){flat, p, all, j->s->channel, count, j->channels});
  else j->transpose->fn(&(hk_transpose_args){p, flat, j->s->channel, all, j->channels, count});
}

static void transpose_all(const hk_plan *plan, job j) {
  const hk_geom *g = &plan->task.geom;
  j.transpose = hk_kernel_best(HK_FAMILY_TRANSPOSE, plan->decision.isa);
  if (j.type != HK_F32) j.convert = j.back ? plan->narrow : plan->wide;
  j.groups = g->groups;
  if (j.s->group == j.channels * j.s->channel) {
    j.channels *= j.groups;
    j.groups = 1;
  }
  j.chunks = hk_ceil_div(j.pixels, CHUNK);
  hk_plan_parallel(plan, j.chunks * j.groups * g->n, transpose_piece, &j);
}

static void transpose_input(const hk_plan *plan, const hk_call *call, char *to) {
  const hk_geom *g = &plan->task.geom;
  transpose_all(plan, (job){.type = HK_F32,
                            .s = &g->x,
                            .planes = (char *)(uintptr_t)call->x,
                            .flat = (float *)(void *)to,
                            .channels = g->c,
                            .pixels = g->in[0] * g->in[1] * g->in[2]});
}

/* Elements of 8 or 16 bits, as they are: planes of a piece of pixels, channels-last in the workspace. */
typedef struct narrow_job {
  const hk_kernel *kernel;
  const hk_geom *g;
  const char *x;
  char *to;
  int64_t chunks, pixels;
} narrow_job;

static void transpose_narrow_piece(void *context, int64_t i) {
  const narrow_job *j = context;
  const hk_geom *g = j->g;
  const int64_t bytes = (int64_t)hk_type_bytes(g->x_type), all = step_of(g->c * g->groups, bytes);
  const int64_t chunk = i % j->chunks, group = i / j->chunks % g->groups, n = i / j->chunks / g->groups;
  const int64_t m = chunk * CHUNK, count = hk_min64(CHUNK, j->pixels - m);
  const char *from = j->x + (n * g->x.outer + group * g->x.group + m) * bytes;
  char *to = j->to + ((n * j->pixels + m) * all + group * g->c) * bytes;
  j->kernel->fn(&(hk_transpose_narrow_args){from, to, g->x.channel, all, g->c, count});
}

static void transpose_narrow(const hk_plan *plan, const hk_call *call, char *to) {
  const hk_geom *g = &plan->task.geom;
  const int64_t pixels = g->in[0] * g->in[1] * g->in[2], chunks = hk_ceil_div(pixels, CHUNK);
  narrow_job j = {narrow_kernel(g, plan->task.isa), g, call->x, to, chunks, pixels};
  hk_plan_parallel(plan, chunks * g->groups * g->n, transpose_narrow_piece, &j);
}

static hk_status run_x(const hk_plan *plan, const hk_call *call) {
  hk_call in = *call;
  char *x = hk_rewrite_workspace(plan, call);
  if (is_f32(&plan->task.geom)) transpose_input(plan, call, x);
  else transpose_narrow(plan, call, x);
  in.x = x;
  return hk_rewrite_run_inner(plan, 0, &in);
}

static hk_status run_both(const hk_plan *plan, const hk_call *call) {
  const hk_geom *g = &plan->task.geom;
  char *x = hk_rewrite_workspace(plan, call), *y = x + x_bytes(&plan->task);
  job j = {.type = g->y_type,
           .s = &plan->task.epi.c,
           .planes = (char *)(uintptr_t)call->c,
           .flat = (float *)(void *)y,
           .channels = g->k,
           .pixels = g->pixels};
  hk_call in = *call;
  transpose_input(plan, call, x);
  if (plan->task.epi.e.residual) transpose_all(plan, j);
  in.x = x;
  in.y = y;
  in.c = plan->task.epi.e.residual ? y : NULL;
  const hk_status s = hk_rewrite_run_inner(plan, 0, &in);
  if (s) return s;
  j.back = true;
  j.s = &g->y;
  j.planes = call->y;
  transpose_all(plan, j);
  return HK_OK;
}

const hk_rewrite hk_rewrite_transpose_x = {.name = "transpose_x",
                                           .summary =
                                               "x channels-last in the workspace; the algorithm writes y in place",
                                           .device = HK_CPU,
                                           .order = HK_ORDER_TRANSPOSE,
                                           .takes = takes_x,
                                           .inner = inner_x,
                                           .bytes = x_bytes,
                                           .seconds = seconds_x,
                                           .run = run_x};
const hk_rewrite hk_rewrite_transpose = {.name = "transpose",
                                         .summary = "x channels-last in the workspace, y back from it",
                                         .device = HK_CPU,
                                         .order = HK_ORDER_TRANSPOSE,
                                         .takes = takes_both,
                                         .inner = inner_both,
                                         .bytes = both_bytes,
                                         .seconds = seconds_both,
                                         .run = run_both};
