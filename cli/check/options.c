/* The options of random cases: threads, an ISA cap, workspace limits, math modes, rigor, batch invariance, and the call
 * sequences of check_sequence.c, as bits of `with`. Each is a word of the line that reproduces a case. */
#include <stdlib.h>
#include <string.h>

#include "check/check.h"

static bool chance(uint64_t *r, int percent) { return check_chance(r, percent); }

/* Returns a lower cap than the caller's, or none. */
static hk_isa isa_draw(hk_isa cap, uint64_t *r) {
  hk_machine m = {.size = sizeof m};
  if (!chance(r, 30) || hk_machine_info(&m)) return cap;
  const bool x86 = m.best_isa >= HK_ISA_AVX2;
  const hk_isa drawn = x86 && chance(r, 70) ? HK_ISA_AVX2 : HK_ISA_SCALAR;
  return cap && cap < drawn ? cap : drawn;
}

static uint32_t math_draw(hk_device device, uint64_t *r) {
  uint32_t math = chance(r, 40) ? HK_MATH_FAST_ALGORITHMS : HK_MATH_STRICT;
  if (device == HK_CUDA && chance(r, 12)) math |= HK_MATH_TF32;
  if (device == HK_CUDA && chance(r, 12)) math |= HK_MATH_SPLIT_F32;
  return math;
}

static unsigned sequences_draw(bool cuda, uint64_t *r) {
  unsigned with = 0;
  if (chance(r, 6)) with |= WITH_NONFINITE;
  if (chance(r, 5) && !cuda) with |= WITH_FLUSH;
  if (chance(r, 10)) with |= WITH_LIKE;
  if (chance(r, 5)) with |= WITH_WISDOM;
  if (chance(r, 10)) with |= WITH_HOSTILE;
  if (chance(r, 10)) with |= WITH_ALIVE;
  return with;
}

void check_options_draw(check_case *t, hk_options *o, uint64_t *r) {
  const bool cuda = o->device == HK_CUDA;
  o->math |= math_draw(o->device, r);
  if (chance(r, 8)) o->rigor = HK_PATIENT; /* other knob settings of each candidate, too */
  if (chance(r, 5)) o->forbid_fallback = 1;
  if (chance(r, 12)) {
    o->batch_invariant = 1;
    if (t->p.batch_groups == 1 && chance(r, 70)) t->p.n = check_between(r, 2, 9);
  }
  if (!cuda && !o->threads && chance(r, 30)) o->threads = (int32_t)check_between(r, 2, chance(r, 70) ? 4 : 8);
  if (!cuda) o->isa = isa_draw(o->isa, r);
  t->with |= sequences_draw(cuda, r);
}

void check_workspace_draw(const check_case *t, hk_options *o, uint64_t *r) {
  if (!chance(r, 10) || o->limit_workspace) return;
  o->limit_workspace = 1;
  o->workspace_limit_bytes = 0;
  if (chance(r, 30)) return;
  hk_plan *plan = NULL;
  hk_options plain = *o;
  plain.limit_workspace = 0;
  plain.rigor = HK_ESTIMATE;
  plain.stateful = (t->with & WITH_STATE) != 0;
  if (t->e.act == HK_ACT_PRELU || t->e.act2 == HK_ACT_PRELU) return; /* slopes are not at hand yet */
  if (hk_plan_create(&plan, &t->p, &t->e, &plain, NULL)) return;
  const size_t bytes = hk_plan_workspace(plan);
  hk_plan_destroy(plan);
  if (bytes) o->workspace_limit_bytes = (size_t)cli_random_below(r, (int64_t)bytes);
}

static void math_text(char *to, uint32_t math) {
  static const char *const words[] = {"fast", "tf32", "split"};
  for (unsigned i = 0; i < 3; i++)
    if (math >> i & 1) strcat(strcat(to, *to ? "," : " --math "), words[i]);
}

/* Rigor lists more candidates; within a time limit it measures them, too. */
static void rigor_text(char *to, size_t size, const hk_options *o) {
  static const char *const words[] = {"estimate", "measure", "patient"};
  if (o->rigor == HK_ESTIMATE) return;
  const int n = snprintf(to, size, " --rigor %s", words[o->rigor]);
  if (o->time_limit_s > 0) snprintf(to + n, size - (size_t)n, " --time-limit %.9g", o->time_limit_s);
}

char *check_options_text(const hk_options *o, bool forced) {
  char math[40] = "", threads[24] = "", workspace[48] = "", rigor[80] = "";
  if (!forced) rigor_text(rigor, sizeof rigor, o);
  math_text(math, o->math);
  if (o->threads) snprintf(threads, sizeof threads, " --threads %d", o->threads);
  if (o->limit_workspace) snprintf(workspace, sizeof workspace, " --workspace %zu", o->workspace_limit_bytes);
  return cli_text("%s%s%s%s%s%s%s%s%s%s%s", math, o->isa ? " --isa " : "", o->isa ? hk_isa_name(o->isa) : "", threads,
                  workspace, o->batch_invariant ? " --batch-invariant" : "",
                  o->forbid_fallback ? " --forbid-fallback" : "", !forced && o->wisdom_only ? " --wisdom-only" : "",
                  rigor, o->unaligned ? " --unaligned" : "", o->device == HK_CUDA ? " --device cuda" : "");
}
