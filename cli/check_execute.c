/* Executions of a case in guarded memory. Every input lies three times: against the guard above it, against the guard
 * below it, and off every boundary between; y and the workspace are poisoned before each call, and everything that is
 * not y's own is compared afterwards. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "check_execute.h"

static check_region inputs[V_COUNT][PLACES], outputs[PLACES], workspaces[PLACES], states[PLACES];
enum { POISON = 0xFF };

/* ---- opening */
static void inputs_place(check_session *c) {
  for (int i = 0; i < V_COUNT; i++) {
    const check_vector *v = &c->d.v[i];
    size_t element = v->bytes ? hk_type_bytes(v->type) : 1, bytes = (size_t)v->elements * element;
    for (int place = 0; place < PLACES; place++) {
      c->in[i][place] = NULL;
      if (!v->bytes || (c->u.sample && place == PLACE_MIDDLE)) continue; /* a large problem does with two */
      c->in[i][place] = check_region_place(&inputs[i][place], bytes, element, (check_place)place);
      memcpy(c->in[i][place], v->bytes, bytes);
    }
  }
}

bool check_session_open(check_session *c, check_kind kind) {
  const check_shape *s = &c->s;
  size_t y_bytes = (size_t)s->y.elements * hk_type_bytes(c->t->p.y_type);
  bool store = c->t->with & WITH_STORE;
  if (!check_data_make(&c->d, c->t, s, kind) || !check_sums_make(&c->u, c->t, s, &c->d, c->report->products))
    return false;
  c->result_bytes = store ? sizeof(double) * (size_t)s->outputs : y_bytes;
  c->result = malloc(c->result_bytes + 1);
  c->again = malloc(c->result_bytes + 1);
  c->before = malloc(y_bytes + 1);
  c->reference = malloc(sizeof(double) * (size_t)(c->u.count + 1));
  c->sink = (check_sink){.shape = s, .rank = c->t->p.rank, .is_double = cli_problem_is_double(&c->t->p)};
  c->sink.value = malloc(sizeof(double) * (size_t)(store ? s->outputs + 1 : 1));
  c->sink.times = malloc((size_t)(store ? s->outputs + 1 : 1));
  if (!c->result || !c->again || !c->before || !c->reference || !c->sink.value || !c->sink.times) return false;
  memset(c->before, POISON, y_bytes);
  if (c->t->with & WITH_IN_PLACE) memcpy(c->before, c->d.v[V_C].bytes, y_bytes);
  inputs_place(c);
  return true;
}

void check_session_close(check_session *c) {
  void *all[] = {c->value, c->bound,  c->norm_bound, c->ref_bound,  c->result,
                 c->again, c->before, c->reference,  c->sink.value, c->sink.times};
  for (size_t i = 0; i < sizeof all / sizeof *all; i++) free(all[i]);
  c->value = c->bound = c->norm_bound = c->ref_bound = c->reference = NULL;
  c->result = c->again = c->before = NULL;
  c->sink = (check_sink){0};
  check_sums_free(&c->u);
  check_data_free(&c->d);
}

/* ---- plans */
static void backwards(void *pool, int64_t count, void (*body)(void *context, int64_t i), void *context) {
  (void)pool;
  for (int64_t i = count - 1; i >= 0; i--) body(context, i);
}

static hk_status plan_make(check_session *c, hk_plan **plan, const char *decision, int threads, bool own_loop) {
  hk_options o = *c->options;
  bool late = c->t->with & WITH_LATE;
  const size_t f_bytes = hk_type_bytes(c->t->p.f_type);
  hk_weights w = {
      .size = sizeof w, .slopes = c->in[V_SLOPES][PLACE_HIGH], .f_zero = (int32_t *)c->in[V_F_ZERO][PLACE_HIGH]};
  if (!late) {
    w.f = c->in[V_F][PLACE_HIGH] + c->s.f.below * (int64_t)f_bytes;
    w.scale = c->in[V_SCALE][PLACE_HIGH];
    w.bias = c->in[V_BIAS][PLACE_HIGH];
  }
  o.threads = threads;
  o.rigor = HK_ESTIMATE; /* patience is for the list of candidates */
  o.parallel_for = own_loop ? backwards : NULL;
  o.decision = *decision ? decision : NULL;
  o.stateful = (c->t->with & WITH_STATE) != 0;
  if (!strcmp(decision, "ref")) o.device = HK_CPU; /* no device has a reference of its own */
  return hk_plan_create(plan, &c->t->p, &c->t->e, &o, &w);
}

/* ---- one call */
typedef struct call {
  hk_args args;
  char *y, *state;
  size_t y_bytes, state_bytes;
} call;

static void *tensor_at(const check_session *c, int which, check_place place, int64_t below) {
  const check_vector *v = &c->d.v[which];
  return c->in[which][place] ? c->in[which][place] + below * (int64_t)hk_type_bytes(v->type) : NULL;
}

static char *workspace_place(const hk_plan *plan, check_place place) {
  size_t bytes = (hk_plan_workspace(plan) + 63) / 64 * 64;
  if (!bytes) return NULL;
  char *w = check_region_place(&workspaces[place], bytes, 1, place);
  if (place == PLACE_MIDDLE) w += 64 - (uintptr_t)w % 64;
  memset(w, POISON, hk_plan_workspace(plan));
  return w;
}

static call call_make(check_session *c, const hk_plan *plan, check_place place) {
  const check_shape *s = &c->s;
  size_t element = hk_type_bytes(c->t->p.y_type);
  call k = {.args.size = sizeof k.args, .y_bytes = (size_t)s->y.elements * element};
  k.y = check_region_place(&outputs[place], k.y_bytes, element, place);
  memcpy(k.y, c->before, k.y_bytes);
  if (place != PLACE_HIGH) memset(k.y + k.y_bytes, POISON, CHECK_MARGIN);
  if (place != PLACE_LOW) memset(k.y - CHECK_MARGIN, POISON, CHECK_MARGIN);
  k.args.x = tensor_at(c, V_X, place, s->x.below);
  k.args.y = k.y + s->y.below * (int64_t)element;
  k.args.c = c->t->with & WITH_IN_PLACE ? k.args.y : tensor_at(c, V_C, place, s->residual.below);
  if (c->t->with & WITH_LATE) {
    k.args.f = tensor_at(c, V_F, place, s->f.below);
    k.args.scale = c->in[V_SCALE][place];
    k.args.bias = c->in[V_BIAS][place];
  }
  if (c->t->with & WITH_STATE) {
    k.state_bytes = (size_t)c->d.v[V_STATE].elements * hk_type_bytes(c->t->p.x_type);
    k.state = check_region_place(&states[place], k.state_bytes, hk_type_bytes(c->t->p.x_type), place);
    memset(k.state, POISON, k.state_bytes);
    k.args.state_in = c->t->seed % 5 ? c->in[V_STATE][place] : NULL;
    k.args.state_out = k.state;
  }
  k.args.workspace = workspace_place(plan, place);
  k.args.workspace_bytes = hk_plan_workspace(plan);
  k.args.user = &c->sink;
  if (c->t->with & WITH_STORE) memset(c->sink.times, 0, (size_t)c->s.outputs);
  c->sink.outside = 0;
  return k;
}

/* What is not y's own must be as it was. */
static bool surroundings_kept(const check_session *c, const call *k, check_place place, char *why) {
  size_t element = hk_type_bytes(c->t->p.y_type);
  bool store = c->t->with & WITH_STORE;
  bool gaps = store || c->s.outputs < c->s.y.elements; /* a dense y has nothing between its elements */
  for (int64_t i = 0; gaps && i < c->s.y.elements; i++)
    if ((store || !c->d.owned[i]) && memcmp(k->y + (size_t)i * element, c->before + (size_t)i * element, element)) {
      snprintf(why, CHECK_WHY, "%s at offset %lld of y was written", store ? "an element" : "a gap",
               (long long)(i - c->s.y.below));
      return false;
    }
  for (int i = 0; i < CHECK_MARGIN; i++)
    if ((place != PLACE_HIGH && (unsigned char)k->y[k->y_bytes + (size_t)i] != POISON) ||
        (place != PLACE_LOW && (unsigned char)k->y[-1 - i] != POISON)) {
      snprintf(why, CHECK_WHY, "memory within %d bytes of y was written", i + 1);
      return false;
    }
  return true;
}

static bool sink_complete(const check_session *c, char *why) {
  if (!(c->t->with & WITH_STORE)) return true;
  if (c->sink.outside) {
    snprintf(why, CHECK_WHY, "the user store got %lld values outside y", (long long)c->sink.outside);
    return false;
  }
  for (int64_t i = 0; i < c->s.outputs; i++)
    if (c->sink.times[i] != 1) {
      snprintf(why, CHECK_WHY, "the user store got output %lld %d times", (long long)i, c->sink.times[i]);
      return false;
    }
  return true;
}

/* The state after a block: the last `past` positions of state and x, oldest first. */
static bool state_agrees(const check_session *c, const call *k, char *why) {
  const check_shape *s = &c->s;
  const hk_problem *p = &c->t->p;
  for (int64_t n = 0; k->state && n < s->n; n++)
    for (int64_t ch = 0; ch < p->c; ch++)
      for (int64_t i = 0; i < s->past; i++) {
        int64_t from = i + s->in[2], row = (n * p->c + ch) * s->past;
        double want;
        if (from < s->past) want = c->d.v[V_STATE].value[row + from];
        else
          want =
              c->d.v[V_X]
                  .value[check_offset(&s->x, ch / s->c, n, ch % s->c, (int64_t[3]){0, 0, from - s->past}) + s->x.below];
        double have = check_decode(p->x_type, k->state, row + i);
        if (have == want) continue;
        snprintf(why, CHECK_WHY, "state_out[%lld,%lld,%lld] = %g, expected %g", (long long)n, (long long)ch,
                 (long long)i, have, want);
        return false;
      }
  return true;
}

static bool execute(check_session *c, const hk_options *where, const hk_plan *plan, check_place place, char *result, char *why) {
  call k = call_make(c, plan, place);
  hk_status status = cli_execute(where, plan, &c->t->p, &c->t->e, &k.args);
  if (status) {
    snprintf(why, CHECK_WHY, "execute: %s (%s)", hk_last_error(), hk_status_name(status));
    return false;
  }
  bool store = c->t->with & WITH_STORE;
  memcpy(result, store ? (char *)c->sink.value : k.y, c->result_bytes);
  return surroundings_kept(c, &k, place, why) && sink_complete(c, why) && state_agrees(c, &k, why);
}

/* ---- comparison */
static double result_at(const check_session *c, const char *result, int64_t j) {
  int64_t n, k, p[3], index = c->u.sample ? c->u.sample[j] : j;
  if (c->t->with & WITH_STORE) return ((const double *)result)[index];
  check_output_at(&c->s, index, &n, &k, p);
  return check_decode(c->t->p.y_type, result, check_y_offset(&c->s, &c->s.y, n, k, p) + c->s.y.below);
}

static hk_type result_type(const check_session *c) {
  if (!(c->t->with & WITH_STORE)) return c->t->p.y_type;
  return cli_problem_is_double(&c->t->p) ? HK_F64 : HK_F32;
}

static double clamped(hk_type type, double v) {
  double low = type == HK_S8 ? -128 : 0, high = type == HK_S8 ? 127 : 255;
  return type != HK_S8 && type != HK_U8 ? v : v < low ? low : v > high ? high : v;
}

/* Beyond this a value rounds to infinity, or to NaN or the largest where a type has none. */
static double type_end(hk_type type) { return type == HK_F16 ? 65500 : type == HK_F8E4M3 ? 440 : INFINITY; }

typedef struct comparison {
  bool exact, with_formula;
  double factor;
} comparison;

/* Is `have` a right answer where the formula says value[i] and the reference says want? */
static bool element_agrees(const check_session *c, const comparison *m, int64_t i, double have, double want) {
  if (have == want || (isnan(have) && isnan(want))) return true;
  /* Against the formula an exact result still has its one rounding. */
  if (m->exact && !m->with_formula && !c->u.sample) return false;
  hk_type type = result_type(c);
  double v = c->value[i], bound = m->with_formula || m->exact ? c->ref_bound[i] : m->factor * c->bound[i];
  if (fabs(v) + bound > type_end(type) && (fabs(have) > 0.9 * type_end(type) || isnan(have))) return true;
  if (type == HK_S8 || type == HK_U8 || type == HK_S32) return fabs(have - clamped(type, v)) <= 0.5 + bound;
  double step = check_rounding(type, fabs(v) + bound);
  return fabs(have - want) <= bound + (m->with_formula || m->exact ? 0.5000001 : 1) * step;
}

static bool difference_tell(const check_session *c, const comparison *m, int64_t j, double have, double want,
                            char *why) {
  int64_t n, k, p[3];
  check_output_at(&c->s, c->u.sample ? c->u.sample[j] : j, &n, &k, p);
  double bound = m->exact ? 0 : m->with_formula ? c->ref_bound[j] : m->factor * c->bound[j];
  snprintf(why, CHECK_WHY, "y[%lld,%lld,%lld,%lld,%lld] = %.9g, %s %.9g (bound %.3g)", (long long)n, (long long)k,
           (long long)p[0], (long long)p[1], (long long)p[2], have,
           m->with_formula || c->u.sample ? "the formula says" : "the reference", want, bound);
  return false;
}

static bool result_agrees(const check_session *c, const comparison *m, const char *result, char *why) {
  double difference = 0, allowed = 0;
  for (int64_t j = 0; j < c->u.count; j++) {
    double have = result_at(c, result, j), want = m->with_formula || c->u.sample ? c->value[j] : c->reference[j];
    if (!element_agrees(c, m, j, have, want)) return difference_tell(c, m, j, have, want, why);
    hk_type type = result_type(c);
    if (type == HK_S8 || type == HK_U8 || type == HK_S32) want = clamped(type, want);
    double d = have - want, e = m->factor * c->norm_bound[j] + check_rounding(type, want);
    if (isfinite(d)) difference += d * d;
    if (isfinite(e)) allowed += e * e;
  }
  if (m->with_formula || m->exact || c->d.kind != KIND_FLOATS || difference <= allowed) return true;
  snprintf(why, CHECK_WHY, "the norm of the error is %.4g, allowed %.4g", sqrt(difference), sqrt(allowed));
  return false;
}

/* ---- the two jobs */
check_verdict check_session_reference(check_session *c, char why[CHECK_WHY]) {
  hk_plan *plan = NULL;
  hk_status status = plan_make(c, &plan, "ref", 1, false);
  if (status) {
    snprintf(why, CHECK_WHY, "plan: %s (%s)", hk_last_error(), hk_status_name(status));
    return status == HK_UNSUPPORTED ? CHECK_SKIPPED : CHECK_FAILED;
  }
  comparison m = {.with_formula = true, .factor = 1};
  bool ok = execute(c, NULL, plan, PLACE_HIGH, c->result, why) && result_agrees(c, &m, c->result, why);
  hk_plan_destroy(plan);
  for (int64_t j = 0; j < c->u.count; j++) c->reference[j] = result_at(c, c->result, j);
  return ok ? CHECK_PASSED : CHECK_FAILED;
}

static bool same_bits(check_session *c, const hk_plan *plan, check_place place, const char *what, char *why) {
  if (!execute(c, c->options, plan, place, c->again, why)) return false;
  if (!memcmp(c->result, c->again, c->result_bytes)) return true;
  snprintf(why, CHECK_WHY, "%s gives other bits", what);
  return false;
}

static bool threads_agree(check_session *c, const char *decision, int threads, bool own_loop, check_place place,
                          char *why) {
  hk_plan *plan = NULL;
  hk_status status = plan_make(c, &plan, decision, threads, own_loop);
  if (status) {
    snprintf(why, CHECK_WHY, "plan for %d threads: %s (%s)", threads, hk_last_error(), hk_status_name(status));
    return false;
  }
  bool ok = same_bits(c, plan, place, own_loop ? "three threads by the caller's loop" : "two threads", why);
  hk_plan_destroy(plan);
  return ok;
}

bool check_session_decision(check_session *c, const char *decision, char why[CHECK_WHY]) {
  hk_plan *plan = NULL;
  hk_status status = plan_make(c, &plan, decision, 1, false);
  /* Candidates are listed as for weights known at creation; one that needs them may refuse later ones. */
  if (status == HK_UNSUPPORTED && c->t->with & WITH_LATE) return true;
  if (status) {
    snprintf(why, CHECK_WHY, "offered, but refused when forced: %s (%s)", hk_last_error(), hk_status_name(status));
    return false;
  }
  double factor = hk_plan_error_factor(plan);
  comparison m = {.exact = c->d.kind == KIND_INTEGERS && factor == 0 && check_epilogue_is_exact(c->t),
                  .factor = factor > 1 ? factor : 1};
  bool ok = execute(c, c->options, plan, PLACE_HIGH, c->result, why) && result_agrees(c, &m, c->result, why);
  if (!c->u.sample) ok = ok && same_bits(c, plan, PLACE_LOW, "a second execution", why);
  char *chosen = cli_decision_text(plan); /* the planner may choose otherwise for other threads */
  hk_plan_destroy(plan);
  if (ok && chosen && c->d.kind == KIND_FLOATS && c->options->device == HK_CPU)
    ok = threads_agree(c, chosen, 2, false, c->u.sample ? PLACE_LOW : PLACE_MIDDLE, why) &&
         (c->u.sample || threads_agree(c, chosen, 3, true, PLACE_LOW, why));
  free(chosen);
  return ok;
}
