/* The same problem through wisdom: learnt by a measurement that has no time, exported, forgotten, imported, and found
 * again as what was learnt; then other decisions in its place. One that the options forbid (a slow path, a workspace
 * limit, an ISA cap) is passed over: the plan is made all the same, within its limits. */
#include <stdlib.h>
#include <string.h>

#include "check/execute.h"

enum { MOST_LINES = 6 };

typedef struct teacher {
  check_session *c;
  const hk_options *options;
  char *text; /* as exported: a head, one line, "end 1" */
  bool ok;
} teacher;

static bool fail(teacher *a, const char *decision, const char *why) {
  check_tell(a->c->report, a->c->t, a->options, decision, "wisdom: ", why);
  a->ok = false;
  return false;
}

static char *export_text(void) {
  size_t length = 0;
  hk_wisdom_export(NULL, 0, &length);
  char *text = malloc(length + 1);
  if (text && hk_wisdom_export(text, length + 1, NULL)) {
    free(text);
    text = NULL;
  }
  return text;
}

/* A plan made with `o`, its decision in *decision (to be freed), run and compared. */
static bool planned(teacher *a, const hk_options *o, hk_status *status, char **decision, char why[CHECK_WHY]) {
  hk_plan *plan = NULL;
  *decision = NULL;
  a->c->options = o;
  *status = check_session_plan(a->c, &plan, "", check_session_threads(a->c), false);
  bool ok = true;
  if (*status) snprintf(why, CHECK_WHY, "%.300s (%s)", hk_last_error(), hk_status_name(*status));
  else {
    *decision = cli_decision_text(plan);
    a->c->report->decisions++;
    ok = check_limits_kept(a->c, plan, why) && check_session_try(a->c, plan, why);
  }
  hk_plan_destroy(plan);
  a->c->options = a->options;
  return ok;
}

/* Measures, and finds the same again through text. */
static bool learn(teacher *a) {
  char why[CHECK_WHY] = "", *first = NULL, *second = NULL;
  hk_options o = *a->options;
  hk_status status;
  o.rigor = HK_MEASURE;
  o.time_limit_s = 1e-5;
  hk_wisdom_forget();
  bool ok = planned(a, &o, &status, &first, why);
  if (status && check_refusal_fits(a->c, status, "")) return false;
  if (status || !ok) {
    free(first);
    return fail(a, NULL, why);
  }
  a->text = export_text();
  if (hk_wisdom_count() != 1 || !a->text) ok = fail(a, NULL, "a measured plan taught not exactly one line");
  hk_wisdom_forget();
  if (ok && hk_wisdom_import(a->text)) ok = fail(a, NULL, hk_last_error());
  o = *a->options;
  o.wisdom_only = 1;
  if (ok && (!planned(a, &o, &status, &second, why) || status)) ok = fail(a, NULL, why);
  if (ok && (!second || strcmp(first, second))) ok = fail(a, NULL, "the plan is not the one that was learnt");
  free(second);
  second = NULL;
  hk_wisdom_forget();
  if (ok && (planned(a, &o, &status, &second, why), status != HK_NO_WISDOM))
    ok = fail(a, NULL, "wisdom_only without wisdom made a plan");
  free(first);
  free(second);
  return ok;
}

/* The learnt line with another decision. */
static char *line_with(const char *text, const char *decision) {
  const char *line = strchr(text, '\n'), *end = line ? strchr(line + 1, '\n') : NULL;
  if (!end) return NULL;
  const char *last = end, *before = NULL;
  while (last > line && *last != '\t') last--;
  for (before = last - 1; before > line && *before != '\t';) before--;
  return cli_text("%.*s%s%s", (int)(before + 1 - text), text, decision, last);
}

/* listed: the options allow this decision, so the plan takes it. */
static void teach(teacher *a, const char *decision, bool listed) {
  char why[CHECK_WHY] = "", *found = NULL, *text = line_with(a->text, decision);
  hk_status status;
  if (!text) return;
  check_before(a->c->report, a->c->t, a->options, decision);
  hk_wisdom_forget();
  if (hk_wisdom_import(text)) fail(a, decision, hk_last_error());
  else if (!planned(a, a->options, &status, &found, why)) fail(a, decision, why);
  else if (status && !check_refusal_fits(a->c, status, "")) fail(a, decision, why);
  else if (listed && found && strcmp(found, decision)) fail(a, decision, "was passed over");
  free(found);
  free(text);
}

/* Decisions of the same problem without limits. */
static void unlimited_gather(check_names *n, const teacher *a) {
  hk_options o = *a->options;
  o.limit_workspace = o.forbid_fallback = 0;
  o.isa = HK_ISA_BEST;
  o.rigor = HK_ESTIMATE;
  o.decision = NULL;
  check_names_gather(n, a->c->t, &o);
}

static bool contains(const check_names *n, const char *decision) {
  for (int i = 0; i < n->count; i++)
    if (!strcmp(n->at[i], decision)) return true;
  return false;
}

static void lines_try(teacher *a, const check_names *listed) {
  uint64_t r = cli_random_mix(a->c->t->seed, 47);
  const bool unsure = a->c->t->with & (WITH_LATE | WITH_NONFINITE);
  check_names all = {0};
  if (a->options->decision) check_names_add(&all, a->options->decision);
  else unlimited_gather(&all, a);
  for (int i = 0; i < MOST_LINES && all.count; i++) {
    const char *decision = all.at[a->options->decision ? 0 : cli_random_below(&r, all.count)];
    if (*decision) teach(a, decision, !unsure && !a->options->decision && contains(listed, decision));
  }
  check_names_free(&all);
}

bool check_wisdom_run(const check_case *t, const hk_options *options, const check_names *n, check_report *report) {
  check_session c = {.t = t, .report = report};
  hk_options plain = *options;
  plain.decision = NULL;
  c.options = &plain;
  teacher a = {.c = &c, .options = options, .ok = true};
  check_shape_make(&c.s, t);
  check_before(report, t, options, NULL);
  if (check_session_open(&c, KIND_FLOATS) && learn(&a) && a.text) lines_try(&a, n);
  hk_wisdom_forget();
  check_session_close(&c);
  free(a.text);
  return a.ok;
}
