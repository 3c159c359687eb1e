/* Calls of the plan fuzzer that break a rule, and calls from two threads. Their y lies in memory of its own, exactly as
 * long as the problem says, so that the sanitizers see what goes beyond. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "plan_fuzz.h"

enum { POISON = 0xA5 };
typedef struct memory {
  hk_args args;
  char *y, *workspace;
  size_t bytes;
} memory;

static bool memory_make(memory *m, fuzz *f, const hk_plan *plan) {
  const check_session *c = &f->c;
  const check_case *t = c->t;
  const size_t element = hk_type_bytes(t->p.y_type), workspace = hk_plan_workspace(plan);
  *m = (memory){.bytes = (size_t)c->s.y.elements * element};
  m->y = malloc(m->bytes ? m->bytes : 1);
  m->workspace = workspace ? aligned_alloc(64, (workspace + 63) / 64 * 64) : NULL;
  if (!m->y || (workspace && !m->workspace)) return false;
  memcpy(m->y, c->before[0], m->bytes);
  if (workspace) memset(m->workspace, POISON, workspace);
  m->args = check_session_args(c, PLACE_HIGH);
  m->args.y = m->y + c->s.y.below * (int64_t)element;
  if (t->with & WITH_IN_PLACE) m->args.c = m->args.y;
  m->args.workspace = m->workspace;
  m->args.workspace_bytes = workspace;
  m->args.user = (void *)&c->sink;
  return true;
}

static void memory_free(memory *m) {
  free(m->y);
  free(m->workspace);
}

hk_weights fuzz_weights(const fuzz *f) {
  const check_session *c = &f->c;
  hk_weights w = {
      .size = sizeof w, .slopes = c->in[V_SLOPES][PLACE_HIGH], .f_zero = (int32_t *)c->in[V_F_ZERO][PLACE_HIGH]};
  if (c->t->with & WITH_LATE) return w;
  w.f = c->in[V_F][PLACE_HIGH] + c->s.f.below * (int64_t)hk_type_bytes(c->t->p.f_type);
  w.scale = c->in[V_SCALE][PLACE_HIGH];
  w.bias = c->in[V_BIAS][PLACE_HIGH];
  return w;
}

/* ---- arguments that break a rule */
enum {
  NO_ARGS,
  NO_SIZE,
  NO_X,
  NO_Y,
  NO_C,
  NO_F,
  NO_BIAS,
  NO_WORKSPACE,
  SHORT,
  SKEWED,
  X_SKEWED,
  Y_SKEWED,
  F_SKEWED,
  STATE_TOO_MUCH,
  NO_PLAN,
  WRONGS
};

/* Breaks rule `how`; false where this case has nothing to break. */
static bool break_rule(const check_session *c, hk_args *a, int64_t how) {
  const check_case *t = c->t;
  const bool late = t->with & WITH_LATE, writes = !(t->with & WITH_STORE);
  const hk_problem *p = &t->p;
  switch (how) {
  case NO_ARGS: return true;
  case NO_SIZE: a->size--; return true;
  case NO_X: a->x = NULL; return true;
  case NO_Y: a->y = NULL; return writes;
  case NO_C: a->c = NULL; return t->e.residual != 0;
  case NO_F: a->f = NULL; return late;
  case NO_BIAS: a->bias = NULL; return late && t->e.bias;
  case NO_WORKSPACE: a->workspace = NULL; return a->workspace_bytes > 0;
  case SHORT: a->workspace_bytes--; return a->workspace != NULL;
  case SKEWED: a->workspace = (char *)a->workspace + 1; return a->workspace_bytes > 0;
  case X_SKEWED: a->x = (const char *)a->x + 1; return hk_type_bytes(p->x_type) > 1;
  case Y_SKEWED: a->y = (char *)a->y + 1; return writes && hk_type_bytes(p->y_type) > 1;
  case F_SKEWED: a->f = (const char *)a->f + 1; return late && hk_type_bytes(p->f_type) > 1;
  case STATE_TOO_MUCH: a->state_out = a->y; return !(t->with & WITH_STATE);
  default: return true;
  }
}

void fuzz_call_bad(fuzz *f, const fuzz_slot *s) {
  const check_session *c = &f->c;
  int64_t how = fuzz_draw(f, WRONGS);
  memory m;
  bool empty = !c->s.outputs || !c->s.gk || !c->s.x.elements; /* then little is asked for */
  bool ready = memory_make(&m, f, s->plan);
  if (ready && (!empty || how == NO_PLAN) && break_rule(c, &m.args, how)) {
    fuzz_note("hk_plan_execute with wrong arguments, kind %d", (int)how);
    hk_status status = hk_plan_execute(how == NO_PLAN ? NULL : s->plan, how == NO_ARGS ? NULL : &m.args);
    if (!status) fuzz_found(f, "execute took wrong arguments, kind %d", (int)how);
    if (!*hk_last_error()) fuzz_found(f, "execute refused without a sentence");
    if (memcmp(m.y, c->before[0], m.bytes)) fuzz_found(f, "execute refused, but y was written");
  }
  memory_free(&m);
}

void fuzz_create_bad(fuzz *f, int of) {
  hk_problem p = f->t[of].p;
  hk_epilogue e = f->t[of].e;
  hk_options o = f->base;
  hk_weights w = fuzz_weights(f);
  hk_plan *plan = (hk_plan *)(uintptr_t)8;
  char text[FUZZ_TEXT];
  int64_t how = fuzz_draw(f, 12), value = fuzz_draw(f, 256);
  switch (how) {
  case 0: p.rank = (int32_t)(value < 128 ? value % 2 * 4 : -value); break;
  case 1: p.x_type = (hk_type)(value + 8); break;
  case 2: p.size += (size_t)value + 1; break;
  case 3: o.threads = (int32_t)(-1 - value); break;
  case 4: o.isa = (hk_isa)(value + 6); break;
  case 5: o.rigor = (hk_rigor)(value + 3); break;
  case 6: o.math = 8u << value % 28; break;
  case 7: e.act = (hk_act)(value + 14); break;
  case 8: w.size--; break;
  case 9: p.window[value % p.rank] = -(value / 4); break;
  case 10: p.stride[value % p.rank] = p.dilation[value % p.rank] = -(value / 4); break;
  default: /* weights that are not aligned */
    if (fuzz_without("weights") || !w.f || !f->c.s.f.elements || hk_type_bytes(p.f_type) == 1) return;
    w.f = (const char *)w.f + 1;
  }
  if (fuzz_chance(f, 4)) {
    fuzz_decision(f, of, &f->base, text);
    o.decision = text;
  }
  o.stateful = (f->t[of].with & WITH_STATE) != 0;
  fuzz_note("hk_plan_create with wrong arguments, kind %d, value %d", (int)how, (int)value);
  hk_status status = hk_plan_create(&plan, &p, &e, &o, &w);
  if (!status) fuzz_found(f, "create took wrong arguments, kind %d, value %d", (int)how, (int)value);
  if (plan || !*hk_last_error()) fuzz_found(f, "create refused, but gave a plan or no sentence");
}

/* ---- two threads */
typedef struct twin {
  const hk_plan *plan;
  memory m;
  hk_status status;
} twin;

static void *twin_run(void *context) {
  twin *t = context;
  t->status = hk_plan_execute(t->plan, &t->m.args);
  return NULL;
}

void fuzz_call_twice(fuzz *f, const fuzz_slot *s) {
  if (f->c.t->with & WITH_STORE) return; /* the store of the checker counts calls without a lock */
  twin t[2] = {{.plan = s->plan}, {.plan = s->plan}};
  pthread_t other;
  fuzz_note("hk_plan_execute from two threads");
  bool ready = memory_make(&t[0].m, f, s->plan);
  if (memory_make(&t[1].m, f, s->plan) && ready) {
    bool started = !pthread_create(&other, NULL, twin_run, &t[1]);
    twin_run(&t[0]);
    if (started) pthread_join(other, NULL);
    if (started && (t[0].status || t[1].status)) fuzz_found(f, "execute from two threads failed");
    if (started && memcmp(t[0].m.y, t[1].m.y, t[0].m.bytes)) fuzz_found(f, "two threads got different bits");
  }
  memory_free(&t[0].m);
  memory_free(&t[1].m);
}
