/* Struct sizes: a smaller one is an older header's, whose missing fields are zero; a larger one, or none, is refused by
 * name; what the library fills keeps to the caller's size. Each struct here lies at the end of a page, so that reading
 * or writing beyond the size stated is a fault. And the call for the simplest case. */
#include <stddef.h>
#include <sys/mman.h>
#include <unistd.h>

#include "support/check.h"

static char *page_end;

/* A struct's first `size` bytes before a page that nobody may touch; the size stated is `size`. */
static void *cut(const void *full, size_t size) {
  char *to = page_end - size;
  memcpy(to, full, size);
  memcpy(to, &size, sizeof size);
  return to;
}
#define CUT(full, field) cut(&(full), offsetof(__typeof__(full), field))

enum { C = 2, K = 3, W = 8 };
static float x[C * W], f[K * C], bias[K] = {1, 2, 3}, y[K * W];

static hk_problem pointwise(void) {
  hk_problem p;
  CHECK_STATUS(HK_OK, "", hk_problem_parse(&p, "1d_n1_c2_i8_k3_w1_first"));
  return p;
}

static void check_y(const float *added) {
  int wrong = 0;
  for (int k = 0; k < K; k++)
    for (int i = 0; i < W; i++)
      wrong += y[k * W + i] != x[i] * f[k * C] + x[W + i] * f[k * C + 1] + (added ? added[k] : 0);
  CHECK(!wrong, "%d wrong values", wrong);
  memset(y, 0, sizeof y);
}

static void problems(void) {
  hk_problem p = pointwise();
  hk_problem *less = cut(&p, sizeof p - 16); /* y.at[1..2] are beyond the rank */
  hk_extent e;
  int64_t out[HK_MAX_RANK];
  double flops;
  char text[256];
  CHECK_STATUS(HK_OK, "", hk_problem_check(less));
  CHECK_STATUS(HK_OK, "", hk_problem_output(less, out, NULL));
  CHECK_STATUS(HK_OK, "", hk_problem_extents(less, &e, NULL, NULL));
  CHECK_STATUS(HK_OK, "", hk_problem_work(less, &flops, NULL));
  CHECK_STATUS(HK_OK, "", hk_problem_print(less, text, sizeof text, NULL));
  CHECK(!strcmp(text, "1d_n1_c2_i8_k3_w1_f32_first"), "%s", text);
  CHECK_STATUS(HK_OK, "", hk_problem_grad_input(less, &p));
  CHECK_STATUS(HK_OK, "", hk_problem_grad_filter(less, &p));
  CHECK_STATUS(HK_OK, "", hk_grad_bias(less, y, bias));
  for (int k = 0; k < K; k++) bias[k] = (float)(k + 1);
  CHECK_STATUS(HK_INVALID, "written", hk_problem_dense(less, HK_CHANNELS_LAST));
  CHECK_STATUS(HK_INVALID, "written", hk_problem_pad(less, HK_PAD_VALID));
  less = cut(&p, 16); /* no stride of y, for one: zero, and said so */
  CHECK_STATUS(HK_INVALID, "must be", hk_problem_check(less));
  const hk_conv_desc d = {.size = sizeof d, .rank = 1, .n = 1, .c = C, .k = K, .in = {W}, .window = {1}};
  CHECK_STATUS(HK_OK, "", hk_problem_conv(&p, CUT(d, padding)));
  CHECK_STATUS(HK_OK, "", hk_problem_conv_transpose(&p, CUT(d, padding)));
  const int64_t xs[3] = {1, C, W}, fs[3] = {K, C, 1};
  const hk_xla_desc a = {
      .size = sizeof a, .x_spec = "NCW", .f_spec = "OIW", .y_spec = "NCW", .x_shape = xs, .f_shape = fs};
  CHECK_STATUS(HK_OK, "", hk_problem_xla(&p, CUT(a, strides)));
}

static void plans(void) {
  const hk_problem p = pointwise();
  const hk_epilogue e = {.size = sizeof e, .bias = 1};
  const hk_options o = {.size = sizeof o, .threads = 1};
  const hk_weights w = {.size = sizeof w, .f = f, .bias = bias};
  hk_plan *plan;
  CHECK_STATUS(HK_OK, "", hk_plan_create(&plan, CUT(p, y.at[1]), &e, &o, &w));
  hk_plan_destroy(plan);
  char text[64];
  CHECK_STATUS(HK_OK, "", hk_epilogue_print(CUT(e, a), text, sizeof text, NULL));
  CHECK(!strcmp(text, "bias"), "%s", text);
  CHECK_STATUS(HK_OK, "", hk_plan_create(&plan, &p, CUT(e, a), &o, &w));
  hk_plan_destroy(plan);
  CHECK_STATUS(HK_OK, "", hk_plan_create(&plan, &p, &e, CUT(o, parallel_for), &w));
  hk_plan_destroy(plan);
  CHECK_STATUS(HK_OK, "", hk_plan_create(&plan, &p, &e, &o, CUT(w, slopes)));
  hk_plan *like;
  CHECK_STATUS(HK_OK, "", hk_plan_create_like(&like, plan, CUT(p, y.at[1])));
  hk_plan_destroy(like);
  const hk_args a = {.size = sizeof a, .x = x, .y = y};
  CHECK(hk_plan_workspace(plan) == 0, "a pointwise plan of one thread needs a workspace");
  CHECK_STATUS(HK_OK, "", hk_plan_execute(plan, CUT(a, c)));
  check_y(bias);
  CHECK_STATUS(HK_OK, "", hk_plan_execute(plan, &a));
  check_y(bias);
  CHECK_STATUS(HK_INVALID, "args.y is NULL", hk_plan_execute(plan, CUT(a, f)));
  CHECK_STATUS(HK_INVALID, "args is NULL", hk_plan_execute(plan, NULL));
  CHECK_STATUS(HK_INVALID, "plan is NULL", hk_plan_execute(NULL, &a));
  hk_args b = a;
  for (size_t size = 0; size < 4 * sizeof b; size = size < 64 ? size + 1 : size + 8) {
    b.size = size;
    if (size > sizeof b) CHECK_STATUS(HK_INVALID, "newer hankel.h", hk_plan_execute(plan, &b));
    else if (size < 16 || size % 8) CHECK_STATUS(HK_INVALID, "args.size", hk_plan_execute(plan, &b));
  }
  hk_plan_destroy(plan);
}

static void count(void *context, const hk_candidate *c) {
  if (c->size == sizeof *c) ++*(int *)context;
}

static void filled(void) {
  const hk_machine none = {0};
  hk_machine whole = {.size = sizeof whole}, *m = CUT(none, family);
  CHECK_STATUS(HK_OK, "", hk_machine_info(m));
  CHECK_STATUS(HK_OK, "", hk_machine_info(&whole));
  CHECK(m->size == offsetof(hk_machine, family) && m->l3_bytes == whole.l3_bytes && m->cores == whole.cores,
        "half a machine");
  whole.size += 8;
  CHECK_STATUS(HK_INVALID, "machine.size", hk_machine_info(&whole));
  const hk_gpu gone = {0};
  const hk_status s = hk_gpu_info(CUT(gone, l2_bytes));
  CHECK(s == HK_OK || s == HK_DEVICE, "%s", hk_last_error());
  const hk_problem p = pointwise();
  const hk_options o = {.size = sizeof o, .threads = 1};
  int candidates = 0;
  CHECK_STATUS(HK_OK, "", hk_plan_candidates(&p, NULL, CUT(o, parallel_for), count, &candidates));
  CHECK(candidates > 0, "no candidates");
}

/* Steps of an older header lie closer together. */
static void chains(void) {
  enum { STEP = offsetof(hk_step, h0) };
  static const float two = 2, three = 3;
  const hk_step steps[2] = {{.size = STEP, .kind = HK_STEP_CONV, .x = 1, .k = 1, .f = &two},
                            {.size = STEP, .kind = HK_STEP_CONV, .x = 2, .k = 1, .f = &three}};
  char *packed = page_end - 2 * STEP;
  for (int i = 0; i < 2; i++) memcpy(packed + i * STEP, &steps[i], STEP);
  hk_chain_desc d = {.size = offsetof(hk_chain_desc, isa), .channels = 1, .max_block = 4, .count = 2};
  d.steps = (const hk_step *)(const void *)packed;
  hk_chain *chain = NULL;
  hk_stream *stream = NULL;
  float in[4] = {1, 2, 3, 4}, out[4] = {0};
  CHECK_STATUS(HK_OK, "", hk_chain_create(&chain, &d, NULL, 0));
  CHECK_STATUS(HK_OK, "", hk_stream_create(&stream, chain, NULL, 0));
  CHECK_STATUS(HK_OK, "", hk_stream_process(stream, in, 4, out, NULL));
  CHECK(out[0] == 6 && out[3] == 24, "got %g and %g", (double)out[0], (double)out[3]);
  hk_stream_destroy(stream);
  packed[STEP] = 16;
  hk_chain *other = NULL;
  CHECK_STATUS(HK_INVALID, "steps[1].size", hk_chain_create(&other, &d, NULL, 0));
  const hk_chain_facts none = {0};
  hk_chain_facts *facts = CUT(none, flops);
  CHECK_STATUS(HK_OK, "", hk_chain_info(chain, facts));
  CHECK(facts->max_block == 4 && facts->size == offsetof(hk_chain_facts, flops), "half the facts");
  CHECK_STATUS(HK_INVALID, "facts is NULL", hk_chain_info(chain, NULL));
  hk_chain_destroy(chain);
}

static void once(void) {
  const hk_conv_desc d = {.size = sizeof d, .rank = 1, .n = 1, .c = C, .k = K, .in = {W}, .window = {1}};
  CHECK_STATUS(HK_OK, "", hk_conv(&d, x, f, NULL, y));
  check_y(NULL);
  CHECK_STATUS(HK_OK, "", hk_conv(&d, x, f, bias, y));
  check_y(bias);
  CHECK_STATUS(HK_INVALID, "desc is NULL", hk_conv(NULL, x, f, bias, y));
  CHECK_STATUS(HK_INVALID, "x is NULL", hk_conv(&d, NULL, f, bias, y));
  CHECK_STATUS(HK_INVALID, "f is NULL", hk_conv(&d, x, NULL, bias, y));
  CHECK_STATUS(HK_INVALID, "y is NULL", hk_conv(&d, x, f, bias, NULL));
}

int main(void) {
  const size_t page = (size_t)sysconf(_SC_PAGESIZE);
  char *pages = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (pages == MAP_FAILED || mprotect(pages + page, page, PROT_NONE)) return 1;
  page_end = pages + page;
  for (int i = 0; i < C * W; i++) x[i] = (float)(i % 5 - 2);
  for (int i = 0; i < K * C; i++) f[i] = (float)(i - 2);
  problems();
  plans();
  filled();
  chains();
  once();
  return hk_test_end();
}
