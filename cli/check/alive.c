/* Plans that stay alive. The last plans of the run are kept with copies of their operands and the bits they produced;
 * later they run again, in any order, from several threads at once that share the library's pool, each call with its
 * own y and workspace. The bits must be the same. On a device the calls run one after the other. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "check/execute.h"

enum { RING = 32, CALLERS = 3, CALLS = 6, MOST_BYTES = 1 << 20 };

typedef struct kept {
  hk_plan *plan;
  check_case t;
  hk_options options;
  hk_args args; /* pointers into block */
  char *block[V_COUNT], *before, *result, *line;
  size_t y_bytes, state_bytes;
  int64_t y_below;
  bool in_place;
} kept;

static kept ring[RING];
static int64_t next_slot;

static void kept_free(kept *k) {
  hk_plan_destroy(k->plan);
  for (int i = 0; i < V_COUNT; i++) free(k->block[i]);
  free(k->before);
  free(k->result);
  free(k->line);
  memset(k, 0, sizeof *k);
}

/* Copies an operand; returns the pointer that corresponds to `at` in the original. */
static const void *copy(kept *k, const check_session *c, int which, const void *at) {
  const check_vector *v = &c->d.v[which];
  if (!at || !v->bytes) return NULL;
  const size_t bytes = (size_t)v->elements * hk_type_bytes(v->type);
  k->block[which] = aligned_alloc(64, (bytes + 64) / 64 * 64);
  if (!k->block[which]) return NULL;
  memcpy(k->block[which], v->bytes, bytes);
  return k->block[which] + ((const char *)at - c->in[which][PLACE_HIGH]);
}

static void operands_copy(kept *k, const check_session *c) {
  const hk_args a = check_session_args(c, PLACE_HIGH);
  k->args = a;
  k->args.x = copy(k, c, V_X, a.x);
  k->args.f = copy(k, c, V_F, a.f);
  k->args.c = copy(k, c, V_C, a.c);
  k->args.scale = copy(k, c, V_SCALE, a.scale);
  k->args.bias = copy(k, c, V_BIAS, a.bias);
  k->args.state_in = copy(k, c, V_STATE, a.state_in);
}

bool check_alive_keep(const check_session *c, hk_plan *plan, const char *result, const char *line) {
  const size_t y_bytes = c->result_bytes;
  if (c->t->with & (WITH_USER | WITH_USER2 | WITH_STORE | WITH_NONFINITE) || y_bytes > MOST_BYTES) return false;
  if (c->s.x.elements > MOST_BYTES / 8 || hk_plan_workspace(plan) > MOST_BYTES) return false;
  kept *k = &ring[next_slot++ % RING];
  kept_free(k);
  *k = (kept){.plan = plan, .t = *c->t, .options = *c->options, .y_bytes = y_bytes, .y_below = c->s.y.below};
  k->options.decision = NULL;
  k->in_place = c->t->with & WITH_IN_PLACE;
  k->state_bytes = c->t->with & WITH_STATE ? (size_t)c->d.v[V_STATE].elements * hk_type_bytes(c->t->p.x_type) : 0;
  operands_copy(k, c);
  k->before = malloc(y_bytes + 1);
  k->result = malloc(y_bytes + 1);
  k->line = strdup(line);
  if (!k->before || !k->result || !k->line) {
    k->plan = NULL;
    kept_free(k);
    return false;
  }
  memcpy(k->before, c->before[0], y_bytes);
  memcpy(k->result, result, y_bytes);
  return true;
}

/* Compares where the kept result is not 0; gaps were cleared in it and are skipped. */
static bool bits_agree(const kept *k, const char *y) {
  check_shape s;
  const size_t element = hk_type_bytes(k->t.p.y_type);
  check_shape_make(&s, &k->t);
  for (int64_t i = 0; i < s.outputs; i++) {
    int64_t n, c, p[3];
    check_output_at(&s, i, &n, &c, p);
    size_t at = (size_t)(check_y_offset(&s, &s.y, n, c, p) + s.y.below) * element;
    if (memcmp(k->result + at, y + at, element)) return false;
  }
  return true;
}

static bool kept_run(const kept *k, char *why) {
  hk_args a = k->args;
  const size_t element = hk_type_bytes(k->t.p.y_type);
  char *y = malloc(k->y_bytes + 1), *state = k->state_bytes ? malloc(k->state_bytes) : NULL;
  a.workspace_bytes = hk_plan_workspace(k->plan);
  a.workspace = a.workspace_bytes ? aligned_alloc(64, (a.workspace_bytes + 63) / 64 * 64) : NULL;
  bool ok = y && (!k->state_bytes || state) && (!a.workspace_bytes || a.workspace);
  if (!ok) snprintf(why, CHECK_WHY, "no memory");
  else {
    memcpy(y, k->before, k->y_bytes);
    a.y = y + k->y_below * (int64_t)element;
    a.state_out = state;
    if (k->in_place) a.c = a.y;
    hk_status status = cli_execute(&k->options, k->plan, &k->t.p, &k->t.e, &a);
    ok = !status && bits_agree(k, y);
    if (status) snprintf(why, CHECK_WHY, "execute again: %.300s (%s)", hk_last_error(), hk_status_name(status));
    else if (!ok) snprintf(why, CHECK_WHY, "gives other bits while other plans are alive and at work");
  }
  free(y);
  free(state);
  free(a.workspace);
  return ok;
}

typedef struct caller {
  uint64_t random;
  const kept *failed;
  char why[CHECK_WHY];
} caller;

static void *caller_main(void *context) {
  caller *c = context;
  const int64_t count = next_slot < RING ? next_slot : RING;
  for (int i = 0; i < CALLS && !c->failed; i++) {
    const kept *k = &ring[cli_random_below(&c->random, count)];
    if (k->plan && !kept_run(k, c->why)) c->failed = k;
  }
  return NULL;
}

bool check_alive_run(const hk_options *options, check_report *report, uint64_t seed) {
  caller callers[CALLERS];
  pthread_t thread[CALLERS];
  bool started[CALLERS] = {false}, ok = true;
  if (!next_slot) return true;
  for (int i = 0; i < CALLERS; i++) {
    callers[i] = (caller){.random = cli_random_mix(seed, 53 + (uint64_t)i)};
    if (options->device == HK_CPU && i) started[i] = !pthread_create(&thread[i], NULL, caller_main, &callers[i]);
  }
  for (int i = 0; i < CALLERS; i++)
    if (!started[i]) caller_main(&callers[i]);
  for (int i = 0; i < CALLERS; i++) {
    if (started[i]) pthread_join(thread[i], NULL);
    if (!callers[i].failed) continue;
    char *full = cli_text("%s  # %s", callers[i].failed->line, callers[i].why);
    report->failure(report->context, full ? full : callers[i].failed->line);
    free(full);
    ok = false;
  }
  return ok;
}
