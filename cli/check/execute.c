/* Executions of a case in guarded memory. Every input exists three times: against the guard above it, against the guard
 * below it, and unaligned between; y and the workspace are poisoned before each call, and everything that does not
 * belong to y is compared afterwards. The workspace has exactly as many bytes as the plan reports. */
#include <float.h>
#include <stdlib.h>
#include <string.h>

#include "check/execute.h"

static check_region inputs[V_COUNT][PLACES], outputs[PLACES], workspaces[PLACES], states[PLACES];
enum { POISON = 0xFF, OTHER_POISON = 0x5A };

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
  c->before[0] = malloc(y_bytes + 1);
  c->before[1] = malloc(y_bytes + 1);
  c->reference = malloc(sizeof(double) * (size_t)(c->u.count + 1));
  c->sink = (check_sink){.shape = s, .rank = c->t->p.rank, .is_double = cli_problem_is_double(&c->t->p)};
  c->sink.value = malloc(sizeof(double) * (size_t)(store ? s->outputs + 1 : 1));
  c->sink.times = malloc((size_t)(store ? s->outputs + 1 : 1));
  if (!c->result || !c->again || !c->before[0] || !c->before[1] || !c->reference || !c->sink.value || !c->sink.times)
    return false;
  memset(c->before[0], POISON, y_bytes);
  memset(c->before[1], OTHER_POISON, y_bytes);
  for (int i = 0; i < 2 && c->t->with & WITH_IN_PLACE; i++) memcpy(c->before[i], c->d.v[V_C].bytes, y_bytes);
  inputs_place(c);
  return check_expected_make(c);
}

void check_session_close(check_session *c) {
  void *all[] = {c->value,        c->bound,     c->norm_bound, c->ref_bound,  c->result,     c->again,  c->before[0],
                 c->spread_bound, c->before[1], c->reference,  c->sink.value, c->sink.times, c->agreed, c->at};
  for (size_t i = 0; i < sizeof all / sizeof *all; i++) free(all[i]);
  c->at = NULL;
  c->value = c->bound = c->norm_bound = c->ref_bound = c->spread_bound = c->reference = NULL;
  c->result = c->again = c->before[0] = c->before[1] = c->agreed = NULL;
  c->has_reference = false;
  c->sink = (check_sink){0};
  check_sums_free(&c->u);
  check_data_free(&c->d);
}

/* ---- plans */
static void backwards(void *pool, int64_t count, void (*body)(void *context, int64_t i), void *context) {
  (void)pool;
  for (int64_t i = count - 1; i >= 0; i--) body(context, i);
}

int check_session_threads(const check_session *c) { return c->options->threads > 0 ? c->options->threads : 1; }

hk_status check_session_plan(const check_session *c, hk_plan **plan, const char *decision, int threads, bool own_loop) {
  hk_options o = *c->options;
  bool late = c->t->with & WITH_LATE;
  const size_t f_bytes = hk_type_bytes(c->t->p.f_type);
  const check_place place = c->t->seed % 3 ? PLACE_HIGH : PLACE_LOW;
  hk_weights w = {.size = sizeof w, .slopes = c->in[V_SLOPES][place], .f_zero = (int32_t *)c->in[V_F_ZERO][place]};
  if (!late) {
    w.f = c->in[V_F][place] + c->s.f.below * (int64_t)f_bytes;
    w.scale = c->in[V_SCALE][place];
    w.bias = c->in[V_BIAS][place];
  }
  o.threads = threads;
  if (!o.time_limit_s) o.rigor = HK_ESTIMATE; /* patience is for the list of candidates; wisdom sets a limit */
  o.parallel_for = own_loop ? backwards : NULL;
  o.decision = *decision ? decision : NULL;
  o.stateful = (c->t->with & WITH_STATE) != 0;
  o.denormals = c->t->with & WITH_FLUSH ? HK_DENORMALS_FLUSH : HK_DENORMALS_KEEP;
  if (!strcmp(decision, "ref") && o.device != HK_CPU) { /* no device has a reference of its own */
    o.device = HK_CPU;
    o.limit_workspace = 0;
  }
  return hk_plan_create(plan, &c->t->p, &c->t->e, &o, &w);
}

/* ---- one call */
typedef struct call {
  hk_args args;
  char *y, *state, *workspace;
  size_t y_bytes, state_bytes;
} call;

static void *tensor_at(const check_session *c, int which, check_place place, int64_t below) {
  const check_vector *v = &c->d.v[which];
  return c->in[which][place] ? c->in[which][place] + below * (int64_t)hk_type_bytes(v->type) : NULL;
}

static size_t rounded(size_t bytes) { return (bytes + 63) / 64 * 64; }

/* Its end touches the guard when it is a multiple of 64 bytes; otherwise the few bytes between are poisoned too. */
static char *workspace_place(const hk_plan *plan, check_place place) {
  size_t bytes = rounded(hk_plan_workspace(plan));
  if (!bytes) return NULL;
  char *w = check_region_place(&workspaces[place], bytes, 1, place);
  if (place == PLACE_MIDDLE) w += 64 - (uintptr_t)w % 64;
  memset(w, POISON, bytes);
  return w;
}

hk_args check_session_args(const check_session *c, check_place place) {
  hk_args a = {.size = sizeof a};
  a.x = tensor_at(c, V_X, place, c->s.x.below);
  a.c = tensor_at(c, V_C, place, c->s.residual.below);
  if (c->t->with & WITH_LATE) {
    a.f = tensor_at(c, V_F, place, c->s.f.below);
    a.scale = c->in[V_SCALE][place];
    a.bias = c->in[V_BIAS][place];
  }
  if (c->t->with & WITH_STATE) a.state_in = c->t->seed % 5 ? c->in[V_STATE][place] : NULL;
  return a;
}

static call call_make(check_session *c, const hk_plan *plan, check_place place) {
  const check_shape *s = &c->s;
  size_t element = hk_type_bytes(c->t->p.y_type);
  call k = {.args = check_session_args(c, place), .y_bytes = (size_t)s->y.elements * element};
  k.y = check_region_place(&outputs[place], k.y_bytes, element, place);
  if (place == PLACE_MIDDLE) k.y += 64 * (c->t->seed % 4); /* a little further on in its page than x */
  memcpy(k.y, c->before[place != PLACE_HIGH], k.y_bytes);
  if (place != PLACE_HIGH) memset(k.y + k.y_bytes, POISON, CHECK_MARGIN);
  if (place != PLACE_LOW) memset(k.y - CHECK_MARGIN, POISON, CHECK_MARGIN);
  k.args.y = k.y + s->y.below * (int64_t)element;
  if (c->t->with & WITH_IN_PLACE) k.args.c = k.args.y;
  if (c->t->with & WITH_STATE) {
    k.state_bytes = (size_t)c->d.v[V_STATE].elements * hk_type_bytes(c->t->p.x_type);
    k.state = check_region_place(&states[place], k.state_bytes, hk_type_bytes(c->t->p.x_type), place);
    memset(k.state, POISON, k.state_bytes);
    k.args.state_out = k.state;
  }
  k.args.workspace = k.workspace = workspace_place(plan, place);
  k.args.workspace_bytes = hk_plan_workspace(plan);
  k.args.user = &c->sink;
  if (c->t->with & WITH_STORE) memset(c->sink.times, 0, (size_t)c->s.outputs);
  c->sink.outside = 0;
  return k;
}

/* Everything outside y must be unchanged. */
static bool surroundings_kept(const check_session *c, const hk_plan *plan, const call *k, check_place place,
                              char *why) {
  size_t element = hk_type_bytes(c->t->p.y_type);
  const char *before = c->before[place != PLACE_HIGH];
  bool store = c->t->with & WITH_STORE;
  bool gaps = store || c->s.outputs < c->s.y.elements; /* a dense y has nothing between its elements */
  for (int64_t i = 0; gaps && i < c->s.y.elements; i++)
    if ((store || !c->d.owned[i]) && memcmp(k->y + (size_t)i * element, before + (size_t)i * element, element)) {
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
  size_t bytes = hk_plan_workspace(plan);
  for (size_t i = bytes; k->workspace && i < rounded(bytes); i++)
    if ((unsigned char)k->workspace[i] != POISON) {
      snprintf(why, CHECK_WHY, "byte %zu of a workspace of %zu was written", i, bytes);
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
        if (have == want || (have != have && want != want)) continue;
        snprintf(why, CHECK_WHY, "state_out[%lld,%lld,%lld] = %g, expected %g", (long long)n, (long long)ch,
                 (long long)i, have, want);
        return false;
      }
  return true;
}

/* The caller's floating-point mode is restored: a denormal survives. */
static bool mode_restored(char *why) {
  volatile float tiny = FLT_MIN;
  tiny = tiny * 0.25f;
  if (tiny > 0) return true;
  snprintf(why, CHECK_WHY, "execute left the thread in flush-to-zero mode");
  return false;
}

/* Results are compared as bytes; what lies between the elements is not part of them. */
static void gaps_clear(const check_session *c, char *result) {
  size_t element = hk_type_bytes(c->t->p.y_type);
  if (c->s.outputs == c->s.y.elements) return;
  for (int64_t i = 0; i < c->s.y.elements; i++)
    if (!c->d.owned[i]) memset(result + (size_t)i * element, 0, element);
}

bool check_session_execute(check_session *c, const hk_options *where, const hk_plan *plan, check_place place,
                           char *result, char why[CHECK_WHY]) {
  call k = call_make(c, plan, place);
  hk_status status = cli_execute(where, plan, &c->t->p, &c->t->e, &k.args);
  if (status) {
    snprintf(why, CHECK_WHY, "execute: %.300s (%s)", hk_last_error(), hk_status_name(status));
    c->report->device_lost |= status == HK_DEVICE;
    return false;
  }
  bool store = c->t->with & WITH_STORE;
  memcpy(result, store ? (char *)c->sink.value : k.y, c->result_bytes);
  if (!store) gaps_clear(c, result);
  return surroundings_kept(c, plan, &k, place, why) && sink_complete(c, why) && state_agrees(c, &k, why) &&
         mode_restored(why);
}

bool check_session_try(check_session *c, const hk_plan *plan, char why[CHECK_WHY]) {
  const comparison m = check_comparison(c, plan);
  return check_session_execute(c, c->options, plan, PLACE_HIGH, c->result, why) &&
         check_result_agrees(c, &m, c->result, why);
}
