/* Memory: every allocation of plan creation fails once, without a leak or a crash; execute allocates nothing. */
#include <stdlib.h>

#include "support/allocs.h"
#include "support/check.h"

static void count(void *context, const hk_candidate *c) {
  char(*texts)[512] = context;
  if (c->refusal) return;
  for (int i = 0; i < 63; i++)
    if (!texts[i][0]) {
      snprintf(texts[i], 512, "%s", c->decision);
      return;
    }
}

/* Creation with the n-th allocation failing, n = 1, 2, ... until it succeeds. */
static void creation(const char *problem, const char *epilogue, const char *decision) {
  static float f[20000], v[256], x[20000], y[20000], c[20000];
  hk_problem p;
  hk_epilogue e;
  CHECK_STATUS(HK_OK, "", hk_problem_parse(&p, problem));
  CHECK_STATUS(HK_OK, "", hk_epilogue_parse(&e, epilogue));
  const hk_weights w = {.size = sizeof w, .f = f, .scale = v, .bias = v, .slopes = v};
  const hk_options o = {.size = sizeof o, .decision = decision, .threads = 1};
  for (long n = 1; n < 1000; n++) {
    hk_plan *plan = NULL;
    const long before = live;
    fail_at = n;
    const hk_status s = hk_plan_create(&plan, &p, &e, &o, &w);
    const int failed = fail_at == 0;
    fail_at = 0;
    if (failed) {
      CHECK(s == HK_NO_MEMORY, "%s: allocation %ld failed, got %s", decision ? decision : "-", n, hk_status_name(s));
      CHECK(plan == NULL && live == before, "%s: %ld blocks leaked", decision ? decision : "-", live - before);
      continue;
    }
    CHECK_STATUS(HK_OK, "", s);
    void *workspace = __real_aligned_alloc(64, (hk_plan_workspace(plan) + 127) / 64 * 64);
    const hk_args a = {.size = sizeof a, .x = x, .y = y, .c = c, .workspace = workspace,
                       .workspace_bytes = hk_plan_workspace(plan)};
    made = 0;
    CHECK_STATUS(HK_OK, "", hk_plan_execute(plan, &a));
    CHECK(made == 0, "%s %s: execute made %ld allocations", problem, decision ? decision : "-", made);
    __real_free(workspace);
    hk_plan_destroy(plan);
    CHECK(live == before, "%s: destroy left %ld blocks", decision ? decision : "-", live - before);
    return;
  }
  CHECK(0, "%s: creation never succeeded", problem);
}

int main(void) {
  static const char *const problems[] = {"2d_n1_c8_i9x9_k16_w3x3_p1_last", "2d_n1_c8_i9x9_k16_w3x3_p1_first",
                                         "1d_c16_i64_k16_w3_d2_p4:0_g16_first", "1d_c16_i64_k16_w3_g4_last",
                                         "2d_c4_i8x8_k8_w2x2_l2_flip_first", "1d_c3_i20_k4_w5_bf16_last"};
  for (size_t i = 0; i < sizeof problems / sizeof problems[0]; i++) {
    static char texts[64][512];
    memset(texts, 0, sizeof texts);
    hk_problem p;
    hk_epilogue e;
    CHECK_STATUS(HK_OK, "", hk_problem_parse(&p, problems[i]));
    CHECK_STATUS(HK_OK, "", hk_epilogue_parse(&e, "scale+bias+prelu+sum:0.5"));
    CHECK_STATUS(HK_OK, "", hk_plan_candidates(&p, &e, NULL, count, texts));
    CHECK(texts[0][0] != 0, "no candidate for %s", problems[i]);
    creation(problems[i], "scale+bias+prelu+sum:0.5", NULL);
    for (int t = 0; t < 63 && texts[t][0]; t++) creation(problems[i], "scale+bias+prelu+sum:0.5", texts[t]);
  }
  return hk_test_end();
}
