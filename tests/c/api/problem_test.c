/* Problems: texts, sizes, derived problems against plain loops, plans made alike, state. */
#include <math.h>
#include <stdlib.h>

#include "support/check.h"

static void round_trip(const char *text, const char *expected) {
  hk_problem p, q;
  char out[1024];
  CHECK_STATUS(HK_OK, "", hk_problem_parse(&p, text));
  CHECK_STATUS(HK_OK, "", hk_problem_print(&p, out, sizeof out, NULL));
  CHECK(!strcmp(out, expected), "\"%s\" printed as \"%s\"", text, out);
  CHECK_STATUS(HK_OK, "", hk_problem_parse(&q, out));
  CHECK(!memcmp(&p, &q, sizeof p), "\"%s\" did not come back", out);
}

static void texts(void) {
  round_trip("1d_c3_i20_k4_w5", "1d_n1_c3_i20_k4_w5_f32_first");
  round_trip("2d_n2_c8_i5x7_k6_w3x2_s2x1_p1:0x-1:2_d2_l1x3_g2_flip0x1_bf16:bf16:f32_last",
             "2d_n2_c8_i5x7_k6_w3x2_s2x1_p1:0x-1:2_d2_l1x3_g2_flip0x1_bf16:bf16:f32_last");
  round_trip("3d_n4_c2_i3x4x5_k6_w1x2x3_b2_u8:s8:s32_xz3_fz-1",
             "3d_n4_c2_i3x4x5_k6_w1x2x3_b2_u8:s8:s32_xz3_fz-1_first");
  round_trip("1d_n2_c2_i4_k2_w3_xs=3.0.8.4.-1_ys=0.0.4.2.1",
             "1d_n2_c2_i4_k2_w3_f32_xs=3.0.8.4.-1_fs=0.0.6.3.1_ys=0.0.4.2.1");
}

/* Strides that are only ever multiplied by 0 (of sizes of 1, of a single group, of empty tensors) leave no trace. */
static void canonical(const char *text, const char *expected) {
  hk_problem p;
  char out[1024];
  CHECK_STATUS(HK_OK, "", hk_problem_parse(&p, text));
  for (int d = p.rank; d < HK_MAX_RANK; d++) p.x.at[d] = p.f.at[d] = p.y.at[d] = 77;
  CHECK_STATUS(HK_OK, "", hk_problem_print(&p, out, sizeof out, NULL));
  CHECK(!strcmp(out, expected), "\"%s\" printed as \"%s\"", text, out);
  CHECK_STATUS(HK_OK, "", hk_problem_parse(&p, out));
  CHECK_STATUS(HK_OK, "", hk_problem_print(&p, out, sizeof out, NULL));
  CHECK(!strcmp(out, expected), "\"%s\" printed as \"%s\" again", text, out);
}

static void canonical_texts(void) {
  canonical("1d_c3_i20_k4_w5_xs=0.9.9.20.1_fs=0.9.15.5.1_ys=0.9.9.16.1",
            "1d_n1_c3_i20_k4_w5_f32_first"); /* n and groups 1 */
  canonical("2d_n2_c3_i4x4_k5_w1x1_xs=0.0.48.16.4.1_fs=0.0.3.1.9.9_ys=0.0.80.16.4.1",
            "2d_n2_c3_i4x4_k5_w1x1_f32_first");
  canonical("2d_n2_c3_i4x4_k5_w1x1_xs=0.0.48.1.12.3_fs=0.0.3.1.7.7_ys=0.0.80.1.20.5", "2d_n2_c3_i4x4_k5_w1x1_f32_last");
  canonical("1d_n2_c4_i9_k4_w3_g4_xs=0.9.36.5.1_fs=0.3.5.5.1_ys=0.7.28.7.1", "1d_n2_c4_i9_k4_w3_g4_f32_first");
  canonical("1d_n0_c4_i9_k4_w3_xs=1.2.3.4.5_ys=1.2.3.4.5", "1d_n0_c4_i9_k4_w3_f32_first");
  canonical("1d_c2_i4_k2_w3_xs=3.5.8.4.-1_ys=0.6.4.2.1",
            "1d_n1_c2_i4_k2_w3_f32_xs=3.0.0.4.-1_fs=0.0.6.3.1_ys=0.0.0.2.1");
  /* a gate's y has one run of k/2 channels: y.channel counts, however few each group has */
  canonical("1d_n2_c4_i3_k4_w1_g4_xs=0.3.12.3.1_fs=0.1.1.1.1_ys=0.0.6.3.1",
            "1d_n2_c4_i3_k4_w1_g4_f32_xs=0.3.12.1.1_fs=0.1.0.1.1_ys=0.0.6.3.1");
}

/* What a plan made alike must share is compared field by field: no padding, no entry beyond the rank, no idle stride.
 */
static void alike_by_field(void) {
  hk_problem p, q;
  hk_plan *plan, *like;
  static const double f[3] = {1, 2, 3};
  const hk_weights w = {.size = sizeof w, .f = f};
  CHECK_STATUS(HK_OK, "", hk_problem_parse(&p, "1d_n2_c1_i9_k1_w3_f64_first"));
  CHECK_STATUS(HK_OK, "", hk_plan_create(&plan, &p, NULL, NULL, &w));
  memset(&q, 0x5a, sizeof q);
  q.size = sizeof q, q.rank = 1, q.x_type = q.f_type = q.y_type = HK_F64;
  q.n = q.c = q.k = q.feature_groups = q.batch_groups = 1;
  q.in[0] = 5, q.window[0] = 3, q.stride[0] = q.dilation[0] = q.in_dilation[0] = 1;
  q.pad_lo[0] = q.pad_hi[0] = q.reverse[0] = q.x_zero = q.f_zero = q.y_zero = 0;
  q.x.offset = q.f.offset = q.y.offset = 0, q.x.at[0] = q.f.at[0] = q.y.at[0] = 1;
  CHECK_STATUS(HK_OK, "", hk_plan_create_like(&like, plan, &q));
  hk_plan_destroy(like);
  q.window[0] = 2;
  CHECK_STATUS(HK_INVALID, "differs", hk_plan_create_like(&like, plan, &q));
  hk_plan_destroy(plan);
}

static void benchdnn(const char *text, const char *expected, int deconv) {
  hk_problem p;
  char out[1024];
  CHECK_STATUS(HK_OK, "", deconv ? hk_problem_parse_deconv(&p, text) : hk_problem_parse(&p, text));
  CHECK_STATUS(HK_OK, "", hk_problem_print(&p, out, sizeof out, NULL));
  if (expected) CHECK(!strcmp(out, expected), "\"%s\" read as \"%s\"", text, out);
}

static void sizes(const char *text, int64_t o0, int64_t o1) {
  hk_problem p;
  int64_t out[3] = {-1, -1, -1}, n;
  CHECK_STATUS(HK_OK, "", hk_problem_parse(&p, text));
  CHECK_STATUS(HK_OK, "", hk_problem_output(&p, out, &n));
  CHECK(out[0] == o0 && (p.rank < 2 || out[1] == o1), "%s: output %lld x %lld", text, (long long)out[0],
        (long long)out[1]);
}

static double *numbers(int64_t n, uint64_t *seed) {
  double *v = malloc((size_t)(n + 1) * sizeof *v);
  for (int64_t i = 0; i < n; i++) v[i] = hk_test_integer(seed, 4);
  return v;
}

static void execute(const hk_problem *p, const double *x, const double *f, double *y) {
  hk_plan *plan;
  const hk_weights w = {.size = sizeof w, .f = f};
  CHECK_STATUS(HK_OK, "", hk_plan_create(&plan, p, NULL, NULL, &w));
  const size_t bytes = hk_plan_workspace(plan);
  void *workspace = aligned_alloc(64, (bytes + 64) / 64 * 64);
  const hk_args a = {.size = sizeof a, .x = x, .y = y, .workspace = workspace, .workspace_bytes = bytes};
  CHECK_STATUS(HK_OK, "", hk_plan_execute(plan, &a));
  free(workspace);
  hk_plan_destroy(plan);
}

/* <dy, conv(x, f)> must equal <dx, x> and <df, f>: both gradients are the adjoints of the forward map, exactly. */
static void adjoints(const char *text) {
  hk_problem p, gi, gf;
  hk_extent ex, ef, ey;
  uint64_t seed = 7;
  CHECK_STATUS(HK_OK, "", hk_problem_parse(&p, text));
  p.x_type = p.f_type = p.y_type = HK_F64;
  CHECK_STATUS(HK_OK, "", hk_problem_extents(&p, &ex, &ef, &ey));
  CHECK_STATUS(HK_OK, "", hk_problem_grad_input(&p, &gi));
  CHECK_STATUS(HK_OK, "", hk_problem_grad_filter(&p, &gf));
  double *x = numbers(ex.elements, &seed), *f = numbers(ef.elements, &seed), *dy = numbers(ey.elements, &seed);
  double *y = numbers(ey.elements, &seed), *dx = calloc((size_t)ex.elements + 1, 8),
         *df = calloc((size_t)ef.elements + 1, 8);
  execute(&p, x, f, y);
  execute(&gi, dy, f, dx);
  execute(&gf, x, dy, df);
  double one = 0, two = 0, three = 0;
  for (int64_t i = 0; i < ey.elements; i++) one += dy[i] * y[i];
  for (int64_t i = 0; i < ex.elements; i++) two += dx[i] * x[i];
  for (int64_t i = 0; i < ef.elements; i++) three += df[i] * f[i];
  CHECK(one == two && one == three, "%s: %g %g %g", text, one, two, three);
  double *db = calloc((size_t)p.k + 1, 8), total = 0, sum = 0;
  CHECK_STATUS(HK_OK, "", hk_grad_bias(&p, dy, db));
  for (int64_t i = 0; i < ey.elements; i++) total += dy[i];
  for (int64_t i = 0; i < p.k; i++) sum += db[i];
  CHECK(total == sum, "%s: bias gradient %g, not %g", text, sum, total);
  free(x), free(f), free(y), free(dx), free(df), free(dy), free(db);
}

/* scatter form of the transposed convolution, 1D: y[i*s + t*d - lo] += x[i]*w[c][k][t] */
static void transposed(int64_t s, int64_t d, int64_t pad, int64_t extra, int64_t g) {
  enum { N = 2, C = 4, K = 6, W = 5, S = 3 };
  hk_problem p;
  uint64_t seed = 3;
  hk_conv_desc desc = {.size = sizeof desc,
                       .rank = 1,
                       .n = N,
                       .c = C,
                       .k = K,
                       .groups = g,
                       .in = {W},
                       .window = {S},
                       .stride = {s},
                       .dilation = {d},
                       .pad_lo = {pad},
                       .pad_hi = {pad},
                       .output_padding = {extra},
                       .x_type = HK_F64,
                       .f_type = HK_F64,
                       .y_type = HK_F64};
  CHECK_STATUS(HK_OK, "", hk_problem_conv_transpose(&p, &desc));
  int64_t out[3];
  CHECK_STATUS(HK_OK, "", hk_problem_output(&p, out, NULL));
  const int64_t q = out[0];
  CHECK(q == (W - 1) * s - 2 * pad + d * (S - 1) + extra + 1, "transposed output %lld", (long long)q);
  double *x = numbers(N * C * W, &seed), *w = numbers(C * (K / g) * S, &seed), *y = calloc((size_t)(N * K * q), 8);
  double *want = calloc((size_t)(N * K * q), 8);
  for (int64_t n = 0; n < N; n++)
    for (int64_t c = 0; c < C; c++)
      for (int64_t k = 0; k < K / g; k++)
        for (int64_t i = 0; i < W; i++)
          for (int64_t t = 0; t < S; t++) {
            const int64_t to = i * s + t * d - pad, kk = c / (C / g) * (K / g) + k;
            if (to >= 0 && to < q) want[(n * K + kk) * q + to] += x[(n * C + c) * W + i] * w[(c * (K / g) + k) * S + t];
          }
  execute(&p, x, w, y);
  CHECK(!memcmp(y, want, (size_t)(N * K * q) * 8), "transposed s%lld d%lld p%lld e%lld g%lld", (long long)s,
        (long long)d, (long long)pad, (long long)extra, (long long)g);
  free(x), free(w), free(y), free(want);
}

static void alike(void) {
  hk_problem p, q;
  static float f[3 * 4 * 5], x[2 * 4 * 64], y[3 * 2 * 64], z[3 * 2 * 64];
  uint64_t seed = 5;
  for (int i = 0; i < 60; i++) f[i] = (float)hk_test_integer(&seed, 4);
  for (int i = 0; i < 512; i++) x[i] = (float)hk_test_integer(&seed, 4);
  hk_plan *a, *b, *c;
  const hk_weights w = {.size = sizeof w, .f = f};
  CHECK_STATUS(HK_OK, "", hk_problem_parse(&p, "1d_n1_c4_i20_k3_w5_last"));
  CHECK_STATUS(HK_OK, "", hk_problem_parse(&q, "1d_n2_c4_i64_k3_w5_last"));
  CHECK_STATUS(HK_OK, "", hk_plan_create(&a, &p, NULL, NULL, &w));
  CHECK_STATUS(HK_OK, "", hk_plan_create_like(&b, a, &q));
  hk_plan_destroy(a);
  CHECK_STATUS(HK_OK, "", hk_plan_create(&c, &q, NULL, NULL, &w));
  hk_args args = {.size = sizeof args, .x = x, .y = y};
  CHECK_STATUS(HK_OK, "", hk_plan_execute(b, &args));
  args.y = z;
  CHECK_STATUS(HK_OK, "", hk_plan_execute(c, &args));
  CHECK(!memcmp(y, z, sizeof(float) * 3 * 2 * 60), "a plan made alike computes something else");
  hk_plan_destroy(b);
  hk_plan_destroy(c);
}

/* blocks with a state give what one long block gives */
static void state(void) {
  enum { C = 4, K = 4, T = 90, S = 3, D = 4, LO = D * (S - 1) };
  static float f[K * 2 * S], x[C][T], whole[K][T], part[K][T], st[C * LO];
  static _Alignas(64) char workspace[1 << 14];
  uint64_t seed = 9;
  for (int i = 0; i < K * 2 * S; i++) f[i] = (float)hk_test_integer(&seed, 4);
  for (int i = 0; i < C * T; i++) x[i / T][i % T] = (float)hk_test_integer(&seed, 4);
  const hk_weights w = {.size = sizeof w, .f = f};
  const hk_options o = {.size = sizeof o, .stateful = 1};
  for (int at = 0, n = 0; at < T; at += n) {
    n = at == 0 ? 1 : at < 20 ? 3 : at < 60 ? 17 : T - at;
    hk_problem p;
    hk_plan *plan;
    hk_conv_desc d = {.size = sizeof d,
                      .rank = 1,
                      .n = 1,
                      .c = C,
                      .k = K,
                      .groups = 2,
                      .in = {n},
                      .window = {S},
                      .dilation = {D},
                      .padding = HK_PAD_CAUSAL};
    CHECK_STATUS(HK_OK, "", hk_problem_conv(&p, &d));
    p.x.channel = p.y.channel = T, p.x.group = p.y.group = 2 * T;
    CHECK_STATUS(HK_OK, "", hk_plan_create(&plan, &p, NULL, &o, &w));
    char decision[256] = ""; /* a few values are quickest as the reference computes them */
    CHECK_STATUS(HK_OK, "", hk_plan_decision(plan, decision, sizeof decision, NULL));
    CHECK(n < 17 || !strncmp(decision, "state / ", 8), "a stateful plan runs as %s", decision);
    const hk_args a = {.size = sizeof a,
                       .x = &x[0][at],
                       .y = &part[0][at],
                       .state_in = at ? st : NULL,
                       .state_out = st,
                       .workspace = workspace,
                       .workspace_bytes = sizeof workspace};
    CHECK_STATUS(HK_OK, "", hk_plan_execute(plan, &a));
    hk_plan_destroy(plan);
  }
  hk_problem p;
  hk_plan *plan;
  CHECK_STATUS(HK_OK, "", hk_problem_parse(&p, "1d_c4_i90_k4_w3_d4_p8:0_g2"));
  CHECK_STATUS(HK_OK, "", hk_plan_create(&plan, &p, NULL, NULL, &w));
  const hk_args a = {.size = sizeof a, .x = x, .y = whole};
  CHECK_STATUS(HK_OK, "", hk_plan_execute(plan, &a));
  CHECK(!memcmp(whole, part, sizeof whole), "blocks with a state differ from one block");
  hk_plan_destroy(plan);
}

int main(void) {
  texts();
  canonical_texts();
  alike_by_field();
  benchdnn("g4mb1_ic8ih10_oc8oh10_kh3sh1dh0ph1n\"name\"", "2d_n1_c8_i10x10_k8_w3x3_p1_g4_f32_first", 0);
  benchdnn("ic3ih224oc64oh112kh7sh2ph3n\"r\"", "2d_n2_c3_i224x224_k64_w7x7_s2_p3:2_f32_first", 0);
  benchdnn("mb20ic4ih8oc6oh3kh3sh2ph1dh1n\"d\"", "2d_n20_c4_i8x8_k6_w3x3_s2_p1:0_d2_f32_first", 0);
  benchdnn("ic16oc16_iw1kw3ow100pw100", NULL, 0);
  benchdnn("ic8iw5oc8ow2kw3pw3dw2n\"deconv1d:1\"", NULL, 1);
  hk_problem p;
  CHECK_STATUS(HK_SYNTAX, "padding overflows", hk_problem_parse(&p, "ic1iw5oc1ow5kw3pw-9223372036854775808"));
  CHECK_STATUS(HK_SYNTAX, "size must be positive", hk_problem_parse_deconv(&p, "ic1iw5oc1ow-5kw3pw1"));
  sizes("1d_c1_i10_k1_w3_s2", 4, 0);
  sizes("1d_c1_i2_k1_w5", 0, 0);
  sizes("1d_c1_i0_k1_w1_p2", 4, 0);
  sizes("1d_c1_i0_k1_w1", 0, 0);
  sizes("2d_c1_i5x6_k1_w3x3_p-1:1x2:-2_l2x1_d1x2", 7, 2);
  static const char *const problems[] = {"1d_n2_c3_i9_k4_w3",
                                         "1d_n2_c4_i9_k6_w3_s2_p1:2_d2_g2_last",
                                         "2d_n2_c2_i5x6_k3_w2x3_s2x1_p1:0x0:2_last",
                                         "2d_n4_c3_i5x4_k6_w2x2_b2_p1",
                                         "1d_n2_c4_i7_k4_w3_l2_p-1:3_flip_g4",
                                         "3d_n1_c2_i3x4x3_k2_w2x2x2_p1_d1x2x1_s1x1x2",
                                         "2d_n2_c4_i6x5_k4_w3x2_flip1x0_s2x3_p2_g2",
                                         "1d_n6_c2_i8_k6_w3_b3_l3_s2_last"};
  for (size_t i = 0; i < sizeof problems / sizeof problems[0]; i++) adjoints(problems[i]);
  for (int64_t s = 1; s < 4; s++)
    for (int64_t d = 1; d < 3; d++)
      for (int64_t pad = 0; pad < 3; pad++)
        for (int64_t extra = 0; extra < s; extra++)
          for (int64_t g = 1; g < 3; g++) transposed(s, d, pad, extra, g);
  alike();
  state();
  return hk_test_end();
}
