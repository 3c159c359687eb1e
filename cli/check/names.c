/* The decisions of a case: the one it names, or every candidate, with "" for the planner's own choice where options or
 * weights may make it differ from the first candidate. Hostile ones have knobs that no planner would choose. */
#include <stdlib.h>
#include <string.h>

#include "check/execute.h"

void check_names_add(check_names *n, const char *decision) {
  if (n->count < CHECK_NAMES) n->at[n->count++] = strdup(decision);
}

void check_names_free(check_names *n) {
  for (int i = 0; i < n->count; i++) free(n->at[i]);
  n->count = 0;
}

static void candidate_keep(void *context, const hk_candidate *candidate) {
  if (!candidate->refusal) check_names_add(context, candidate->decision);
}

hk_status check_names_gather(check_names *n, const check_case *t, const hk_options *options) {
  hk_options o = *options;
  o.stateful = (t->with & WITH_STATE) != 0;
  if (options->decision) {
    check_names_add(n, options->decision);
    return HK_OK;
  }
  const bool limited = o.limit_workspace || o.forbid_fallback;
  if (t->with & (WITH_LATE | WITH_NONFINITE) || o.batch_invariant || limited || o.threads > 1) check_names_add(n, "");
  return hk_plan_candidates(&t->p, &t->e, &o, candidate_keep, n);
}

void check_names_thin(check_names *n, int most, uint64_t seed) {
  uint64_t r = cli_random_mix(seed, 41);
  /* The reference ran already; what remains is that it gives the same bits again. */
  if (n->count > 1 && seed % 6 && !strcmp(n->at[n->count - 1], "ref")) free(n->at[--n->count]);
  if (most < 4) most = 4;
  while (n->count > most) {
    int64_t i = n->count > 1 && !strcmp(n->at[n->count - 1], "ref") ? n->count - 1 : check_between(&r, 1, n->count - 1);
    free(n->at[i]);
    memmove(n->at + i, n->at + i + 1, sizeof *n->at * (size_t)(n->count - 1 - i));
    n->count--;
  }
}

/* ---- hostile decisions */
/* v*factor + more, which may wrap. */
static int64_t wrapped(int64_t v, int64_t factor, int64_t more) {
  return (int64_t)((uint64_t)v * (uint64_t)factor + (uint64_t)more);
}

static int64_t hostile_value(int64_t old, uint64_t *r) {
  static const int64_t fixed[] = {0,         1,         -1,        2,          3,           64,
                                  65,        INT32_MAX, 1ll << 31, 1ll << 32,  1ll << 33,   1ll << 62,
                                  INT64_MAX, INT64_MIN, -2,        1000000007, -(1ll << 32)};
  static const int64_t huge[] = {1ll << 31, 1ll << 32, 1ll << 40, 1ll << 60, 1ll << 61, 1ll << 62, INT64_MAX};
  if (old >= 0 && old <= 3 && check_chance(r, 40)) return check_between(r, 0, 3); /* another word of a short list */
  switch (cli_random_below(r, 5)) {
  case 0: return wrapped(old, 1, check_between(r, -2, 2));
  case 1: return wrapped(old, check_between(r, 2, 5), 0);
  case 2:
    return wrapped(huge[cli_random_below(r, 7)], 1, check_between(r, -40, 40) * (1ll << cli_random_below(r, 34)) / 2);
  default: return fixed[cli_random_below(r, sizeof fixed / sizeof *fixed)];
  }
}

/* The text with the value of its index-th knob replaced; NULL when there is none. */
static char *knob_replace(const char *text, int index, uint64_t *r) {
  const char *at = text;
  for (int i = -1; (at = strchr(at, '=')); at++) {
    if ((at[1] < '0' || at[1] > '9') && at[1] != '-') continue; /* kernel=name */
    if (++i < index) continue;
    char *end = NULL;
    const int64_t old = strtoll(at + 1, &end, 10);
    return cli_text("%.*s=%lld%s", (int)(at - text), text, (long long)hostile_value(old, r), end);
  }
  return NULL;
}

static int knobs_count(const char *text) {
  int count = 0;
  for (const char *at = strchr(text, '='); at; at = strchr(at + 1, '=')) count += at[1] >= '0' && at[1] <= '9';
  return count;
}

/* Malformed decisions: an unknown algorithm, another algorithm's kernel, knobs that are unknown, lack a value, or are
 * too many. */
static char *words_break(const char *text, uint64_t *r) {
  static const char *const more[] = {"bm",          "bm=", "bm=x",     "kernel=hk_igemm_f32_2x4_scalar",
                                     "kernel=none", "=3",  "points=5", "a=1 b=2 c=3 d=4 e=5 f=6 g=7 h=8 i=9 j=10"};
  static const char *const algorithms[] = {"igemm", "none",  "convert / dwp",         "state / igemm",
                                           "fft",   "wgmma", "phase / gate / grouped"};
  const char *rest = strstr(text, " kernel=");
  switch (cli_random_below(r, 3)) {
  case 0: return cli_text("%s%s", algorithms[cli_random_below(r, 7)], rest ? rest : "");
  case 1: return cli_text("%.*s", (int)check_between(r, 1, (int64_t)strlen(text)), text);
  default: return cli_text("%s %s", text, more[cli_random_below(r, 8)]);
  }
}

static char *hostile_make(const char *text, uint64_t *r) {
  const int knobs = knobs_count(text);
  if (check_chance(r, 15)) return words_break(text, r);
  if (!knobs) return NULL;
  char *first = knob_replace(text, (int)cli_random_below(r, knobs), r);
  if (!first || !check_chance(r, 30)) return first;
  char *second = knob_replace(first, (int)cli_random_below(r, knobs), r);
  free(first);
  return second;
}

void check_hostile_names(check_names *n, const check_case *t) {
  enum { MOST = 8 };
  uint64_t r = cli_random_mix(t->seed, 43);
  check_names made = {0};
  for (int i = 0; i < MOST && n->count; i++) {
    char *text = hostile_make(n->at[cli_random_below(&r, n->count)], &r);
    if (text) check_names_add(&made, text);
    free(text);
  }
  check_names_free(n);
  *n = made;
}
