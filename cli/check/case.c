/* One case: the reference against the formula, then every decision against the reference, on integers and on floats,
 * placed against guard pages from both sides, with several thread counts, twice; then the call sequences that the case
 * asks for. Nothing outside the elements of y may change. */
#include <stdlib.h>
#include <string.h>

#include "check/check.h"
#include "check/execute.h"

static const char *const with_words[WITH_WORDS] = {"late",      "state",    "user",    "user2",     "store",
                                                   "c_strides", "in_place", "f_zeros", "nonfinite", "flush",
                                                   "like",      "wisdom",   "hostile", "alive"};

bool check_with_read(const char *text, unsigned *with) {
  char copy[128], *rest = NULL;
  *with = 0;
  if (strlen(text) >= sizeof copy) return false;
  strcpy(copy, text);
  for (char *word = strtok_r(copy, ",", &rest); word; word = strtok_r(NULL, ",", &rest)) {
    unsigned i = 0;
    while (i < WITH_WORDS && strcmp(word, with_words[i])) i++;
    if (i == WITH_WORDS) return false;
    *with |= 1u << i;
  }
  return true;
}

/* Residual strides that are y's axes in another order with a gap, or y's own backwards: both follow from the seed. */
static void residual_strides(check_case *t) {
  check_shape s;
  t->e.c_strided = 0;
  check_shape_make(&s, t);
  hk_strides *c = &t->e.c;
  *c = (hk_strides){.offset = 3};
  int64_t step = 1 + (int64_t)(t->seed % 2), *axis[6] = {&c->group, &c->outer, &c->channel, NULL, NULL, NULL};
  for (int d = 0; d < t->p.rank; d++) axis[3 + 3 - t->p.rank + d] = &c->at[d];
  for (int i = 0; i < 6; i++) {
    int a = (int)((i + t->seed / 2) % 6);
    if (!axis[a]) continue;
    *axis[a] = a == 5 && t->seed % 3 == 0 ? -step : step;
    step *= s.y.size[a] > 0 ? s.y.size[a] : 1;
  }
  t->e.c_strided = 1;
}

void check_case_leave_out(check_case *t) {
  t->with &= ~(unsigned)(WITH_NONFINITE | WITH_USER | WITH_USER2 | WITH_STORE);
  if (t->e.act == HK_ACT_USER) t->e.act = HK_ACT_RELU;
  t->e.user = t->e.user2 = NULL;
  t->e.store = NULL;
}

void check_case_settle(check_case *t) {
  if (t->with & WITH_USER) {
    t->e.act = HK_ACT_USER;
    t->e.user = check_user;
  }
  t->e.user2 = t->with & WITH_USER2 ? check_user2 : NULL;
  t->e.store = t->with & WITH_STORE ? check_store : NULL;
  if (!t->e.residual) t->with &= ~(unsigned)(WITH_C_STRIDES | WITH_IN_PLACE);
  if (t->with & WITH_C_STRIDES) residual_strides(t);
  /* Weights given at execute are assumed finite, and int8 always are. */
  if (t->with & WITH_LATE || cli_problem_is_int8(&t->p)) t->with &= ~(unsigned)WITH_NONFINITE;
}

/* ---- text and extents: two more places where the library may be wrong about a problem */

/* Equal where anything is multiplied by them; at: sizes in three dimensions. NULL: equal as they stand. */
static bool strides_equal(const hk_strides *a, const hk_strides *b, int rank, const int64_t count[3],
                          const int64_t *at) {
  bool equal = a->offset == b->offset,
       empty = count && (!count[0] || !count[1] || !count[2] || !at[0] || !at[1] || !at[2]);
  if (empty) return true;
  equal &= a->group == b->group || (count && count[0] == 1);
  equal &= a->outer == b->outer || (count && count[1] == 1);
  equal &= a->channel == b->channel || (count && count[2] == 1);
  for (int d = 0; d < rank; d++) equal &= a->at[d] == b->at[d] || (count && at[d + 3 - rank] == 1);
  return equal;
}

/* s: sizes, where strides that nothing reads may differ; else NULL. */
static bool problems_equal(const hk_problem *a, const hk_problem *b, const check_shape *s) {
  bool equal = a->rank == b->rank && a->x_type == b->x_type && a->f_type == b->f_type && a->y_type == b->y_type;
  equal &= a->n == b->n && a->c == b->c && a->k == b->k && a->x_zero == b->x_zero && a->f_zero == b->f_zero;
  equal &= a->y_zero == b->y_zero && a->feature_groups == b->feature_groups && a->batch_groups == b->batch_groups;
  for (int d = 0; equal && d < a->rank; d++)
    equal &= a->in[d] == b->in[d] && a->window[d] == b->window[d] && a->stride[d] == b->stride[d] &&
             a->pad_lo[d] == b->pad_lo[d] && a->pad_hi[d] == b->pad_hi[d] && a->dilation[d] == b->dilation[d] &&
             a->in_dilation[d] == b->in_dilation[d] && !a->reverse[d] == !b->reverse[d];
  const bool gated = s && s->channels != s->k * s->groups;
  const int64_t x[3] = {s ? s->groups : 0, s ? s->n : 0, s ? s->c : 0}, f[3] = {x[0], s ? s->k : 0, x[2]};
  const int64_t y[3] = {gated ? 1 : x[0], x[1], gated ? s->channels : f[1]};
  return equal && strides_equal(&a->x, &b->x, a->rank, s ? x : NULL, s ? s->in : NULL) &&
         strides_equal(&a->f, &b->f, a->rank, s ? f : NULL, s ? s->window : NULL) &&
         strides_equal(&a->y, &b->y, a->rank, s ? y : NULL, s ? s->out : NULL);
}

static void strides_add(char *to, size_t size, const char *key, const hk_strides *s, int rank) {
  size_t n = strlen(to);
  n += (size_t)snprintf(to + n, size - n, "_%s=%lld.%lld.%lld.%lld", key, (long long)s->offset, (long long)s->group,
                        (long long)s->outer, (long long)s->channel);
  for (int d = 0; d < rank; d++) n += (size_t)snprintf(to + n, size - n, ".%lld", (long long)s->at[d]);
}

/* The problem to the letter: hankel's text leaves out strides that nothing reads, and a failure may be theirs. */
static char *problem_text(const hk_problem *p) {
  hk_problem back = {.size = sizeof back};
  char exact[512] = "", *text = cli_problem_text(p), *full;
  if (!text || (!hk_problem_parse(&back, text) && problems_equal(p, &back, NULL))) return text;
  strides_add(exact, sizeof exact, "xs", &p->x, p->rank);
  strides_add(exact, sizeof exact, "fs", &p->f, p->rank);
  strides_add(exact, sizeof exact, "ys", &p->y, p->rank);
  char *layout = strstr(text, "_xs="); /* replaced; "first" and "last" may stay */
  if (layout) *layout = 0;
  full = cli_text("%s%s", text, exact);
  free(text);
  return full;
}

static char *with_text(unsigned with) {
  char text[160] = "";
  for (unsigned i = 0; i < WITH_WORDS; i++)
    if (with >> i & 1) strcat(strcat(text, *text ? "," : " --with "), with_words[i]);
  return strdup(text);
}

char *check_line(const check_case *t, const hk_options *options, const char *decision) {
  hk_epilogue e = t->e;
  if (t->with & WITH_USER) e.act = HK_ACT_RELU;
  e.user = e.user2 = NULL;
  e.store = NULL;
  e.c_strided = 0;
  hk_options o = *options;
  bool named = decision && *decision;
  if (named && !strcmp(decision, "ref")) o.device = HK_CPU;
  char *problem = problem_text(&t->p), *epilogue = cli_epilogue_text(&e), *with = with_text(t->with);
  char *rest = check_options_text(&o, named);
  bool plain = !epilogue || !*epilogue || !strcmp(epilogue, "none");
  char reduce[48] = "";
  if (t->reduce != CHECK_REDUCE) snprintf(reduce, sizeof reduce, " --reduce %.9g", t->reduce);
  char *line =
      cli_text("hankel check '%s'%s%s%s%s%s%s --seed %llu%s%s%s", problem ? problem : "?", plain ? "" : " --epilogue '",
               plain ? "" : epilogue, plain ? "" : "'", named ? " --decision '" : "", named ? decision : "",
               named ? "'" : "", (unsigned long long)t->seed, with ? with : "", rest ? rest : "", reduce);
  free(problem);
  free(epilogue);
  free(with);
  free(rest);
  return line;
}

void check_before(check_report *report, const check_case *t, const hk_options *options, const char *decision) {
  if (!report->before) return;
  char *line = check_line(t, options, decision);
  report->before(report->context, line ? line : "?");
  free(line);
}

void check_tell(check_report *report, const check_case *t, const hk_options *options, const char *decision,
                const char *kind, const char *why) {
  char *line = check_line(t, options, decision), *full = cli_text("%s  # %s%s", line ? line : "?", kind, why);
  report->failure(report->context, full ? full : why);
  free(line);
  free(full);
}

static bool description_agrees(const check_case *t, const check_shape *s, char *why) {
  hk_problem back = {.size = sizeof back}, exact = back;
  char *text = cli_problem_text(&t->p), *full = problem_text(&t->p);
  bool same = text && full && !hk_problem_parse(&back, text) && problems_equal(&t->p, &back, s);
  same = same && !hk_problem_parse(&exact, full) && problems_equal(&t->p, &exact, NULL);
  char *again = same ? cli_problem_text(&back) : NULL;
  same = same && again && !strcmp(text, again);
  if (!same)
    snprintf(why, CHECK_WHY, "the problem's text does not read back as the problem: %s", text ? hk_last_error() : "");
  free(text);
  free(full);
  free(again);
  hk_extent x, f, y;
  if (!same || t->e.gate) return same;
  same = !hk_problem_extents(&t->p, &x, &f, &y) && x.elements == s->x.elements && f.elements == s->f.elements &&
         y.elements == s->y.elements && (!x.elements || x.below == s->x.below) &&
         (!f.elements || f.below == s->f.below) && (!y.elements || y.below == s->y.below);
  int64_t out[HK_MAX_RANK], n;
  same = same && !hk_problem_output(&t->p, out, &n) && n == s->n;
  for (int d = 0; same && d < t->p.rank; d++) same = out[d] == s->out[3 - t->p.rank + d];
  if (!same) snprintf(why, CHECK_WHY, "the library's sizes or extents are not those of the formula");
  return same;
}

static const char *kind_name(check_kind kind) { return kind == KIND_INTEGERS ? "integers: " : "floats: "; }

static bool decision_run(check_session *c, const char *decision) {
  char why[CHECK_WHY] = "";
  check_before(c->report, c->t, c->options, decision);
  bool ok = check_session_decision(c, decision, why);
  if (!ok) check_tell(c->report, c->t, c->options, decision, kind_name(c->d.kind), why);
  c->report->decisions++;
  return ok;
}

/* One kind of data: the reference against the formula, then the decisions, each until its first failure. */
static check_verdict kind_run(check_session *c, const check_names *n, bool *failed, check_kind kind) {
  char why[CHECK_WHY] = "";
  if (!check_session_open(c, kind)) {
    snprintf(c->report->reason, sizeof c->report->reason, "no memory for the operands");
    return CHECK_SKIPPED;
  }
  check_verdict verdict = CHECK_PASSED;
  /* The reference of a large problem takes minutes: the formula replaces it, unless nothing else computes the
   * problem. */
  bool alone = n->count == 1 && !strcmp(n->at[0], "ref");
  if (c->u.sample) c->report->sampled = true;
  if (!c->u.sample || (alone && kind == KIND_FLOATS)) {
    check_before(c->report, c->t, c->options, "ref");
    verdict = check_session_reference(c, why);
    c->report->decisions += alone;
  }
  if (verdict == CHECK_SKIPPED) snprintf(c->report->reason, sizeof c->report->reason, "%.230s", why);
  if (verdict == CHECK_FAILED) check_tell(c->report, c->t, c->options, "ref", kind_name(kind), why);
  for (int i = 0; verdict == CHECK_PASSED && i < n->count; i++)
    if (!failed[i] && !(c->u.sample && !strcmp(n->at[i], "ref"))) failed[i] = !decision_run(c, n->at[i]);
  return verdict;
}

static check_verdict decisions_run(const check_case *t, const hk_options *options, const check_names *n,
                                   check_report *report) {
  check_session c = {.t = t, .options = options, .report = report};
  bool failed[CHECK_NAMES] = {false};
  check_verdict verdict = CHECK_PASSED;
  check_shape_make(&c.s, t);
  for (int kind = KIND_INTEGERS; verdict == CHECK_PASSED && kind <= KIND_FLOATS; kind++) {
    verdict = kind_run(&c, n, failed, (check_kind)kind);
    check_session_close(&c);
  }
  for (int i = 0; i < n->count; i++)
    if (failed[i] && verdict == CHECK_PASSED) verdict = CHECK_FAILED;
  return verdict;
}

/* The decisions first, then what else the case asks for. */
static check_verdict all_run(const check_case *t, const hk_options *options, check_names *n, check_report *report) {
  double elements, products;
  check_shape_size(t, &elements, &products);
  /* Every call on a device waits for copies and launches: there a few decisions of many problems find more than all
   * decisions of a few. */
  enum { DEVICE_DECISIONS = 5 };
  const int most = (int)(report->work / (products + 100 * elements + 1000));
  if (report->work > 0)
    check_names_thin(n, options->device == HK_CUDA && most > DEVICE_DECISIONS ? DEVICE_DECISIONS : most, t->seed);
  check_verdict verdict = decisions_run(t, options, n, report);
  if (verdict != CHECK_PASSED) return verdict;
  bool ok = true;
  if (t->with & WITH_LIKE) ok &= check_like_run(t, options, n, report);
  if (t->with & WITH_WISDOM) ok &= check_wisdom_run(t, options, n, report);
  if (t->with & WITH_ALIVE) ok &= check_alive_run(options, report, t->seed);
  if (t->with & WITH_HOSTILE && !options->decision) {
    check_hostile_names(n, t);
    ok &= decisions_run(t, options, n, report) != CHECK_FAILED;
  }
  return ok ? CHECK_PASSED : CHECK_FAILED;
}

check_verdict check_run(const check_case *t, const hk_options *options, check_report *report) {
  check_shape s;
  check_names n = {0};
  char why[CHECK_WHY] = "";
  check_shape_make(&s, t);
  if (!description_agrees(t, &s, why)) {
    check_tell(report, t, options, NULL, "", why);
    return CHECK_FAILED;
  }
  check_before(report, t, options, NULL);
  if (check_names_gather(&n, t, options) == HK_UNSUPPORTED) {
    snprintf(report->reason, sizeof report->reason, "%s", hk_last_error());
    return CHECK_SKIPPED;
  }
  check_verdict verdict = CHECK_SKIPPED;
  if (n.count) verdict = all_run(t, options, &n, report);
  else snprintf(report->reason, sizeof report->reason, "no algorithm of this device takes it");
  check_names_free(&n);
  return verdict;
}
