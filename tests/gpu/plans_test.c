/* Many plans alive at once on the device, as a network has them: every algorithm with several settings, all created
 * before any runs, then executed in random order on one stream, on several, from several threads and from captured
 * graphs. Each gives the bits that it gave alone. Fails when an algorithm or a path of the
 * device is reached by no problem of the list. usage: gpu_plans_test [once [PART PARTS]]; once executes each plan once
 * and alone, for compute-sanitizer, of every PARTS-th problem if told. Exits with 77 without a device. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cuda/cuda.h"
#include "plan/plan.h"
#include "support/check.h"
#include "support/trial.h"

enum { MOST = 1400, STREAMS = 4, ROUNDS = 3, SETTINGS = 3 };

typedef struct row {
  const char *problem, *epilogue;
  uint32_t math;
  bool stateful, late;
} row;
static const row rows[] = {
    {"2d_n2_c64_i12x10_k136_w3_p1_bf16_last", "bias+relu", 0, 0, 0},
    {"2d_n2_c64_i28x28_k64_w3_p1_f16_last", "none", 0, 0, 0},
    {"2d_n2_c160_i12x10_k136_w3_p1_f8e4m3:f8e4m3:f32_last", "none", 0, 0, 0},
    {"2d_n2_c64_i14x14_k64_w3_p1_f32_last", "bias", HK_MATH_TF32, 0, 0},
    {"2d_n2_c64_i14x14_k64_w3_p1_f32_last", "bias", HK_MATH_SPLIT_F32, 0, 0},
    {"2d_n2_c64_i16x12_k64_w1_bf16_first", "none", 0, 0, 0},
    {"2d_n2_c64_i14x14_k72_w3_p1_bf16_first", "bias+relu", 0, 0, 0},
    {"2d_n2_c64_i28x28_k128_w3_p1_f16_first", "bias", 0, 0, 1},
    {"2d_n2_c67_i9x8_k40_w3_p1_bf16_first", "bias+silu", 0, 0, 0},
    {"2d_n2_c256_i28x28_k256_w3_p1_g32_bf16_last", "none", 0, 0, 0},
    {"2d_n2_c128_i28x28_k128_w3_p1_g32_bf16_last", "bias+relu", 0, 0, 0},
    {"2d_n2_c64_i56x56_k64_w3_p1_g32_f16_last", "none", 0, 0, 0},
    {"2d_n2_c64_i9x12_k64_w3_p1_g4_bf16:bf16:f32_first", "none", 0, 0, 0},
    {"2d_n2_c48_i28x28_k48_w3_s2_p1_g48_bf16_last", "bias+clip:0:6", 0, 0, 0},
    {"2d_n2_c96_i28x28_k96_w7_p3_g96_bf16_last", "none", 0, 0, 0},
    {"2d_n2_c96_i28x28_k96_w7_p3_g96_bf16_first", "bias", 0, 0, 0},
    {"2d_n2_c24_i56x56_k24_w5_p2_g24_f16_first", "none", 0, 0, 0},
    {"2d_n2_c32_i30x15_k32_w3_p1_g32_f32_last", "none", 0, 0, 0},
    {"2d_n2_c32_i30x16_k32_w3_p1_g32_f32_first", "none", 0, 0, 0},
    {"1d_n2_c64_i300_k64_w4_p3:0_g64_bf16_last", "bias+silu", 0, 0, 0},
    {"1d_n2_c64_i300_k64_w4_p3:0_g64_bf16_first", "bias+silu", 0, 0, 0},
    {"1d_n2_c24_i1234_k24_w20_p19:0_g24_bf16_first", "none", 0, 0, 0},
    {"1d_n2_c24_i1234_k24_w150_g24_f16_last", "none", 0, 0, 0},
    {"1d_n2_c24_i523_k24_w65_g24_f16:f16:f32_first", "none", 0, 0, 0},
    {"1d_n2_c16_i600_k16_w3_p32:0_d16_g16_f32_first", "none", 0, 0, 0},
    {"2d_n2_c3_i64x48_k64_w7_s2_p3_bf16_last", "bias+relu", 0, 0, 0},
    {"2d_n2_c3_i64x48_k64_w7_s2_p3_f16_first", "none", 0, 0, 0},
    {"2d_n2_c3_i32x48_k72_w16x16_s16_f16_first", "none", 0, 0, 0},
    {"2d_n2_c5_i9x8_k7_w3_p1_f32_first", "scale+bias+tanh", 0, 0, 1},
    {"2d_n1_c16_i8x8_k32_w3_p1_u8:s8:s8_xz3_yz-2_last", "scale+bias", 0, 0, 0},
    {"3d_n2_c24_i5x6x7_k72_w2x3x2_s1x1x2_p1_bf16_last", "none", 0, 0, 0},
    /* offsets that take aligned pointers off their boundary */
    {"2d_n1_c24_i16x7_k18_w4x1_s1x2_p3:0x1_d3x1_g6_bf16_xs=0.4.2688.1.168.24_fs=0.48.16.1.4.4_ys=150.1980.22.-66.-2."
     "330",
     "scale1+bias", 0, 0, 0},
    {"2d_n2_c64_i12x10_k64_w3_p1_bf16_xs=4.0.7680.1.640.64_fs=0.0.576.1.192.64_ys=4.0.7680.1.640.64", "bias", 0, 0, 0},
    /* gradients of filters: depthwise, few channels */
    {"2d_n24_c2_i12x10_k24_w12x10_p1_b24_bf16_xs=0.1.0.2880.240.24_fs=0.1.0.2880.240.24_ys=0.9.0.9.3.1", "none", 0, 0,
     1},
    {"2d_n3_c2_i30x20_k16_w15x10_p2:1_d2_bf16_xs=0.0.1.1800.60.3_fs=0.0.1.2400.160.16_ys=0.0.1.75.15.3", "bias", 0, 0,
     0},
    /* a gate makes one thread need two channels: finish / ... */
    {"2d_n2_c64_i12x10_k128_w3_p1_bf16_last", "gated:tanh:sigmoid", 0, 0, 0},
    {"2d_n2_c64_i12x10_k128_w3_p1_bf16_first", "gated:tanh:sigmoid", 0, 0, 0},
    {"2d_n2_c64_i14x14_k64_w3_p1_g64_bf16_last", "gated:tanh:sigmoid", 0, 0, 0},
    {"2d_n2_c64_i14x14_k64_w3_p1_g64_bf16_first", "gated:tanh:sigmoid", 0, 0, 0},
    {"2d_n2_c128_i28x28_k128_w3_p1_g32_bf16_last", "gated:tanh:sigmoid", 0, 0, 0},
    {"2d_n2_c64_i9x12_k64_w3_p1_g4_bf16_last", "gated:tanh:sigmoid", 0, 0, 0},
    {"2d_n2_c3_i64x48_k64_w7_s2_p3_bf16_last", "gated:tanh:sigmoid", 0, 0, 0},
    {"1d_n2_c64_i300_k64_w4_p3:0_g64_bf16_first", "gated:tanh:sigmoid", 0, 0, 0},
    {"1d_n2_c24_i1234_k24_w150_g24_f16_first", "gated:tanh:sigmoid", 0, 0, 0},
    {"2d_n2_c5_i9x8_k8_w3_p1_f32_first", "gated:tanh:sigmoid", 0, 0, 0},
    {"2d_n2_c32_i30x15_k32_w3_p1_g32_f32_last", "gated:tanh:sigmoid", 0, 0, 0},
    {"2d_n2_c32_i30x16_k32_w3_p1_g32_f32_first", "gated:tanh:sigmoid", 0, 0, 0},
    {"1d_n2_c16_i300_k16_w4_p3:0_g16_f32_first", "gated:tanh:sigmoid", 0, 0, 0},
    {"2d_n2_c64_i28x28_k64_w3_p1_g4_bf16_last", "none", 0, 0, 0},
    /* streaming state: state / ..., with a gate state / finish / ... */
    {"1d_n2_c64_i96_k64_w4_p3:0_g64_bf16_last", "bias+silu", 0, 1, 0},
    {"1d_n2_c64_i96_k64_w4_p3:0_g64_bf16_first", "bias+silu", 0, 1, 0},
    {"1d_n2_c24_i96_k24_w31_p30:0_g24_f16_first", "none", 0, 1, 0},
    {"1d_n2_c32_i96_k64_w5_p4:0_g4_bf16_last", "none", 0, 1, 0},
    {"1d_n2_c64_i96_k72_w3_p4:0_d2_bf16_last", "bias", 0, 1, 0},
    {"1d_n2_c64_i96_k72_w3_p4:0_d2_bf16_first", "bias", 0, 1, 0},
    {"1d_n2_c3_i96_k64_w7_p6:0_bf16_last", "none", 0, 1, 0},
    {"1d_n2_c5_i96_k7_w2_p40:0_d40_f32_first", "none", 0, 1, 0},
    {"1d_n2_c64_i96_k72_w3_p4:0_d2_bf16_last", "gated:tanh:sigmoid", 0, 1, 0},
    {"1d_n2_c64_i96_k72_w3_p4:0_d2_bf16_first", "bias+blended:tanh:sigmoid", 0, 1, 0},
    {"1d_n2_c64_i96_k64_w4_p3:0_g64_bf16_last", "gated:tanh:sigmoid", 0, 1, 0},
    /* input dilation: polyphase / ..., with launches that overlap, rows without taps, weights that come at execute */
    {"2d_n3_c64_i28x28_k64_w3_p1:2_l2_bf16_last", "bias+relu", 0, 0, 0},
    {"2d_n2_c128_i15x13_k136_w4_p2_l2_f16_last", "none", 0, 0, 0},
    {"2d_n2_c128_i15x13_k136_w4_p2_l2_bf16_last", "none", 0, 0, 1},
    {"2d_n2_c64_i14x14_k40_w1_p0:1_l2_bf16_last", "bias+silu", 0, 0, 0},
    {"2d_n2_c64_i9x9_k64_w3_p1:3_l3_bf16:bf16:f32_last", "bias", 0, 0, 0},
    {"2d_n2_c64_i24x20_k3_w7_p3:4_l2_bf16_last", "none", 0, 0, 0},
    {"2d_n2_c64_i12x10_k4_w3_p1:2_l2_bf16_last", "none", 0, 0, 0},
    {"2d_n3_c64_i12x10_k8_w4_p2_l2_f16:f16:f32_last", "scale1+relu", 0, 0, 0},
    {"2d_n2_c40_i9x14_k3_w5x2_p2:3x1:2_l2x3_bf16_last", "none", 0, 0, 0},
    {"1d_n2_c64_i99_k5_w4_p2_l2_bf16_last", "none", 0, 0, 0},
    {"1d_n2_c64_i99_k64_w5_p4_d2_l3_f32_last", "none", HK_MATH_TF32, 0, 0},
    {"3d_n1_c32_i4x5x6_k24_w3_p1_l2_bf16_last", "scale+bias", 0, 0, 0},
    {"2d_n2_c64_i12x10_k128_w4_p2_l2_bf16_last", "gated:tanh:sigmoid", 0, 0, 0},
    {"2d_n2_c64_i12x10_k72_w4_p2_l2_bf16_first", "none", 0, 0, 0}};

/* The rewrites of a decision and its algorithm, without knobs. */
static const char *const paths[] = {"finish / cuda_slide",
                                    "finish / cuda_plane",
                                    "finish / cuda_row",
                                    "finish / cuda_toeplitz",
                                    "finish / cuda_dw_last",
                                    "finish / cuda_dw_first",
                                    "finish / cuda_grouped",
                                    "finish / cuda_stem",
                                    "finish / wgmma",
                                    "finish / wgmma_relaid",
                                    "state / cuda_row",
                                    "state / cuda_toeplitz",
                                    "state / cuda_dw_last",
                                    "state / cuda_dw_first",
                                    "state / cuda_grouped",
                                    "state / cuda_stem",
                                    "state / wgmma",
                                    "state / wgmma_relaid",
                                    "state / cuda_direct",
                                    "state / finish / wgmma",
                                    "state / finish / wgmma_relaid",
                                    "state / finish / cuda_dw_last",
                                    "polyphase / wgmma",
                                    "polyphase / wgmma_relaid",
                                    "subpixel / wgmma",
                                    "finish / polyphase / wgmma"};

static void name_of(const char *decision, char *name, size_t size) {
  const char *algorithm = decision_algorithm(decision);
  snprintf(name, size, "%.*s%.*s", (int)(algorithm - decision), decision, (int)strcspn(algorithm, " "), algorithm);
}

typedef struct live {
  hk_plan *plan;
  hk_args args;
  const char *problem;
  char decision[256];
  void *memory[8];
  size_t y_bytes;
  char *want, *got;
} live;
static live plans[MOST];
static int count;

static void *on_device(live *l, int slot, const void *from, size_t bytes) {
  if (!from) return NULL;
  if (hk_gpu_alloc(&l->memory[slot], bytes + 1) || hk_gpu_copy(l->memory[slot], from, bytes))
    exit((fprintf(stderr, "%s\n", hk_last_error()), 1));
  return l->memory[slot];
}

/* What a workspace holds before a call may not matter. It is written here also because initcheck does not see the
 * stores of TMA: kernels that read back what TMA wrote would be reported. */
static void fill_workspace(live *l, int byte) {
  const size_t bytes = l->args.workspace_bytes;
  char *from = bytes ? malloc(bytes) : NULL;
  if (from && (memset(from, byte, bytes), hk_gpu_copy(l->memory[5], from, bytes)))
    exit((fprintf(stderr, "%s\n", hk_last_error()), 1));
  free(from);
}

typedef struct gather {
  trial *t;
  const row *r;
  hk_options o;
  char last[64];
  int settings;
} gather;

/* A plan of this decision with tensors of its own on the device. */
static void add(const gather *g, const char *decision) {
  trial *t = g->t;
  hk_options o = g->o;
  const hk_problem *p = &t->problem;
  o.decision = decision;
  if (count == MOST) return;
  live *l = &plans[count];
  *l = (live){.problem = g->r->problem};
  snprintf(l->decision, sizeof l->decision, "%s", decision);
  hk_weights w = t->weights;
  if (g->r->late) w.f = w.scale = w.bias = NULL;
  CHECK(hk_plan_create(&l->plan, p, &t->epilogue, &o, &w) == HK_OK, "%s: %s", decision, hk_last_error());
  if (!l->plan) return;
  const size_t xb = hk_type_bytes(p->x_type), fb = hk_type_bytes(p->f_type),
               state = (size_t)(p->n * p->c * p->dilation[0] * (p->window[0] - 1));
  l->args = (hk_args){.size = sizeof l->args, .workspace_bytes = hk_plan_workspace(l->plan)};
  l->y_bytes = trial_y_bytes(t);
  l->args.x = (char *)on_device(l, 0, t->memory[0], (size_t)t->x.elements * xb) + (size_t)t->x.below * xb;
  l->args.y = (char *)on_device(l, 1, t->memory[2], l->y_bytes) + (size_t)t->y.below * hk_type_bytes(p->y_type);
  if (g->r->late) {
    l->args.f = on_device(l, 2, t->memory[1], (size_t)t->f.elements * fb);
    if (t->epilogue.scale) l->args.scale = on_device(l, 3, t->memory[4], (size_t)p->k * 4);
    if (t->epilogue.bias) l->args.bias = on_device(l, 4, t->memory[5], (size_t)p->k * 4);
  }
  if (l->args.workspace_bytes) hk_gpu_alloc(&l->memory[5], l->args.workspace_bytes);
  l->args.workspace = l->memory[5];
  fill_workspace(l, 0xFF);
  if (g->o.stateful) {
    l->args.state_in = on_device(l, 6, t->memory[0], state * xb);
    l->args.state_out = on_device(l, 7, t->memory[0], state * xb);
  }
  l->want = malloc(l->y_bytes), l->got = malloc(l->y_bytes);
  count++;
}

/* The first few settings of each path and algorithm. */
static void collect(void *context, const hk_candidate *c) {
  gather *g = context;
  if (c->refusal) return;
  char name[64] = "";
  name_of(c->decision, name, sizeof name);
  g->settings = strcmp(name, g->last) ? 0 : g->settings + 1;
  strcpy(g->last, name);
  if (g->settings < SETTINGS) add(g, c->decision);
}

/* Whether a plan has that name, or that algorithm behind any path. */
static bool reached(const char *wanted, bool behind_any) {
  char name[64];
  for (int i = 0; i < count; i++) {
    name_of(behind_any ? decision_algorithm(plans[i].decision) : plans[i].decision, name, sizeof name);
    if (!strcmp(name, wanted)) return true;
  }
  return false;
}

static void make_plans(size_t part, size_t parts) {
  for (size_t i = part; i < sizeof rows / sizeof *rows; i += parts) {
    trial t;
    trial_make(&t, rows[i].problem, rows[i].epilogue, i + 1);
    gather g = {.t = &t,
                .r = &rows[i],
                .o = {.size = sizeof g.o,
                      .device = HK_CUDA,
                      .math = rows[i].math,
                      .stateful = rows[i].stateful,
                      .rigor = HK_PATIENT}};
    CHECK(hk_plan_candidates(&t.problem, &t.epilogue, &g.o, collect, &g) == HK_OK, "%s: %s", rows[i].problem,
          hk_last_error());
    trial_free(&t);
  }
  for (int a = 0; hk_algos[a] && parts == 1; a++)
    CHECK(hk_algos[a]->device != HK_CUDA || reached(hk_algos[a]->name, true), "no problem of the list is offered %s",
          hk_algos[a]->name);
  for (size_t i = 0; i < sizeof paths / sizeof *paths && parts == 1; i++)
    CHECK(reached(paths[i], false), "no problem of the list is offered %s", paths[i]);
  CHECK(count < MOST, "more than %d plans: some were left out", MOST);
  printf("%d plans\n", count);
}

static hk_status start(const live *l, void *stream) {
  hk_args a = l->args;
  a.stream = stream;
  return hk_plan_execute(l->plan, &a);
}

static void shuffle(int *order, uint64_t *seed) {
  for (int i = 0; i < count; i++) order[i] = i;
  for (int i = count - 1; i > 0; i--) {
    const int j = (int)(((uint64_t)(unsigned)(hk_test_integer(seed, 1 << 20) + (1 << 20))) % (uint64_t)(i + 1)),
              keep = order[i];
    order[i] = order[j], order[j] = keep;
  }
}

static void compare(live *l, const char *how) {
  if (hk_gpu_copy(l->got, l->memory[1], l->y_bytes)) exit((fprintf(stderr, "%s\n", hk_last_error()), 1));
  CHECK(!memcmp(l->got, l->want, l->y_bytes), "%s %s: other bits %s", l->problem, l->decision, how);
}

/* The workspace full of NaN, then, unless once, of zeros. */
static void alone(bool once) {
  for (int i = 0; i < count; i++) {
    CHECK(start(&plans[i], NULL) == HK_OK, "%s %s: %s", plans[i].problem, plans[i].decision, hk_last_error());
    CHECK(hk_gpu_sync(NULL) == HK_OK, "%s %s: %s", plans[i].problem, plans[i].decision, hk_last_error());
    hk_gpu_copy(plans[i].want, plans[i].memory[1], plans[i].y_bytes);
    if (once || !plans[i].args.workspace_bytes) continue;
    fill_workspace(&plans[i], 0);
    CHECK(start(&plans[i], NULL) == HK_OK && hk_gpu_sync(NULL) == HK_OK, "%s", hk_last_error());
    compare(&plans[i], "from a workspace of zeros");
  }
}

/* Random order over several streams; a plan stays on one, for its workspace is one. */
static void on_streams(hk_cu_stream *streams, int used, uint64_t *seed) {
  int order[MOST];
  for (int round = 0; round < ROUNDS; round++) {
    shuffle(order, seed);
    for (int i = 0; i < count; i++)
      CHECK(start(&plans[order[i]], streams[order[i] % used]) == HK_OK, "%s: %s", plans[order[i]].decision,
            hk_last_error());
  }
  CHECK(hk_gpu_sync(NULL) == HK_OK, "%s", hk_last_error());
  for (int i = 0; i < count; i++) compare(&plans[i], used > 1 ? "on several streams" : "in random order");
}

typedef struct job {
  int first, step, failed;
  hk_cu_stream stream;
} job;

static void *work(void *context) {
  job *j = context;
  for (int round = 0; round < ROUNDS; round++)
    for (int i = j->first; i < count; i += j->step)
      if (start(&plans[i], j->stream)) j->failed++;
  return NULL;
}

static void from_threads(hk_cu_stream *streams) {
  pthread_t thread[STREAMS];
  job jobs[STREAMS];
  for (int i = 0; i < STREAMS; i++) {
    jobs[i] = (job){i, STREAMS, 0, streams[i]};
    pthread_create(&thread[i], NULL, work, &jobs[i]);
  }
  for (int i = 0; i < STREAMS; i++) {
    pthread_join(thread[i], NULL);
    CHECK(jobs[i].failed == 0, "%d calls of thread %d failed", jobs[i].failed, i);
  }
  CHECK(hk_gpu_sync(NULL) == HK_OK, "%s", hk_last_error());
  for (int i = 0; i < count; i++) compare(&plans[i], "from several threads");
}

static void captured(hk_cu_stream stream, uint64_t *seed) {
  enum { THREAD_LOCAL = 1 };
  const hk_cu_driver *cu = hk_cu();
  int order[MOST];
  hk_cu_graph graph = NULL;
  hk_cu_exec exec = NULL;
  shuffle(order, seed);
  CHECK(!cu->capture_begin(stream, THREAD_LOCAL), "capture");
  for (int i = 0; i < count; i++)
    CHECK(start(&plans[order[i]], stream) == HK_OK, "%s: %s", plans[order[i]].decision, hk_last_error());
  CHECK(!cu->capture_end(stream, &graph) && !cu->graph_instantiate(&exec, graph, 0), "the graph could not be made");
  for (int round = 0; exec && round < ROUNDS; round++) CHECK(!cu->graph_launch(exec, stream), "graph launch");
  CHECK(hk_gpu_sync(NULL) == HK_OK, "%s", hk_last_error());
  for (int i = 0; i < count; i++) compare(&plans[i], "from a graph");
  if (exec) cu->exec_destroy(exec);
  if (graph) cu->graph_destroy(graph);
}

int main(int argc, char **argv) {
  hk_gpu gpu = {.size = sizeof gpu};
  uint64_t seed = 4;
  if (hk_gpu_info(&gpu)) {
    printf("%s\n", hk_last_error());
    return 77;
  }
  make_plans(argc == 4 ? (size_t)atoi(argv[2]) : 0, argc == 4 ? (size_t)atoi(argv[3]) : 1);
  const bool once = argc >= 2 && !strcmp(argv[1], "once");
  alone(once);
  if (!once) {
    hk_cu_stream streams[STREAMS];
    for (int i = 0; i < STREAMS; i++) CHECK(!hk_cu()->stream_create(&streams[i], 1), "stream");
    on_streams(streams, 1, &seed);
    on_streams(streams, STREAMS, &seed);
    from_threads(streams);
    captured(streams[0], &seed);
    for (int i = 0; i < STREAMS; i++) hk_cu()->stream_destroy(streams[i]);
  }
  for (int i = 0; i < count; i++) {
    hk_plan_destroy(plans[i].plan);
    for (int m = 0; m < 8; m++) hk_gpu_free(plans[i].memory[m]);
    free(plans[i].want), free(plans[i].got);
  }
  return hk_test_end();
}
