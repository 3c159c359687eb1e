/* Bad input, by name: each gets a status and a sentence that names the field, and nothing is written. */
#include <limits.h>
#include <stdlib.h>

#include "support/check.h"

static hk_problem good(void) {
  hk_problem p;
  CHECK_STATUS(HK_OK, "", hk_problem_parse(&p, "2d_n2_c4_i9x9_k6_w3x3_p1_g2_last"));
  return p;
}

/* One field of a good problem spoilt. */
#define SPOIL(word, change)                                                                                            \
  do {                                                                                                                 \
    hk_problem p = good();                                                                                             \
    change;                                                                                                            \
    CHECK_STATUS(HK_INVALID, word, hk_problem_check(&p));                                                              \
    hk_plan *plan = (hk_plan *)1;                                                                                      \
    CHECK_STATUS(HK_INVALID, word, hk_plan_create(&plan, &p, NULL, NULL, NULL));                                       \
    CHECK(plan == NULL, "a plan came back");                                                                           \
  } while (0)

static void problems(void) {
  SPOIL("stride", p.stride[1] = 0); /* division by zero in the output size */
  SPOIL("stride", p.stride[0] = -2);
  SPOIL("dilation", p.dilation[0] = 0);
  SPOIL("in_dilation", p.in_dilation[1] = 0);
  SPOIL("feature_groups", p.feature_groups = 0);
  SPOIL("batch_groups", p.batch_groups = 0);
  SPOIL("feature_groups", p.feature_groups = 3); /* does not divide c = 4 */
  SPOIL("k", p.k = 5);
  SPOIL("at most one", p.batch_groups = 2);
  SPOIL("n", p.n = -1);
  SPOIL("c", p.c = -4);
  SPOIL("in[1]", p.in[1] = -9);
  SPOIL("window[0]", p.window[0] = 0);
  SPOIL("rank", p.rank = 0);
  SPOIL("rank", p.rank = 4);
  SPOIL("size", p.size = 8);
  SPOIL("x_type", p.x_type = (hk_type)99);
  SPOIL("s32", p.x_type = HK_S32);
  SPOIL("int8", p.x_type = HK_S8);
  SPOIL("s32", p.y_type = HK_S32);
  SPOIL("x_zero", p.x_zero = 3);
  SPOIL("y_zero", p.y_zero = 1);
  SPOIL("2^48", (p.window[0] = p.window[1] = INT64_C(1) << 32)); /* 2^64 taps wrap to 0 */
  SPOIL("2^48", (p.n = INT64_MAX / 2));
  SPOIL("exceeds 2^48",
        (p.n = INT64_C(1) << 47, p.x.outer = 0)); /* no memory behind it, but sizes built on it would wrap */
  SPOIL("overflows", (p.dilation[0] = INT64_MAX));
  SPOIL("overflows", (p.in_dilation[0] = INT64_MAX));
  SPOIL("overflows", (p.pad_lo[0] = INT64_MAX));
  SPOIL("63 bits", (p.pad_lo[0] = INT64_MIN, p.pad_hi[0] = 0));
  SPOIL("overflows", (p.pad_hi[1] = INT64_MAX, p.pad_lo[1] = 1));
  SPOIL("63 bits", (p.x.at[0] = INT64_MAX / 4));
  SPOIL("63 bits", (p.f.outer = INT64_MIN));
  SPOIL("63 bits", (p.x.offset = INT64_MAX));
  SPOIL("distinct", p.y.at[1] = 0);
  SPOIL("distinct", p.y.outer = 1);
  SPOIL("distinct", p.y.at[0] = p.y.at[1]);
  SPOIL("distinct", p.y.group = p.y.channel);
  CHECK_STATUS(HK_INVALID, "NULL", hk_problem_check(NULL));
}

static void large_kernel(void) {
  hk_problem p;
  /* 65536 x 65536 taps: 2^32, legal to describe, its weights are not */
  hk_conv_desc d = {.size = sizeof d, .rank = 2, .n = 1, .c = 1, .k = 1, .in = {8, 8}, .window = {65536, 65536}};
  CHECK_STATUS(HK_INVALID, "window", hk_problem_conv(&p, &d));
  d.c = d.k = INT64_C(1) << 31;
  for (int i = 0; i < 2; i++) d.pad_lo[i] = d.pad_hi[i] = 65536;
  CHECK_STATUS(HK_INVALID, "2^48", hk_problem_conv(&p, &d));
  const hk_conv_desc vast = {.size = sizeof vast,
                             .rank = 3,
                             .n = INT64_C(1) << 40,
                             .c = 1024,
                             .k = 1,
                             .in = {1024, 1024, 1024},
                             .window = {1, 1, 1}};
  CHECK_STATUS(HK_INVALID, "2^48", hk_problem_conv(&p, &vast));
}

static void helpers(void) {
  hk_problem p;
  memset(&p, 0x5a, sizeof p);
  const hk_problem before = p;
  const hk_conv_desc good = {.size = sizeof good, .rank = 1, .n = 1, .c = 1, .k = 1, .in = {4}, .window = {3}};
  hk_conv_desc d = good;
  d.window[0] = 5;
  CHECK_STATUS(HK_INVALID, "larger", hk_problem_conv(&p, &d));
  d = good, d.stride[0] = -1;
  CHECK_STATUS(HK_INVALID, "stride", hk_problem_conv(&p, &d));
  d = good, d.groups = -1;
  CHECK_STATUS(HK_INVALID, "groups", hk_problem_conv(&p, &d));
  d = good, d.pad_lo[0] = -1;
  CHECK_STATUS(HK_INVALID, "pad", hk_problem_conv(&p, &d));
  CHECK_STATUS(HK_INVALID, "problem is NULL", hk_problem_conv(NULL, &good));
  CHECK_STATUS(HK_INVALID, "desc is NULL", hk_problem_conv(&p, NULL));
  d = (hk_conv_desc){.size = sizeof d,
                     .rank = 1,
                     .n = 1,
                     .c = 2,
                     .k = 3,
                     .in = {5},
                     .window = {3},
                     .stride = {2},
                     .output_padding = {2}};
  CHECK_STATUS(HK_INVALID, "output_padding", hk_problem_conv_transpose(&p, &d));
  d.output_padding[0] = 0, d.stride[0] = -1;
  CHECK_STATUS(HK_INVALID, "stride", hk_problem_conv_transpose(&p, &d));
  d.size = 1;
  CHECK_STATUS(HK_INVALID, "size", hk_problem_conv(&p, &d));
  const int64_t xs[3] = {1, 2, 8}, fs[3] = {3, 2, 3};
  hk_xla_desc x = {.size = sizeof x, .x_spec = "NCW", .f_spec = "OIW", .y_spec = "NCQ", .x_shape = xs, .f_shape = fs};
  CHECK_STATUS(HK_INVALID, "y_spec", hk_problem_xla(&p, &x));
  x.y_spec = "NCW", x.feature_group_count = 2;
  CHECK_STATUS(HK_INVALID, "must be", hk_problem_xla(&p, &x));
  CHECK(!memcmp(&p, &before, sizeof p), "a refusing helper wrote to the problem");
}

static void plans(void) {
  hk_problem p = good();
  float f[1000] = {0}, x[1000] = {0}, y[2001], c[2001];
  hk_plan *plan;
  hk_weights w = {.size = sizeof w, .f = f};
  hk_epilogue e = {.size = sizeof e, .bias = 1, .residual = HK_RESIDUAL_AFTER, .beta = 1};
  hk_options o = {.size = sizeof o};
  for (int i = 0; i < 2001; i++) y[i] = 7, c[i] = 1;
  o.size = 3;
  CHECK_STATUS(HK_INVALID, "options.size", hk_plan_create(&plan, &p, &e, &o, &w));
  o.size = sizeof o, o.threads = -1;
  CHECK_STATUS(HK_INVALID, "threads", hk_plan_create(&plan, &p, &e, &o, &w));
  o.threads = 0, o.decision = "nonsense";
  CHECK_STATUS(HK_SYNTAX, "nonsense", hk_plan_create(&plan, &p, &e, &o, &w));
  o.decision = "ref", o.forbid_fallback = 1;
  CHECK_STATUS(HK_FALLBACK, "forbid_fallback", hk_plan_create(&plan, &p, &e, &o, &w));
  o.forbid_fallback = 0, o.decision = NULL;
  e.act = (hk_act)77;
  CHECK_STATUS(HK_INVALID, "act", hk_plan_create(&plan, &p, &e, &o, &w));
  e.act = HK_ACT_PRELU;
  CHECK_STATUS(HK_INVALID, "slopes", hk_plan_create(&plan, &p, &e, &o, &w));
  e.act = HK_ACT_USER;
  CHECK_STATUS(HK_INVALID, "user", hk_plan_create(&plan, &p, &e, &o, &w));
  e.act = HK_ACT_NONE, e.size = 1;
  CHECK_STATUS(HK_INVALID, "epilogue.size", hk_plan_create(&plan, &p, &e, &o, &w));
  e.size = sizeof e, w.size = 1;
  CHECK_STATUS(HK_INVALID, "weights.size", hk_plan_create(&plan, &p, &e, &o, &w));
  w.size = sizeof w;
  CHECK_STATUS(HK_OK, "", hk_plan_create(&plan, &p, &e, &o, &w));
  hk_args a = {.size = sizeof a, .x = x, .y = y, .c = c, .bias = f};
#define BAD(word, change)                                                                                              \
  do {                                                                                                                 \
    hk_args b = a;                                                                                                     \
    change;                                                                                                            \
    CHECK_STATUS(HK_INVALID, word, hk_plan_execute(plan, &b));                                                         \
  } while (0)
  BAD("size", b.size = 0);
  BAD("x", b.x = NULL);
  BAD("y", b.y = NULL);
  BAD("c", b.c = NULL);
  BAD("bias", b.bias = NULL);
  BAD("aligned", b.x = (const char *)x + 2);
  BAD("aligned", b.y = (char *)y + 1);
  BAD("aligned", b.c = (const char *)c + 3);
  BAD("state", b.state_in = x);
  CHECK_STATUS(HK_INVALID, "NULL", hk_plan_execute(NULL, &a));
  CHECK_STATUS(HK_INVALID, "args is NULL", hk_plan_execute(plan, NULL));
  for (int i = 0; i < 2001; i++) CHECK(y[i] == 7, "y[%d] was written", i);
  CHECK_STATUS(HK_OK, "", hk_plan_execute(plan, &a));
  CHECK(y[0] == 1, "the good call did not write");
  hk_plan_destroy(plan);
  hk_plan_destroy(NULL);
}

static void like(void) {
  hk_problem p = good(), q = p;
  float f[1000] = {0};
  hk_plan *plan, *other;
  hk_weights w = {.size = sizeof w, .f = f};
  CHECK_STATUS(HK_OK, "", hk_plan_create(&plan, &p, NULL, NULL, &w));
  q.k = 8;
  CHECK_STATUS(HK_INVALID, "differs", hk_plan_create_like(&other, plan, &q));
  q = p, q.size = 0;
  CHECK_STATUS(HK_INVALID, "size", hk_plan_create_like(&other, plan, &q));
  hk_plan_destroy(plan);
}

static void texts(void) {
  static const char *const bad[] = {"",
                                    "2d",
                                    "2d_",
                                    "4d_n1",
                                    "2d_n1_c1_k1_i4x4",
                                    "2d_c1_k1_i4x4_w3x3x3",
                                    "1d_c1_k1_i4_w3_q7",
                                    "1d_c1_k1_i4_w99999999999999999999",
                                    "1d_c1_k1_i4_w3_f33",
                                    "ic3",
                                    "ic3oc4ih5",
                                    "ic3oc4ih5kh3sh0",
                                    "mb0x",
                                    "ic8oc8ih5kh9ph0",
                                    "1d_c1_k1_i4_w3_xs=1.2",
                                    "ic1oc1iw1kw1dw-1",
                                    "1d_c4_k4_i4_w3_g3",
                                    "g3ic4oc4iw4kw1",
                                    "ic8oc8iw9223372036854775807kw3pw9223372036854775807"};
  hk_problem p;
  for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
    memset(&p, 0x5a, sizeof p);
    const hk_problem before = p;
    const hk_status s = hk_problem_parse(&p, bad[i]);
    CHECK(s == HK_SYNTAX || s == HK_INVALID, "\"%s\" gave %s", bad[i], hk_status_name(s));
    CHECK(hk_last_error()[0] != 0, "\"%s\" left no sentence", bad[i]);
    CHECK(!memcmp(&p, &before, sizeof p), "\"%s\" was half read", bad[i]);
  }
  static const char *const wrong[] = {"clip",  "clip:1", "leaky", "gated:tanh", "scale:2",
                                      "swish", "sum:x",  "user",  "clip:2:1:0"};
  hk_epilogue e;
  for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
    CHECK(hk_epilogue_parse(&e, wrong[i]) == HK_SYNTAX, "\"%s\" was read", wrong[i]);
}

/* A refusal is a sentence, also where there is little to say. */
static void machine(void) {
  hk_machine m = {.size = sizeof m - 1};
  CHECK_STATUS(HK_INVALID, "machine is NULL", hk_machine_info(NULL));
  CHECK_STATUS(HK_INVALID, "machine.size", hk_machine_info(&m));
  m.size = sizeof m;
  CHECK_STATUS(HK_OK, "", hk_machine_info(&m));
  CHECK(m.cpu[0] && m.cores > 0, "an empty description");
}

/* A zero point per channel has the range of the type. */
static void zero_points(void) {
  hk_problem p;
  hk_plan *plan;
  const int8_t f[2 * 3] = {0};
  int32_t zeros[2] = {-128, 127};
  const hk_weights w = {.size = sizeof w, .f = f, .f_zero = zeros};
  CHECK_STATUS(HK_OK, "", hk_problem_parse(&p, "1d_c1_i8_k2_w3_s8:s8:s32_last"));
  CHECK_STATUS(HK_OK, "", hk_plan_create(&plan, &p, NULL, NULL, &w));
  hk_plan_destroy(plan);
  zeros[1] = 128;
  CHECK_STATUS(HK_INVALID, "f_zero[1] = 128", hk_plan_create(&plan, &p, NULL, NULL, &w));
  zeros[0] = INT32_MIN;
  CHECK_STATUS(HK_INVALID, "f_zero[0]", hk_plan_create(&plan, &p, NULL, NULL, &w));
}

int main(void) {
  zero_points();
  problems();
  machine();
  large_kernel();
  helpers();
  plans();
  like();
  texts();
  return hk_test_end();
}
