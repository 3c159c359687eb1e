/* Memory of hk_causal: one allocation at creation, whose failure is told; execute and gradient allocate nothing,
 * whatever the way. The same of hk_longconv, whose creation allocates its tables and spectra too. */
#include <stdbool.h>
#include <stdlib.h>

#include "support/allocs.h"
#include "support/causal.h"
#include "support/check.h"
#include "support/longconv.h"

static void try_trial(uint64_t seed, causal_kind kind) {
  uint64_t state = seed * 0x9e3779b97f4a7c15u;
  causal_trial t;
  causal_trial_make(&t, &state, kind);
  const hk_options o = {.size = sizeof o, .threads = 1};
  hk_causal *k;
  const long before = live;
  fail_at = 1;
  CHECK_STATUS(HK_NO_MEMORY, "no memory for an hk_causal", hk_causal_create(&k, &t.d, &o));
  CHECK(!k && live == before, "a failed creation left something");
  fail_at = 0;
  CHECK_STATUS(HK_OK, "", hk_causal_create(&k, &t.d, &o));
  CHECK(live == before + 1, "%ld allocations live", live - before);
  const long count = made;
  if (kind == CAUSAL_GRADIENT) CHECK_STATUS(HK_OK, "", hk_causal_gradient(k, &t.a, &t.g));
  else CHECK_STATUS(HK_OK, "", hk_causal_execute(k, &t.a));
  const long during = made - count;
  CHECK(during == 0, "%ld allocations inside a call, seed %llu", during, (unsigned long long)seed);
  hk_causal_destroy(k);
  CHECK(live == before, "destroy left %ld", live - before);
  causal_trial_free(&t);
}

/* Each allocation of creation fails in turn; filters are given there every other time. */
static void try_longconv(uint64_t seed) {
  uint64_t state = seed * 0x9e3779b97f4a7c15u;
  longconv_trial t;
  longconv_trial_make(&t, &state, 300);
  const hk_options o = {.size = sizeof o, .threads = 1, .math = HK_MATH_FAST_ALGORITHMS};
  const void *f = seed % 2 ? t.f_memory : NULL;
  hk_longconv *k;
  const long before = live;
  long fails = 0;
  for (fail_at = 1; hk_longconv_create(&k, &t.d, f, t.skip_memory, &o); fail_at = ++fails + 1)
    CHECK(!k && live == before && fails < 9, "failed creation %ld left %ld", fails, live - before);
  fail_at = 0;
  CHECK(fails == (f ? 4 : 2), "%ld allocations at creation", fails);
  hk_longconv_args a = {.size = sizeof a, .x = t.x.memory, .f = t.f_memory, .skip = t.skip_memory, .pre = t.pre.memory};
  a.post = t.post.memory, a.y = t.y.memory, a.workspace_bytes = hk_longconv_workspace(k);
  a.workspace = aligned_alloc(64, a.workspace_bytes);
  const hk_longconv_grads g = {.size = sizeof g, .dy = t.dy.memory, .dx = t.dx.memory, .dx_at = t.dx.at, .df = t.df};
  const long count = made;
  CHECK_STATUS(HK_OK, "", hk_longconv_execute(k, &a));
  if (t.d.gradient) CHECK_STATUS(HK_OK, "", hk_longconv_gradient(k, &a, &g));
  CHECK(made == count, "%ld allocations inside a call, seed %llu", made - count, (unsigned long long)seed);
  free(a.workspace);
  hk_longconv_destroy(k);
  CHECK(live == before, "destroy left %ld", live - before);
  longconv_trial_free(&t);
}

int main(void) {
  for (uint64_t seed = 1; seed <= 40; seed++) try_longconv(seed);
  for (uint64_t seed = 1; seed <= 200; seed++) try_trial(seed, seed % 4 ? CAUSAL_FORWARD : CAUSAL_GRADIENT);
  return hk_test_end();
}
