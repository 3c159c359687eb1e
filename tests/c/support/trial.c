/* Trials: see trial.h. */
#include "trial.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"

/* Thirds in -21..21, which no float type holds exactly; whole numbers where the type is one. */
static void fill(uint64_t *seed, hk_type type, void *to, int64_t count) {
  const bool whole = type == HK_S8 || type == HK_U8 || type == HK_S32;
  for (int64_t i = 0; i < count; i++) {
    float v = (float)hk_test_integer(seed, 63) / (whole ? 1.0f : 3.0f);
    if (type == HK_U8 && v < 0) v = -v;
    hk_convert(HK_F32, &v, type, (char *)to + (size_t)i * hk_type_bytes(type), 1);
  }
}

static void *memory_or_exit(size_t bytes) {
  void *p = aligned_alloc(64, (bytes + 64) / 64 * 64);
  if (!p) {
    fprintf(stderr, "no memory for %zu bytes\n", bytes);
    exit(1);
  }
  memset(p, 0, bytes);
  return p;
}

static void require(hk_status status, const char *what) {
  if (!status) return;
  fprintf(stderr, "%s: %s\n", what, hk_last_error());
  exit(1);
}

size_t trial_y_bytes(const trial *t) { return (size_t)t->y.elements * hk_type_bytes(t->problem.y_type); }

void trial_make(trial *t, const char *problem, const char *epilogue, uint64_t seed) {
  memset(t, 0, sizeof *t);
  require(hk_problem_parse(&t->problem, problem), problem);
  require(hk_epilogue_parse(&t->epilogue, epilogue), epilogue);
  require(hk_problem_extents(&t->problem, &t->x, &t->f, &t->y), problem);
  const hk_problem *p = &t->problem;
  const bool whole = p->x_type == HK_S8 || p->x_type == HK_U8;
  const bool wide = !whole && (p->x_type == HK_F64 || p->f_type == HK_F64 || p->y_type == HK_F64);
  const hk_type parameter = wide ? HK_F64 : HK_F32, bias = whole ? HK_S32 : parameter;
  const struct {
    hk_type type;
    int64_t count;
  } parts[] = {{p->x_type, t->x.elements}, {p->f_type, t->f.elements}, {p->y_type, t->y.elements},
               {p->y_type, t->y.elements}, {parameter, p->k},          {bias, p->k},
               {parameter, p->k}};
  for (int i = 0; i < 7; i++) {
    t->memory[i] = memory_or_exit((size_t)parts[i].count * hk_type_bytes(parts[i].type));
    fill(&seed, parts[i].type, t->memory[i], parts[i].count);
  }
  const size_t x_below = (size_t)t->x.below * hk_type_bytes(p->x_type),
               f_below = (size_t)t->f.below * hk_type_bytes(p->f_type),
               y_below = (size_t)t->y.below * hk_type_bytes(p->y_type);
  t->args = (hk_args){.size = sizeof t->args, .x = (char *)t->memory[0] + x_below, .y = (char *)t->memory[2] + y_below};
  if (t->epilogue.residual) t->args.c = (char *)t->memory[3] + y_below;
  t->weights = (hk_weights){.size = sizeof t->weights, .f = (char *)t->memory[1] + f_below};
  if (t->epilogue.scale) t->weights.scale = t->memory[4];
  if (t->epilogue.bias) t->weights.bias = t->memory[5];
  if (t->epilogue.act == HK_ACT_PRELU) t->weights.slopes = t->memory[6];
}

void trial_free(trial *t) {
  for (int i = 0; i < 8; i++) free(t->memory[i]);
  memset(t, 0, sizeof *t);
}

void trial_prepare(trial *t, const hk_plan *plan, int poison) {
  memset(t->memory[2], poison, trial_y_bytes(t));
  free(t->memory[7]);
  t->args.workspace_bytes = hk_plan_workspace(plan);
  t->memory[7] = t->args.workspace_bytes ? memory_or_exit(t->args.workspace_bytes) : NULL;
  t->args.workspace = t->memory[7];
}

typedef struct decisions {
  char **texts;
  int count;
} decisions;

static void keep(void *context, const hk_candidate *c) {
  decisions *all = context;
  if (c->refusal) return;
  all->texts = realloc(all->texts, (size_t)(all->count + 1) * sizeof *all->texts);
  if (!all->texts || !(all->texts[all->count++] = strdup(c->decision))) exit(1);
}

int trial_decisions(trial *t, const hk_options *options, decision_fn visit, void *context) {
  decisions all = {0};
  require(hk_plan_candidates(&t->problem, &t->epilogue, options, keep, &all), "candidates");
  for (int i = 0; i < all.count; i++) {
    visit(t, all.texts[i], context);
    free(all.texts[i]);
  }
  free(all.texts);
  return all.count;
}

const char *decision_algorithm(const char *decision) {
  for (const char *next; (next = strstr(decision, " / ")); decision = next + 3) continue;
  return decision;
}

const trial_text trial_list[] = {
    {"2d_n2_c5_i9x7_k11_w3x3_p1_last", "bias+relu"},
    {"2d_n1_c16_i14x14_k24_w3x3_s2_p1_first", "scale+bias+sum:2"},
    {"2d_n1_c32_i8x8_k40_w1x1_last", "presum+clip:0:20"},
    {"2d_n1_c24_i13x13_k24_w3x3_p1_g24_last", "bias"},
    {"2d_n1_c12_i10x10_k24_w5x5_p2_g12_first", "none"},
    {"1d_n3_c16_i70_k16_w3_p4:0_d2_g4_first", "bias+leaky:0.5"},
    {"1d_n2_c8_i65_k8_w7_p6:0_g8_last", "none"},
    {"1d_n1_c6_i33_k4_w4_l2_p3_last", "none"},
    {"3d_n1_c3_i5x6x7_k4_w2x3x3_p1_first", "bias+prelu"},
    {"2d_n4_c3_i8x8_k6_w3x3_b2_p1_first", "none"},
    {"2d_n1_c6_i9x9_k8_w3x3_p-1:2_flip_f64_last", "scale"},
    {"2d_n1_c8_i9x9_k8_w3x3_p1_bf16:bf16:f32_last", "bias"},
    {"2d_n1_c8_i9x9_k8_w3x3_p1_f16_first", "none"},
    {"2d_n1_c8_i9x9_k8_w3x3_p1_u8:s8:s32_xz3_last", "bias"},
    {"2d_n1_c8_i9x9_k8_w3x3_p1_s8:s8:s8_xz-2_fz1_yz3_last", "scale+bias+relu"},
    /* gradients of filters: f64, 3x3, depthwise, 5 groups with stride 2 */
    {"2d_n8_c2_i9x9_k12_w9x9_p1_f64_xs=0.0.1.648.72.8_fs=0.0.1.972.108.12_ys=0.0.1.72.24.8", "scale+bias+sum:2"},
    {"2d_n20_c2_i9x11_k19_w9x11_p1_f32_xs=0.0.1.1980.220.20_fs=0.0.1.1881.209.19_"
     "ys=0.0.1.180.60.20",
     "sum:1"},
    {"2d_n24_c1_i9x9_k24_w9x9_p1_b24_f32_first", "none"},
    {"2d_n20_c2_i9x11_k40_w5x6_p1_d2_b5_f32_xs=0.4.1.1980.220.20_fs=0.8.1.1200.240.40_"
     "ys=0.288.1.36.12.4",
     "none"},
    {NULL, NULL}};
