/* The ends of what is legal. Sizes near 2^63 are planned or refused with a sentence, without overflow (a build with
 * HK_SANITIZE=undefined sees it); an empty x, and a y that a store function owns, may be NULL for every decision;
 * misaligned weights are refused as misaligned arguments are. */
#include <stdbool.h>
#include <stdlib.h>

#include "support/check.h"

static void same_padding(void) {
  static const int64_t strides[] = {1, 2, 3, INT64_MAX, INT64_MAX - 1, INT64_MAX / 2, (int64_t)1 << 62};
  static const hk_padding kinds[] = {HK_PAD_SAME_UPPER, HK_PAD_SAME_LOWER, HK_PAD_CAUSAL, HK_PAD_VALID};
  for (size_t i = 0; i < sizeof strides / sizeof *strides; i++)
    for (int k = 0; k < 4; k++)
      for (int64_t in = 0; in < 12; in++) {
        hk_problem p;
        CHECK_STATUS(HK_OK, "", hk_problem_parse(&p, "1d_n1_c2_i16_k2_w5_f32_last"));
        p.in[0] = in, p.stride[0] = strides[i];
        CHECK_STATUS(HK_OK, "", hk_problem_pad(&p, kinds[k]));
        int64_t out[3];
        CHECK_STATUS(HK_OK, "", hk_problem_output(&p, out, NULL));
        const int64_t want = in / strides[i] + (in % strides[i] > 0);
        if (k < 2 && in)
          CHECK(out[0] == want, "in %lld, stride %lld: %lld outputs, must be %lld", (long long)in,
                (long long)strides[i], (long long)out[0], (long long)want);
        const int64_t all = p.pad_lo[0] + p.pad_hi[0],
                      past = in ? (want - 1) * strides[i] : -strides[i]; /* where the last window begins */
        if (k < 2)
          CHECK(all == (5 - (in - past) > 0 ? 5 - (in - past) : 0), "in %lld, stride %lld: padding %lld", (long long)in,
                (long long)strides[i], (long long)all);
      }
}

static void ignore(void *context, const hk_candidate *c) {
  (void)c;
  *(int *)context += 1;
}

/* Planned, and its gradients formed; whatever is refused has a sentence. */
static void plan_only(const char *text) {
  hk_problem p, grad;
  const hk_status parsed = hk_problem_parse(&p, text);
  CHECK(!parsed || hk_last_error()[0], "%s", text);
  if (parsed) return;
  static const hk_isa isas[] = {HK_ISA_BEST, HK_ISA_AVX2, HK_ISA_SCALAR};
  hk_machine m = {.size = sizeof m};
  CHECK_STATUS(HK_OK, "", hk_machine_info(&m));
  for (size_t i = 0; i < sizeof isas / sizeof *isas; i++)
    for (int math = 0; math < 2 && isas[i] <= m.best_isa; math++) {
      const hk_options o = {.size = sizeof o,
                            .threads = math ? 3 : 1,
                            .isa = isas[i],
                            .math = math ? HK_MATH_FAST_ALGORITHMS : HK_MATH_STRICT,
                            .rigor = HK_PATIENT};
      int seen = 0;
      const hk_status s = hk_plan_candidates(&p, NULL, &o, ignore, &seen);
      CHECK(s || seen, "%s: no candidate", text);
    }
  for (int filter = 0; filter < 2; filter++) {
    const hk_status s = filter ? hk_problem_grad_filter(&p, &grad) : hk_problem_grad_input(&p, &grad);
    CHECK(!s || hk_last_error()[0], "%s", text);
  }
}

static void huge_problems(void) {
  static const char *const texts[] = {
      "1d_n1_c1_i9223372036854775807_k1_w1_f32_xs=0.0.0.0.0",
      "1d_n1_c1_i576460752303423487_k1_w1_f32_xs=0.0.0.0.0",
      "1d_n1_c1_i100000000000000_k1_w3_p1_f32_last",
      "1d_n1_c1_i100000000000000_k1_w3_p1_f32_first",
      "2d_n3_c3_i100000000x100000000_k5_w3x3_p1_f32_last",
      "2d_n3_c3_i100000000x100000000_k5_w3x3_p1_f32_first",
      "1d_n1_c16_i9_k16_w3_s9223372036854775807_f32_last",
      "1d_n1_c16_i9_k16_w3_s9223372036854775807_f32_first",
      "1d_n1_c16_i9_k16_w3_s9223372036854775807_g16_f32_last",
      "1d_n1_c16_i9_k16_w3_s9223372036854775807_g16_f32_first",
      "1d_n1_c16_i9_k16_w1_d9223372036854775807_f32_last",
      "1d_n1_c16_i9_k16_w1_d9223372036854775807_g16_f32_first",
      "1d_n1_c16_i9_k16_w1_d9223372036854775807_g16_f32_last",
      "2d_n1_c4_i1x9_k4_w3x3_p1_l9223372036854775807x1_f32_last",
      "2d_n1_c4_i1x9_k4_w3x3_p1_l9223372036854775807x1_f32_first",
      "1d_n1_c4_i9_k4_w4611686018427387904_f32_last",
      "1d_n1_c4_i9_k4_w3_d4611686018427387903_f32_last",
      "1d_n1_c4_i9_k4_w3_p4611686018427387903_f32_last",
      "1d_n1_c4_i9_k4_w3_p-4611686018427387903:4611686018427387903_f32_last",
      "1d_n1_c4_i2_k4_w3_p100000000000000_s100000000000_f32_xs=0.0.0.1.100000000",
      "1d_n1_c4_i2_k4_w3_p1000_s500_f32_xs=0.0.0.1.1000000000000000",
      "1d_n100000000000_c8_i16_k8_w3_p1_g8_f32_last",
      "1d_n100000000000_c8_i16_k8_w3_p1_g8_f32_first",
      "1d_n1_c100000000000_i4_k100000000000_w1_g100000000000_f32_last",
      "1d_n1_c100000000000_i4_k100000000000_w3_p1_g100000000000_f32_first",
      "1d_n1000000000000_c16_i4_k16_w1_f32_last",
      "1d_n1000000000000_c16_i4_k16_w1_f32_first",
      "1d_n1_c4_i1000000000000_k4_w1000000_p500000_f32_first",
      "1d_n1_c4_i1000000000000_k4_w1000000_p500000_g4_f32_first",
      "1d_n1_c4_i1000000000000_k4_w1000000_p500000_g4_f32_last",
      "2d_n1_c16_i10000000x10000000_k64_w3x3_p1_s8:s8:s32_last",
      "2d_n1_c16_i10000000x10000000_k64_w3x3_p1_bf16_last",
      "2d_n1_c16_i10000000x10000000_k64_w3x3_p1_f64_first",
      "1d_n1_c1_i4_k100000000000000_w1_f32_last",
      "1d_n1_c1_i4_k100000000000000_w1_f32_first",
      "1d_n1_c288230376151711744_i1_k1_w1_f32_last",
      "1d_n1_c288230376151711744_i2_k1_w1_f32_first",
      "1d_n1_c1_i1_k288230376151711744_w1_f32_last",
      "1d_n1_c1_i2_k288230376151711744_w1_f32_first",
      "1d_n1_c288230376151711744_i1_k288230376151711744_w1_g288230376151711744_f32_last",
      "1d_n1_c72057594037927936_i4_k72057594037927936_w3_p1_g72057594037927936_f32_first",
      "1d_n288230376151711744_c1_i1_k1_w1_f32_last",
      "1d_n1_c16_i1_k1_w18014398509481984_p9007199254740992_f32_last",
      "1d_n1_c16_i1_k1_w18014398509481984_p9007199254740992_f32_first",
      "1d_n1_c288230376151711744_i1_k1_w1_bf16_last",
      "1d_n1_c288230376151711744_i1_k1_w1_s8:s8:s32_last",
      "1d_n1_c288230376151711744_i1_k1_w1_f64_last",
      "2d_n1_c16_i4x4_k72057594037927936_w3x3_p1_f32_last",
      "2d_n1_c1024_i4x4_k281474976710656_w1x1_f32_last",
      "2d_n1_c1024_i4x4_k281474976710656_w1x1_f32_first",
      "1d_n1_c1_i1000000000_k1_w500000000_f32_first",
      "1d_n1_c1_i1000000000_k1_w500000000_f32_last"};
  for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) plan_only(texts[i]);
}

typedef struct runner {
  const hk_problem *problem;
  const char *name;
  hk_epilogue epilogue;
  const float *x;
  float *y;
  int64_t outputs, stored;
} runner;

static void count_stores(void *user, const hk_at *at, int64_t count, const void *values) {
  const float *v = values;
  runner *r = user;
  (void)at;
  for (int64_t i = 0; i < count; i++) r->stored += v[i] == v[i];
}

static void execute(void *context, const hk_candidate *c) {
  runner *r = context;
  static float f[1 << 12];
  for (int i = 0; i < 1 << 12; i++) f[i] = 1;
  const hk_weights w = {.size = sizeof w, .f = f};
  const hk_options o = {.size = sizeof o, .threads = 1, .decision = c->decision};
  hk_plan *plan = NULL;
  if (c->refusal) return;
  CHECK_STATUS(HK_OK, "", hk_plan_create(&plan, r->problem, &r->epilogue, &o, &w));
  if (!plan) return;
  hk_args a = {.size = sizeof a, .x = r->x, .y = r->y, .user = r, .workspace_bytes = hk_plan_workspace(plan)};
  a.workspace = a.workspace_bytes ? aligned_alloc(64, (a.workspace_bytes + 63) / 64 * 64) : NULL;
  for (int64_t i = 0; r->y && i < r->outputs; i++) r->y[i] = 5;
  r->stored = 0;
  CHECK_STATUS(HK_OK, "", hk_plan_execute(plan, &a));
  for (int64_t i = 0; r->y && i < r->outputs; i++)
    CHECK(r->y[i] == 0, "%s by '%s': y[%lld] = %g", r->name, c->decision, (long long)i, (double)r->y[i]);
  CHECK(r->y || r->stored == r->outputs, "%s by '%s': %lld of %lld stored", r->name, c->decision, (long long)r->stored,
        (long long)r->outputs);
  free(a.workspace);
  hk_plan_destroy(plan);
}

/* x is NULL where it is empty; y is NULL where a store function owns it. */
static void absent_pointers(void) {
  static const char *const texts[] = {
      "1d_n1_c4_i0_k4_w3_p4_f32_%s",        "1d_n2_c8_i0_k8_w3_p5_g8_f32_%s",      "1d_n1_c8_i0_k16_w9_p9_g8_f32_%s",
      "2d_n1_c8_i0x5_k8_w3x3_p3_g8_f32_%s", "2d_n2_c3_i5x0_k7_w3x3_p3_f32_%s",     "1d_n1_c4_i0_k4_w1_p3_f32_%s",
      "1d_n1_c8_i0_k8_w3_p6_d2_g4_f32_%s",  "3d_n1_c2_i3x0x4_k3_w2x2x2_p2_f32_%s", "1d_n1_c8_i0_k8_w40_p39_g8_f32_%s",
      "2d_n1_c3_i0x4_k5_w3x3_p2_l2_f32_%s", "1d_n1_c8_i0_k8_w3_p9_s2_g8_f32_%s",   "1d_n2_c4_i9_k4_w3_p1_f32_%s",
      "2d_n1_c8_i5x6_k8_w3x3_p1_g8_f32_%s", "1d_n1_c8_i30_k8_w5_d2_g8_f32_%s",     "1d_n1_c4_i9_k6_w1_f32_%s",
      "2d_n1_c3_i5x40_k17_w3x3_p1_f32_%s"};
  static float x[1 << 12], y[1 << 14];
  char text[200];
  hk_extent ex, ey;
  for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
    for (int layout = 0; layout < 2; layout++)
      for (int store = 0; store < 2; store++) {
        hk_problem p;
        snprintf(text, sizeof text, texts[i], layout ? "last" : "first");
        CHECK_STATUS(HK_OK, "", hk_problem_parse(&p, text));
        CHECK_STATUS(HK_OK, "", hk_problem_extents(&p, &ex, NULL, &ey));
        if (!store && ex.elements) continue;
        runner r = {.problem = &p,
                    .name = text,
                    .epilogue = {.size = sizeof r.epilogue},
                    .x = ex.elements ? x : NULL,
                    .y = store ? NULL : y,
                    .outputs = ey.elements};
        if (store) r.epilogue.store = count_stores;
        const hk_options o = {.size = sizeof o, .threads = 1};
        CHECK_STATUS(HK_OK, "", hk_plan_candidates(&p, &r.epilogue, &o, execute, &r));
      }
}

static void misaligned_weights(void) {
  static double memory[64];
  const char *odd = (const char *)memory + 2;
  hk_problem p;
  hk_epilogue e;
  hk_plan *plan = NULL;
  CHECK_STATUS(HK_OK, "", hk_problem_parse(&p, "1d_n1_c4_i9_k4_w1_f32_last"));
  CHECK_STATUS(HK_OK, "", hk_epilogue_parse(&e, "scale+bias+prelu"));
  const hk_weights good = {.size = sizeof good, .f = memory, .scale = memory, .bias = memory, .slopes = memory};
  hk_weights w = good;
  w.f = odd;
  CHECK_STATUS(HK_INVALID, "weights.f must be aligned", hk_plan_create(&plan, &p, &e, NULL, &w));
  w = good, w.scale = odd;
  CHECK_STATUS(HK_INVALID, "weights.scale must be aligned", hk_plan_create(&plan, &p, &e, NULL, &w));
  w = good, w.bias = odd;
  CHECK_STATUS(HK_INVALID, "weights.bias must be aligned", hk_plan_create(&plan, &p, &e, NULL, &w));
  w = good, w.slopes = odd;
  CHECK_STATUS(HK_INVALID, "weights.slopes must be aligned", hk_plan_create(&plan, &p, &e, NULL, &w));
  CHECK_STATUS(HK_OK, "", hk_plan_create(&plan, &p, &e, NULL, &good));
  hk_plan_destroy(plan);
  hk_chain *chain = NULL;
  CHECK_STATUS(HK_OK, "", hk_epilogue_parse(&e, "bias"));
  w = good, w.f = odd;
  CHECK_STATUS(HK_INVALID, "weights.f must be aligned", hk_chain_create_conv(&chain, &p, &e, NULL, &w));
  CHECK_STATUS(HK_OK, "", hk_chain_create_conv(&chain, &p, &e, NULL, &good));
  hk_chain_destroy(chain);
  CHECK_STATUS(HK_OK, "", hk_problem_parse(&p, "1d_n1_c4_i9_k4_w1_f64_last"));
  w = (hk_weights){.size = sizeof w, .f = (const char *)memory + 4};
  CHECK_STATUS(HK_INVALID, "8", hk_plan_create(&plan, &p, NULL, NULL, &w));
  CHECK_STATUS(HK_OK, "", hk_problem_parse(&p, "1d_n1_c4_i9_k4_w1_s8:s8:s32_last"));
  w = (hk_weights){.size = sizeof w,
                   .f = (const char *)memory + 1,
                   .f_zero = (const int32_t *)(uintptr_t)((const char *)memory + 1)};
  CHECK_STATUS(HK_INVALID, "weights.f_zero must be aligned", hk_plan_create(&plan, &p, NULL, NULL, &w));
  w.f_zero = NULL; /* f of bytes lies anywhere */
  CHECK_STATUS(HK_OK, "", hk_plan_create(&plan, &p, NULL, NULL, &w));
  hk_plan_destroy(plan);
}

/* Slower and slower convolutions: the receptive field of the last is counted in input frames. */
static void chained_strides(void) {
  static float f[16];
  hk_step steps[80];
  for (int count = 1; count <= 80; count++)
    for (int window = 1; window <= 3; window += 2) {
      for (int i = 0; i < count; i++)
        steps[i] = (hk_step){.size = sizeof steps[i],
                             .kind = HK_STEP_CONV,
                             .x = i + 1,
                             .k = 1,
                             .window = window,
                             .stride = 65536,
                             .dilation = window > 1 ? 1 << 25 : 1,
                             .f = f};
      const hk_chain_desc d = {.size = sizeof d, .channels = 1, .max_block = 16, .count = count, .steps = steps};
      size_t chain_bytes, stream_bytes;
      const hk_status s = hk_chain_measure(&d, &chain_bytes, &stream_bytes);
      if (count >= 4)
        CHECK(s == HK_INVALID && strstr(hk_last_error(), "2^52"), "%d steps: %s %s", count, hk_status_name(s),
              hk_last_error());
      else CHECK(s == HK_OK || strstr(hk_last_error(), "2^52"), "%d steps: %s", count, hk_last_error());
    }
}

int main(void) {
  same_padding();
  huge_problems();
  absent_pointers();
  misaligned_weights();
  chained_strides();
  return hk_test_end();
}
