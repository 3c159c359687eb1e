/* Memory of hk_causal: one allocation at creation, whose failure is told; execute and gradient allocate nothing,
 * whatever the way. */
#include <stdbool.h>

#include "support/allocs.h"
#include "support/causal.h"
#include "support/check.h"

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

int main(void) {
  for (uint64_t seed = 1; seed <= 200; seed++) try_trial(seed, seed % 4 ? CAUSAL_FORWARD : CAUSAL_GRADIENT);
  return hk_test_end();
}
