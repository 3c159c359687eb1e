/* Stateful plans on the device: a signal cut into blocks, with the state written over itself, gives what one
 * convolution of the whole signal gives on the CPU, by every decision, for blocks shorter and longer than the state.
 * Integers, so all is exact. Needs a CUDA device; exits with 77 without. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/core.h"
#include "device.h"
#include "support/check.h"

enum { N = 2, LENGTH = 96 };

typedef struct signal {
  int c, k, groups, window, dilation;
} signal;
static const signal signals[] = {{64, 64, 64, 4, 1}, {24, 24, 24, 31, 1}, {8, 16, 8, 3, 12}, {16, 16, 1, 3, 4},
                                 {64, 72, 1, 3, 2},  {32, 64, 4, 5, 1},   {5, 7, 1, 2, 40},  {8, 8, 8, 90, 1}};
static const int blocks[] = {2, 32, 48};
static const hk_type types[] = {HK_BF16, HK_F16, HK_F32, HK_F64};

static hk_status problem_make(hk_problem *p, const signal *s, hk_type type, hk_layout layout, int length) {
  hk_conv_desc d = {.size = sizeof d,
                    .rank = 1,
                    .n = N,
                    .c = s->c,
                    .k = s->k,
                    .groups = s->groups,
                    .layout = layout,
                    .x_type = type,
                    .f_type = type,
                    .y_type = type};
  d.in[0] = length, d.window[0] = s->window, d.stride[0] = 1, d.dilation[0] = s->dilation;
  d.pad_lo[0] = (int64_t)s->dilation * (s->window - 1);
  *p = (hk_problem){.size = sizeof *p};
  return hk_problem_conv(p, &d);
}

typedef struct bench {
  const signal *s;
  hk_type type;
  hk_layout layout;
  hk_problem p;
  char *x, *f, *want, *got, *piece;
  void *dx, *dy, *dstate;
} bench;

/* Frames begin.. of a [n][channels][LENGTH] or [n][LENGTH][channels] tensor, cut out to b->piece, or put back. */
static void cut(bench *b, char *whole, int channels, int begin, int length, bool back) {
  const size_t bytes = hk_type_bytes(b->type);
  for (int n = 0; n < N; ++n)
    for (int c = 0; c < channels; ++c)
      for (int t = 0; t < length; ++t) {
        const size_t a = b->layout == HK_CHANNELS_LAST
                             ? ((size_t)n * (size_t)length + (size_t)t) * (size_t)channels + (size_t)c
                             : ((size_t)n * (size_t)channels + (size_t)c) * (size_t)length + (size_t)t;
        const size_t w = b->layout == HK_CHANNELS_LAST
                             ? ((size_t)n * LENGTH + (size_t)(begin + t)) * (size_t)channels + (size_t)c
                             : ((size_t)n * (size_t)channels + (size_t)c) * LENGTH + (size_t)(begin + t);
        if (back) memcpy(whole + w * bytes, b->piece + a * bytes, bytes);
        else memcpy(b->piece + a * bytes, whole + w * bytes, bytes);
      }
}

static void run_decision(bench *b, int length, const char *decision) {
  const size_t bytes = hk_type_bytes(b->type);
  const hk_options o = {.size = sizeof o, .device = HK_CUDA, .decision = decision, .stateful = 1};
  const hk_weights w = {.size = sizeof w, .f = b->f};
  hk_plan *plan = NULL;
  void *workspace = NULL;
  CHECK(hk_plan_create(&plan, &b->p, NULL, &o, &w) == HK_OK, "%s: %s", decision, hk_last_error());
  if (!plan) return;
  hk_args a = {
      .size = sizeof a, .x = b->dx, .y = b->dy, .state_out = b->dstate, .workspace_bytes = hk_plan_workspace(plan)};
  if (a.workspace_bytes) hk_gpu_alloc(&workspace, a.workspace_bytes);
  a.workspace = workspace;
  memset(b->got, 0xff, (size_t)N * (size_t)b->s->k * LENGTH * bytes);
  hk_status s = HK_OK;
  for (int begin = 0; begin < LENGTH && !s; begin += length) {
    cut(b, b->x, b->s->c, begin, length, false);
    hk_gpu_copy(b->dx, b->piece, (size_t)N * (size_t)b->s->c * (size_t)length * bytes);
    s = hk_plan_execute(plan, &a);
    if (!s) s = hk_gpu_sync(NULL);
    hk_gpu_copy(b->piece, b->dy, (size_t)N * (size_t)b->s->k * (size_t)length * bytes);
    cut(b, b->got, b->s->k, begin, length, true);
    a.state_in = b->dstate; /* zeros before the first block, then in place */
  }
  CHECK(s == HK_OK, "%s: %s", decision, hk_last_error());
  CHECK(!memcmp(b->got, b->want, (size_t)N * (size_t)b->s->k * LENGTH * bytes),
        "%s: blocks of %d, c %d k %d groups %d window %d dilation %d type %d layout %d differ from the whole", decision,
        length, b->s->c, b->s->k, b->s->groups, b->s->window, b->s->dilation, (int)b->type, (int)b->layout);
  hk_plan_destroy(plan);
  hk_gpu_free(workspace);
}

static int run_signal(bench *b) {
  const hk_options cpu = {.size = sizeof cpu, .decision = "ref"};
  const hk_weights w = {.size = sizeof w, .f = b->f};
  hk_plan *plan = NULL;
  int ran = 0;
  CHECK(problem_make(&b->p, b->s, b->type, b->layout, LENGTH) == HK_OK, "%s", hk_last_error());
  const hk_args a = {.size = sizeof a, .x = b->x, .y = b->want};
  CHECK(hk_plan_create(&plan, &b->p, NULL, &cpu, &w) == HK_OK && hk_plan_execute(plan, &a) == HK_OK, "%s",
        hk_last_error());
  hk_plan_destroy(plan);
  for (size_t i = 0; i < sizeof blocks / sizeof *blocks; ++i) {
    gpu_names n = {.once = "state / wgmma"}; /* one tile stands for all: the others see no state either */
    const hk_options o = {.size = sizeof o, .device = HK_CUDA, .stateful = 1};
    CHECK(problem_make(&b->p, b->s, b->type, b->layout, blocks[i]) == HK_OK, "%s", hk_last_error());
    CHECK(hk_plan_candidates(&b->p, NULL, &o, gpu_names_collect, &n) == HK_OK && n.count > 0, "no decision: %s",
          hk_last_error());
    for (int j = 0; j < n.count; ++j) run_decision(b, blocks[i], n.text[j]);
    ran += n.count;
  }
  return ran;
}

int main(void) {
  hk_gpu gpu = {.size = sizeof gpu};
  if (hk_gpu_info(&gpu) || !gpu.kernels) return printf("no CUDA device: %s\n", hk_last_error()), 77;
  const size_t most = (size_t)N * 128 * LENGTH * 8;
  bench b = {.x = malloc(most), .f = malloc(most), .want = malloc(most), .got = malloc(most), .piece = malloc(most)};
  uint64_t seed = 9;
  int ran = 0;
  if (hk_gpu_alloc(&b.dx, most) || hk_gpu_alloc(&b.dy, most) || hk_gpu_alloc(&b.dstate, most)) return 1;
  for (size_t s = 0; s < sizeof signals / sizeof *signals; ++s)
    for (size_t t = 0; t < sizeof types / sizeof *types; ++t)
      for (int layout = HK_CHANNELS_FIRST; layout <= HK_CHANNELS_LAST; ++layout) {
        if ((s + t + (size_t)layout) % 2) continue; /* each type and each layout for half of the signals, in turns */
        b.s = &signals[s], b.type = types[t], b.layout = (hk_layout)layout;
        for (int i = 0; i < N * b.s->c * LENGTH; ++i) hk_store_element(b.type, b.x, i, hk_test_integer(&seed, 2));
        for (int i = 0; i < b.s->k * (b.s->c / b.s->groups) * b.s->window; ++i)
          hk_store_element(b.type, b.f, i, hk_test_integer(&seed, 1));
        ran += run_signal(&b);
      }
  printf("%d decisions run over their blocks\n", ran);
  free(b.x), free(b.f), free(b.want), free(b.got), free(b.piece);
  hk_gpu_free(b.dx), hk_gpu_free(b.dy), hk_gpu_free(b.dstate);
  return hk_test_end();
}
