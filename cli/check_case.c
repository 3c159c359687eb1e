/* One case: the reference against the formula, then every decision against the reference, on integers and on floats,
 * placed against guard pages from both sides, with one, two and three threads, twice. Nothing outside y's own elements
 * may change. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "check_execute.h"

static const char *const with_words[] = {"late", "state", "user", "user2", "store", "c_strides", "in_place", "f_zeros"};

bool check_with_read(const char *text, unsigned *with) {
  char copy[128], *rest = NULL;
  *with = 0;
  if (strlen(text) >= sizeof copy) return false;
  strcpy(copy, text);
  for (char *word = strtok_r(copy, ",", &rest); word; word = strtok_r(NULL, ",", &rest)) {
    unsigned i = 0;
    while (i < 8 && strcmp(word, with_words[i])) i++;
    if (i == 8) return false;
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
  t->with &= ~(unsigned)(WITH_USER | WITH_USER2 | WITH_STORE);
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
}

char *check_line(const check_case *t, const hk_options *options, const char *decision) {
  hk_epilogue e = t->e;
  if (t->with & WITH_USER) e.act = HK_ACT_RELU;
  e.user = e.user2 = NULL;
  e.store = NULL;
  e.c_strided = 0;
  char *problem = cli_problem_text(&t->p), *epilogue = cli_epilogue_text(&e), with[80] = "";
  for (unsigned i = 0; i < 8; i++)
    if (t->with >> i & 1) {
      strcat(with, *with ? "," : " --with ");
      strcat(with, with_words[i]);
    }
  bool named = decision && *decision;
  bool plain = !epilogue || !*epilogue || !strcmp(epilogue, "none");
  char *line = cli_text(
      "hankel check '%s'%s%s%s%s%s%s --seed %llu%s%s%s%s%s%s", problem ? problem : "?", plain ? "" : " --epilogue '",
      plain ? "" : epilogue, plain ? "" : "'", named ? " --decision '" : "", named ? decision : "", named ? "'" : "",
      (unsigned long long)t->seed, with, options->math ? " --math fast" : "", options->isa ? " --isa " : "",
      options->isa ? hk_isa_name(options->isa) : "", !named && options->rigor == HK_PATIENT ? " --rigor patient" : "",
      options->device == HK_CUDA && strcmp(named ? decision : "", "ref") ? " --device cuda" : "");
  free(problem);
  free(epilogue);
  return line;
}

/* ---- text and extents: two more places where the library may be wrong about a problem */
static bool strides_equal(const hk_strides *a, const hk_strides *b, int rank) {
  bool equal = a->offset == b->offset && a->group == b->group && a->outer == b->outer && a->channel == b->channel;
  for (int d = 0; d < rank; d++) equal &= a->at[d] == b->at[d];
  return equal;
}

static bool problems_equal(const hk_problem *a, const hk_problem *b) {
  bool equal = a->rank == b->rank && a->x_type == b->x_type && a->f_type == b->f_type && a->y_type == b->y_type;
  equal &= a->n == b->n && a->c == b->c && a->k == b->k && a->x_zero == b->x_zero && a->f_zero == b->f_zero;
  equal &= a->y_zero == b->y_zero && a->feature_groups == b->feature_groups && a->batch_groups == b->batch_groups;
  for (int d = 0; equal && d < a->rank; d++)
    equal &= a->in[d] == b->in[d] && a->window[d] == b->window[d] && a->stride[d] == b->stride[d] &&
             a->pad_lo[d] == b->pad_lo[d] && a->pad_hi[d] == b->pad_hi[d] && a->dilation[d] == b->dilation[d] &&
             a->in_dilation[d] == b->in_dilation[d] && !a->reverse[d] == !b->reverse[d];
  return equal && strides_equal(&a->x, &b->x, a->rank) && strides_equal(&a->f, &b->f, a->rank) &&
         strides_equal(&a->y, &b->y, a->rank);
}

static bool description_agrees(const check_case *t, const check_shape *s, char *why) {
  hk_problem back = {.size = sizeof back};
  char *text = cli_problem_text(&t->p);
  bool same = text && !hk_problem_parse(&back, text) && problems_equal(&t->p, &back);
  if (!same)
    snprintf(why, CHECK_WHY, "the problem's text does not read back as the problem: %s", text ? hk_last_error() : "");
  free(text);
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

/* ---- what each output should be, and how far from it one may land */
static void expected_at(check_session *c, int64_t j) {
  const hk_problem *p = &c->t->p;
  bool user = c->t->with & (WITH_USER | WITH_USER2 | WITH_STORE), wide = cli_problem_is_double(p);
  double eps = check_eps(p), eps_v = wide ? 0x1p-52 : 0x1p-23;
  double eps_ref = wide ? 0x1p-50 : user || cli_problem_is_int8(p) ? 0x1p-22 : 0x1p-45;
  double sum[2] = {0, 0}, e1[2], e2[2], er[2], gk = c->s.gk > 0 ? (double)c->s.gk : 1;
  for (int g = 0; g <= (c->t->e.gate != 0); g++) {
    int64_t i = 2 * j + g;
    sum[g] = c->u.sum[i];
    e1[g] = gk * eps * c->u.absolute[i];
    e2[g] = 4 * eps * sqrt(gk) * fmax(fabs(c->u.sum[i]), sqrt(c->u.square[i]));
    er[g] = gk * 0x1p-52 * c->u.absolute[i];
  }
  int64_t n, k, at[3];
  check_output_at(&c->s, c->u.sample ? c->u.sample[j] : j, &n, &k, at);
  check_value v = check_epilogue_eval(c->t, &c->s, &c->d, sum, e1, eps_v, n, k, at);
  c->value[j] = v.v;
  c->bound[j] = v.error;
  c->norm_bound[j] = check_epilogue_eval(c->t, &c->s, &c->d, sum, e2, eps_v, n, k, at).error;
  c->ref_bound[j] = check_epilogue_eval(c->t, &c->s, &c->d, sum, er, eps_ref, n, k, at).error;
}

static bool expected_make(check_session *c) {
  size_t bytes = sizeof(double) * (size_t)(c->u.count + 1);
  c->value = malloc(bytes);
  c->bound = malloc(bytes);
  c->norm_bound = malloc(bytes);
  c->ref_bound = malloc(bytes);
  if (!c->value || !c->bound || !c->norm_bound || !c->ref_bound) return false;
  for (int64_t j = 0; j < c->u.count; j++) expected_at(c, j);
  return true;
}

static bool decision_run(check_session *c, const char *decision) {
  char why[CHECK_WHY] = "";
  char *line = check_line(c->t, c->options, decision);
  if (c->report->before) c->report->before(c->report->context, line ? line : "?");
  bool ok = check_session_decision(c, decision, why);
  if (!ok) {
    char *full = cli_text("%s  # %s: %s", line, c->d.kind == KIND_INTEGERS ? "integers" : "floats", why);
    c->report->failure(c->report->context, full ? full : line);
    free(full);
  }
  free(line);
  c->report->decisions++;
  return ok;
}

typedef struct names {
  int count;
  char *at[256];
} names;

static void candidate_keep(void *context, const hk_candidate *candidate) {
  names *n = context;
  if (!candidate->refusal && n->count < 256) n->at[n->count++] = strdup(candidate->decision);
}

/* One kind of data: the reference against the formula, then the decisions, each until its first failure. */
static check_verdict kind_run(check_session *c, names *n, bool *failed, check_kind kind) {
  char why[CHECK_WHY] = "";
  if (!check_session_open(c, kind) || !expected_make(c)) {
    snprintf(c->report->reason, sizeof c->report->reason, "no memory for the operands");
    return CHECK_SKIPPED;
  }
  char *line = check_line(c->t, c->options, "ref");
  if (c->report->before) c->report->before(c->report->context, line ? line : "?");
  check_verdict verdict = CHECK_PASSED;
  /* The reference of a large problem takes minutes: the formula stands for it, unless nothing else computes it. */
  bool alone = n->count == 1 && !strcmp(n->at[0], "ref");
  if (c->u.sample) c->report->sampled = true;
  if (!c->u.sample || (alone && kind == KIND_FLOATS)) {
    verdict = check_session_reference(c, why);
    c->report->decisions += alone;
  }
  if (verdict == CHECK_SKIPPED) snprintf(c->report->reason, sizeof c->report->reason, "%s", why);
  if (verdict == CHECK_FAILED) {
    char *full = cli_text("%s  # %s: %s", line, kind == KIND_INTEGERS ? "integers" : "floats", why);
    c->report->failure(c->report->context, full ? full : line);
    free(full);
  }
  free(line);
  for (int i = 0; verdict == CHECK_PASSED && i < n->count; i++)
    if (!failed[i] && !(c->u.sample && !strcmp(n->at[i], "ref"))) failed[i] = !decision_run(c, n->at[i]);
  return verdict;
}

check_verdict check_run(const check_case *t, const hk_options *options, check_report *report) {
  check_session c = {.t = t, .options = options, .report = report};
  names n = {0};
  bool failed[256] = {false};
  char why[CHECK_WHY] = "";
  check_shape_make(&c.s, t);
  check_verdict verdict = CHECK_PASSED;
  if (!description_agrees(t, &c.s, why)) {
    char *line = check_line(t, options, NULL), *full = cli_text("%s  # %s", line, why);
    report->failure(report->context, full);
    free(line);
    free(full);
    return CHECK_FAILED;
  }
  hk_options o = *options;
  o.stateful = (t->with & WITH_STATE) != 0;
  if (options->decision) n.at[n.count++] = strdup(options->decision);
  else {
    /* With late weights the planner's own choice may be none of the listed. */
    if (t->with & WITH_LATE) n.at[n.count++] = strdup("");
    hk_status status = hk_plan_candidates(&t->p, &t->e, &o, candidate_keep, &n);
    if (status == HK_UNSUPPORTED) {
      snprintf(report->reason, sizeof report->reason, "%s", hk_last_error());
      return CHECK_SKIPPED;
    }
  }
  if (!n.count) {
    snprintf(report->reason, sizeof report->reason, "no algorithm of this device takes it");
    return CHECK_SKIPPED;
  }
  for (int kind = KIND_INTEGERS; verdict == CHECK_PASSED && kind <= KIND_FLOATS; kind++) {
    verdict = kind_run(&c, &n, failed, (check_kind)kind);
    check_session_close(&c);
  }
  for (int i = 0; i < n.count; i++) {
    if (failed[i] && verdict == CHECK_PASSED) verdict = CHECK_FAILED;
    free(n.at[i]);
  }
  return verdict;
}
