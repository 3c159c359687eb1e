/* One decision of a case and what a plan promises: the result of the formula, the same bits when it runs again, with
 * other threads and other memory, no more workspace than the limit, no slow path when that is forbidden, and with
 * batch_invariant the same bits for each image alone. */
#include <stdlib.h>
#include <string.h>

#include "check/execute.h"

enum { MOST_WORKSPACE = 1 << 28 };

check_verdict check_session_reference(check_session *c, char why[CHECK_WHY]) {
  hk_plan *plan = NULL;
  check_session free_of_options = *c;
  hk_options o = *c->options;
  o.forbid_fallback = 0;
  free_of_options.options = &o;
  hk_status status = check_session_plan(&free_of_options, &plan, "ref", 1, false);
  if (status) {
    snprintf(why, CHECK_WHY, "plan: %.300s (%s)", hk_last_error(), hk_status_name(status));
    return status == HK_UNSUPPORTED ? CHECK_SKIPPED : CHECK_FAILED;
  }
  comparison m = {.with_formula = true, .factor = 1};
  bool ok =
      check_session_execute(c, NULL, plan, PLACE_HIGH, c->result, why) && check_result_agrees(c, &m, c->result, why);
  hk_plan_destroy(plan);
  for (int64_t j = 0; j < c->u.count; j++) c->reference[j] = check_result_at(c, c->result, j);
  c->has_reference = ok && !c->u.sample;
  return ok ? CHECK_PASSED : CHECK_FAILED;
}

static bool same_bits(check_session *c, const hk_plan *plan, check_place place, const char *what, char *why) {
  if (!check_session_execute(c, c->options, plan, place, c->again, why)) return false;
  if (!memcmp(c->result, c->again, c->result_bytes)) return true;
  if (c->t->with & WITH_NONFINITE) return true; /* the bits of a NaN are not guaranteed */
  size_t at = 0;
  while (c->result[at] == c->again[at]) at++;
  at /= c->t->with & WITH_STORE ? sizeof(double) : hk_type_bytes(c->t->p.y_type);
  snprintf(why, CHECK_WHY, "%s gives other bits at element %zu", what, at);
  return false;
}

bool check_refusal_fits(const check_session *c, hk_status status, const char *decision) {
  const unsigned with = c->t->with;
  if (!*hk_last_error()) return false;
  if (with & WITH_HOSTILE && *decision) return status == HK_UNSUPPORTED || status == HK_SYNTAX || status == HK_INVALID;
  if (status == HK_FALLBACK) return c->options->forbid_fallback;
  if (status != HK_UNSUPPORTED) return false;
  /* Candidates are listed as for finite weights that are known at creation. */
  if (*decision && with & (WITH_LATE | WITH_NONFINITE)) return true;
  return c->options->device == HK_CUDA && (c->options->limit_workspace || with & WITH_LATE);
}

static bool threads_agree(check_session *c, const char *decision, int threads, bool own_loop, check_place place,
                          char *why) {
  hk_plan *plan = NULL;
  hk_status status = check_session_plan(c, &plan, decision, threads, own_loop);
  if (status && c->t->with & WITH_HOSTILE) return true;
  if (status == HK_UNSUPPORTED && c->options->limit_workspace) return true; /* more threads, more workspace */
  if (status) {
    snprintf(why, CHECK_WHY, "plan for %d threads: %.300s (%s)", threads, hk_last_error(), hk_status_name(status));
    return false;
  }
  bool ok = hk_plan_workspace(plan) > MOST_WORKSPACE ||
            same_bits(c, plan, place, own_loop ? "the caller's loop" : "another number of threads", why);
  hk_plan_destroy(plan);
  return ok;
}

/* Whether a decision names a kernel of a higher ISA than the cap. */
static bool above_cap(const char *decision, hk_isa cap) {
  const char *names[] = {"_avx2", "_avx512"};
  const hk_isa isas[] = {HK_ISA_AVX2, HK_ISA_AVX512};
  for (int i = 0; i < 2; i++)
    if (cap && isas[i] > cap && strstr(decision, names[i])) return true;
  return false;
}

bool check_limits_kept(const check_session *c, const hk_plan *plan, char why[CHECK_WHY]) {
  const hk_options *o = c->options;
  if (o->limit_workspace && hk_plan_workspace(plan) > o->workspace_limit_bytes) {
    snprintf(why, CHECK_WHY, "the plan needs %zu bytes of workspace, the limit is %zu", hk_plan_workspace(plan),
             o->workspace_limit_bytes);
    return false;
  }
  char *decision = cli_decision_text(plan);
  bool slow = decision && !strcmp(decision, "ref") && o->forbid_fallback;
  bool above = decision && above_cap(decision, o->isa);
  free(decision);
  if (slow) snprintf(why, CHECK_WHY, "forbid_fallback is set and the plan is a slow path");
  if (above) snprintf(why, CHECK_WHY, "the plan's kernel is above the ISA cap");
  return !slow && !above;
}

/* ---- batch invariance */
/* Compares the elements of image n in c->again, computed alone, with those in c->result. */
static bool image_agrees(const check_session *c, int64_t image, char *why) {
  const check_shape *s = &c->s;
  const size_t element = hk_type_bytes(c->t->p.y_type);
  const int64_t each = s->channels * s->pixels;
  for (int64_t i = image * each; i < (image + 1) * each; i++) {
    int64_t n, k, p[3];
    check_output_at(s, i, &n, &k, p);
    size_t at = (size_t)(check_y_offset(s, &s->y, n, k, p) + s->y.below) * element;
    if (!memcmp(c->result + at, c->again + at, element)) continue;
    snprintf(why, CHECK_WHY, "batch_invariant: image %lld alone gives other bits at output %lld", (long long)image,
             (long long)(i - image * each));
    return false;
  }
  return true;
}

static hk_status image_run(const check_session *c, const hk_plan *plan, const hk_problem *p, int64_t image) {
  const check_shape *s = &c->s;
  const size_t xb = hk_type_bytes(p->x_type), yb = hk_type_bytes(p->y_type);
  const int64_t x = s->x.stride[1] * image * (int64_t)xb, y = s->y.stride[1] * image * (int64_t)yb;
  const int64_t residual = s->residual.stride[1] * image * (int64_t)yb;
  hk_args a = check_session_args(c, PLACE_HIGH);
  memcpy(c->again, c->before[0], c->result_bytes);
  a.y = c->again + s->y.below * (int64_t)yb + y;
  a.x = (const char *)a.x + x;
  a.c = c->t->with & WITH_IN_PLACE ? a.y : a.c ? (const char *)a.c + residual : NULL;
  if (a.state_in) a.state_in = (const char *)a.state_in + image * p->c * s->past * (int64_t)xb;
  a.workspace_bytes = hk_plan_workspace(plan);
  a.workspace = a.workspace_bytes ? aligned_alloc(64, (a.workspace_bytes + 63) / 64 * 64) : NULL;
  hk_status status = cli_execute(c->options, plan, p, &c->t->e, &a);
  free(a.workspace);
  return status;
}

static bool images_agree(check_session *c, char *why) {
  check_case one = *c->t;
  check_session alone = *c;
  hk_plan *plan = NULL;
  one.p.n = 1;
  alone.t = &one;
  hk_status status = check_session_plan(&alone, &plan, "", 1 + (int)(c->t->seed % 4), false);
  if (status && check_refusal_fits(c, status, "")) return true;
  bool ok = !status;
  if (status) snprintf(why, CHECK_WHY, "plan for one image: %.300s (%s)", hk_last_error(), hk_status_name(status));
  for (int64_t image = 0; ok && image<c->s.n; image += c->s.n> 1 ? c->s.n - 1 : 1) {
    status = image_run(c, plan, &one.p, image);
    if (status) snprintf(why, CHECK_WHY, "one image: %.300s (%s)", hk_last_error(), hk_status_name(status));
    ok = !status && image_agrees(c, image, why);
  }
  hk_plan_destroy(plan);
  return ok;
}

static bool invariance_applies(const check_session *c, const char *decision) {
  const unsigned own = WITH_USER | WITH_USER2 | WITH_STORE | WITH_NONFINITE;
  return c->options->batch_invariant && !*decision && c->d.kind == KIND_FLOATS && !c->s.batch_grouped && c->s.n > 1 &&
         c->s.outputs > 0 && !(c->t->with & own);
}

/* ---- a plan's texts */
/* The story prints whole or truncated; the symbols end, and those known elsewhere agree. */
static bool words_agree(const hk_plan *plan, char *why) {
  char cut[40];
  size_t length = 0;
  char *story = cli_story_text(plan);
  bool ok = story && !hk_plan_print(plan, cut, sizeof cut, &length) && length == strlen(story) &&
            !strncmp(cut, story, sizeof cut - 1);
  free(story);
  const char *name = NULL;
  double value = 0;
  int32_t count = 0;
  for (; ok && !hk_plan_symbol(plan, count, &name, &value); count++)
    if (!strcmp(name, "workspace_bytes")) ok = value == (double)hk_plan_workspace(plan);
  if (ok && count > 10) return true;
  snprintf(why, CHECK_WHY, "the plan's text or symbols do not agree with it (%d symbols)", (int)count);
  return false;
}

/* ---- one decision */
/* The pool's threads spin after each call, so most random cases of one thread run without them. */
static bool runs_again(check_session *c, const char *chosen, char *why) {
  const int threads = check_session_threads(c);
  const bool pool = threads > 1 || c->u.sample || !c->report->work || c->t->seed % 4 == 0;
  if (c->d.kind != KIND_FLOATS || c->options->device != HK_CPU) return true;
  if (pool && !threads_agree(c, chosen, threads == 2 ? 1 : 2, false, c->u.sample ? PLACE_LOW : PLACE_MIDDLE, why))
    return false;
  return c->u.sample || threads_agree(c, chosen, 3, true, pool ? PLACE_LOW : PLACE_MIDDLE, why);
}

bool check_session_decision(check_session *c, const char *decision, char why[CHECK_WHY]) {
  hk_plan *plan = NULL;
  hk_status status = check_session_plan(c, &plan, decision, check_session_threads(c), false);
  if (status) {
    if (check_refusal_fits(c, status, decision)) return true;
    snprintf(why, CHECK_WHY, "%s: %.300s (%s)", *decision ? "offered, but refused when forced" : "no plan",
             hk_last_error(), hk_status_name(status));
    return false;
  }
  if (hk_plan_workspace(plan) > MOST_WORKSPACE && c->t->with & WITH_HOSTILE) {
    hk_plan_destroy(plan);
    return true;
  }
  bool ok = check_limits_kept(c, plan, why) && check_session_try(c, plan, why);
  if (c->t->seed % 16 == 1) ok = ok && words_agree(plan, why);
  if (c->t->seed % 16 == 2) ok = ok && check_misuse_refused(c, plan, why);
  if (!c->u.sample) ok = ok && same_bits(c, plan, PLACE_LOW, "a second execution", why);
  char *chosen = cli_decision_text(plan); /* the planner may choose otherwise for other threads */
  ok = ok && (!chosen || runs_again(c, chosen, why));
  ok = ok && (!invariance_applies(c, decision) || images_agree(c, why));
  char *line = ok && c->t->with & WITH_ALIVE ? check_line(c->t, c->options, decision) : NULL;
  if (!line || !check_alive_keep(c, plan, c->result, line)) hk_plan_destroy(plan);
  free(line);
  free(chosen);
  return ok;
}
