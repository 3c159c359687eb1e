/* Plans from bytes: the first bytes are what the generator of `hankel check --random` draws a problem, an epilogue and
 * options from; the rest is a sequence of calls: create (with a forced decision, with wisdom, with limits, with wrong
 * arguments), create_like in both directions, execute (at a guard page, from two threads, with wrong arguments),
 * destroy. The formula of the checker says what every execution must give. A refusal is fine where a text or an option
 * may be refused; a crash, a wrong value, a write outside y, a leak or a call without end is a finding. Runs under
 * tests/fuzz/driver.c and libFuzzer; HK_FUZZ_VERBOSE=1 shows the calls of an input. */
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "plan_fuzz.h"

/* Larger cases are left out: an input should take milliseconds. */
enum { MOST_ELEMENTS = 40000, MOST_PRODUCTS = 400000, FORMULA_PRODUCTS = 50000, CALLS = 12, OPENINGS = 5 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
/* A decision may ask for more memory than there is: that is a refusal, not the end. */
const char *__asan_default_options(void);
const char *__asan_default_options(void) { return "allocator_may_return_null=1"; }

/* ---- bytes, notes, findings */
static char notes[8192];
static size_t notes_length;

int64_t fuzz_draw(fuzz *f, int64_t n) {
  uint64_t v = 0;
  for (int64_t reach = 1; reach < n && f->left; reach <<= 8, f->left--) v = v << 8 | *f->at++;
  return n > 1 ? (int64_t)(v % (uint64_t)n) : 0;
}

bool fuzz_chance(fuzz *f, int one_in) { return f->left && fuzz_draw(f, one_in) == 0; }

void fuzz_note(const char *format, ...) {
  static int verbose = -1;
  size_t start = notes_length, room = sizeof notes - notes_length;
  va_list ap;
  va_start(ap, format);
  int n = vsnprintf(notes + start, room, format, ap);
  va_end(ap);
  if (n > 0 && (size_t)n + 1 < room) {
    notes_length += (size_t)n;
    notes[notes_length++] = '\n';
  }
  notes[notes_length] = 0;
  if (verbose < 0) verbose = getenv("HK_FUZZ_VERBOSE") != NULL;
  if (verbose) fputs(notes + start, stderr);
}

void fuzz_found(const fuzz *f, const char *format, ...) {
  va_list ap;
  va_start(ap, format);
  fputs("plan_fuzz: ", stderr);
  vfprintf(stderr, format, ap);
  va_end(ap);
  char *line = check_line(&f->t[f->open < 0 ? 0 : f->open], &f->base, NULL);
  fprintf(stderr, "\n%s\n%s", line ? line : "", notes);
  abort();
}

/* HK_FUZZ_WITHOUT names what to leave out (invariant, flush, weights, decision, knobs, wisdom, like), so that what is
 * known to fail does not hide the rest. */
bool fuzz_without(const char *what) {
  const char *list = getenv("HK_FUZZ_WITHOUT");
  return list && strstr(list, what);
}

/* ---- cases */
static bool is_small(const check_case *t) {
  check_shape s;
  check_shape_make(&s, t);
  return (double)s.x.elements + (double)s.f.elements + (double)s.y.elements + (double)s.residual.elements <
             MOST_ELEMENTS &&
         (double)s.sums * (double)s.gk < MOST_PRODUCTS;
}

static bool case_make(fuzz *f) {
  uint64_t seed = (uint64_t)fuzz_draw(f, 1 << 16);
  bool depthwise = fuzz_draw(f, 8) == 7;
  size_t part = (size_t)fuzz_draw(f, 256);
  if (part > f->left) part = f->left;
  f->drawn = f->base = (hk_options){.size = sizeof f->base};
  cli_random_from(f->at, part);
  check_random(&f->t[0], &f->drawn, depthwise ? DRAW_DEPTHWISE : DRAW_ANY, seed);
  cli_random_from(NULL, 0);
  f->at += part;
  f->left -= part;
  f->t[0].with &= WITH_NONFINITE | (WITH_NONFINITE - 1); /* sequences are drawn here */
  f->drawn.rigor = HK_ESTIMATE;
  f->base.math = f->drawn.math;
  f->kind = f->t[0].with & WITH_NONFINITE ? KIND_FLOATS : (check_kind)(seed & 1);
  f->has[0] = is_small(&f->t[0]);
  char *line = f->has[0] ? check_line(&f->t[0], &f->base, NULL) : NULL;
  if (line) fuzz_note("%s", line);
  free(line);
  return f->has[0];
}

/* Opens case `of`: its data, the formula and the reference. False: no more of it. */
static bool session_open(fuzz *f, int of) {
  char why[CHECK_WHY] = "";
  if (f->open == of) return true;
  if (f->opened++ >= OPENINGS) return false;
  if (f->open >= 0) check_session_close(&f->c);
  f->open = of;
  f->c = (check_session){.t = &f->t[of], .options = &f->base, .report = &f->report};
  check_shape_make(&f->c.s, &f->t[of]);
  if (!check_session_open(&f->c, f->kind)) abort();
  if (f->c.u.sample) return true;
  check_verdict verdict = check_session_reference(&f->c, why);
  if (verdict == CHECK_FAILED) fuzz_found(f, "the reference: %s", why);
  return verdict == CHECK_PASSED;
}

/* What hk_plan_create_like may change: batch, input size, padding, strides of x and y. */
static void like_make(fuzz *f, const check_case *from, check_case *to) {
  *to = *from;
  hk_problem *p = &to->p, first = *p, last = *p;
  bool stateful = from->with & WITH_STATE;
  int64_t groups = p->batch_groups, how = fuzz_draw(f, 7), d = fuzz_draw(f, p->rank);
  if (how < 2) p->n = groups * fuzz_draw(f, 2 * p->n / groups + 2);
  if (how == 1 || how == 2) p->in[d] = fuzz_draw(f, 2 * p->in[d] + 2);
  if (how == 3 && !stateful) p->pad_lo[d] += fuzz_draw(f, 5) - 1;
  if (how == 3 && !stateful) p->pad_hi[d] += fuzz_draw(f, 5) - 1;
  if (how == 4) { /* a part of the same tensors */
    p->n = groups * fuzz_draw(f, p->n / groups + 1);
    p->in[d] = fuzz_draw(f, p->in[d] + 1);
    return;
  }
  if (how == 5) {
    uint64_t seed = (uint64_t)fuzz_draw(f, 1 << 16);
    check_strides_redraw(to, &seed);
    return;
  }
  first = last = *p;
  hk_problem_dense(&first, HK_CHANNELS_FIRST);
  hk_problem_dense(&last, HK_CHANNELS_LAST);
  if (to->e.gate) {
    hk_problem_dense_y(&first, HK_CHANNELS_FIRST, p->k / 2);
    hk_problem_dense_y(&last, HK_CHANNELS_LAST, p->k / 2);
  }
  p->x = fuzz_draw(f, 2) ? first.x : last.x;
  p->y = fuzz_draw(f, 2) ? first.y : last.y;
}

/* ---- calls */
static void backwards(void *pool, int64_t count, void (*body)(void *context, int64_t i), void *context) {
  (void)pool;
  for (int64_t i = count - 1; i >= 0; i--) body(context, i);
}

static void options_draw(fuzz *f, hk_options *o, int of) {
  static const int threads[] = {1, 1, 1, 2, 3, 4, 7, 2};
  static const hk_isa isas[] = {HK_ISA_BEST, HK_ISA_BEST, HK_ISA_BEST,   HK_ISA_SCALAR,
                                HK_ISA_AVX2, HK_ISA_AVX2, HK_ISA_AVX512, HK_ISA_NEON};
  bool drawn = fuzz_chance(f, 4);
  *o = drawn ? f->drawn : f->base;
  if (fuzz_without("invariant")) o->batch_invariant = 0;
  o->time_limit_s = 1e-4;
  o->stateful = (f->t[of].with & WITH_STATE) != 0;
  if (drawn) return;
  o->threads = threads[fuzz_draw(f, 8)];
  if (fuzz_chance(f, 8)) o->parallel_for = backwards;
  o->isa = isas[fuzz_draw(f, 8)];
  o->batch_invariant = fuzz_chance(f, 4) && !fuzz_without("invariant");
  o->forbid_fallback = fuzz_chance(f, 12);
  o->wisdom_only = fuzz_chance(f, 24);
  if (fuzz_chance(f, 4)) {
    o->limit_workspace = 1;
    o->workspace_limit_bytes = (size_t)fuzz_draw(f, 256) << fuzz_draw(f, 12);
  }
  if (fuzz_chance(f, 3)) o->math ^= HK_MATH_FAST_ALGORITHMS;
  if (fuzz_chance(f, 8) && !fuzz_without("flush")) o->denormals = HK_DENORMALS_FLUSH;
  if (fuzz_chance(f, 32)) o->rigor = HK_MEASURE;
}

/* A plan that obeys its options; only what a text or an option forbids may be refused. */
static void created_check(fuzz *f, const hk_plan *plan, hk_status status, const hk_options *o) {
  if (status) {
    if (plan || !*hk_last_error()) fuzz_found(f, "create refused, but gave a plan or no sentence");
    bool allowed = o->decision || (o->wisdom_only && status == HK_NO_WISDOM) ||
                   (o->forbid_fallback && status == HK_FALLBACK) || f->t[f->open].with & WITH_LATE;
    if (!allowed) fuzz_found(f, "create: %s (%s)", hk_last_error(), hk_status_name(status));
    return;
  }
  char text[FUZZ_TEXT];
  if (hk_plan_decision(plan, text, sizeof text, NULL)) fuzz_found(f, "the decision does not print");
  fuzz_note("  -> %s, workspace %zu", text, hk_plan_workspace(plan));
  if (o->limit_workspace && hk_plan_workspace(plan) > o->workspace_limit_bytes)
    fuzz_found(f, "the plan needs %zu bytes, the limit is %zu", hk_plan_workspace(plan), o->workspace_limit_bytes);
  bool beyond = (o->isa == HK_ISA_SCALAR && strstr(text, "_avx")) || (o->isa == HK_ISA_AVX2 && strstr(text, "_avx512"));
  if (beyond) fuzz_found(f, "the plan's kernel is above the ISA cap %s", hk_isa_name(o->isa));
}

static void execute(fuzz *f, fuzz_slot *s) {
  char why[CHECK_WHY] = "";
  check_place place = (check_place)fuzz_draw(f, PLACES);
  if (!s->plan || hk_plan_workspace(s->plan) > FUZZ_WORKSPACE || !session_open(f, s->of)) return;
  if (f->c.u.sample && place == PLACE_MIDDLE) place = PLACE_HIGH;
  fuzz_note("hk_plan_execute, case %d, place %d", s->of, (int)place);
  const comparison m = check_comparison(&f->c, s->plan);
  if (!check_session_execute(&f->c, NULL, s->plan, place, f->c.result, why) ||
      !check_result_agrees(&f->c, &m, f->c.result, why))
    fuzz_found(f, "%s", why);
}

static void slot_put(fuzz_slot *s, hk_plan *plan, int of) {
  hk_plan_destroy(s->plan);
  *s = (fuzz_slot){plan, of};
}

static void create(fuzz *f, bool with_wisdom) {
  fuzz_slot *s = &f->slot[fuzz_draw(f, FUZZ_SLOTS)];
  int of = f->open;
  hk_options o;
  hk_plan *plan = NULL;
  char text[FUZZ_TEXT];
  options_draw(f, &o, of);
  if (with_wisdom && !fuzz_without("wisdom")) fuzz_wisdom(f, of, &o);
  else if (fuzz_draw(f, 8) > 2 && !fuzz_without("decision")) {
    fuzz_decision(f, of, &o, text);
    o.decision = text;
  }
  fuzz_note("hk_plan_create threads=%d%s isa=%d math=%u invariant=%d limit=%d:%zu rigor=%d flush=%d decision='%s'",
            o.threads, o.parallel_for ? " own loop" : "", (int)o.isa, o.math, o.batch_invariant, o.limit_workspace,
            o.workspace_limit_bytes, (int)o.rigor, (int)o.denormals, o.decision ? o.decision : "");
  const hk_weights w = fuzz_weights(f);
  hk_status status = hk_plan_create(&plan, &f->t[of].p, &f->t[of].e, &o, &w);
  created_check(f, plan, status, &o);
  if (status) return;
  slot_put(s, plan, of);
  execute(f, s);
}

static void create_like(fuzz *f) {
  fuzz_slot *from = &f->slot[fuzz_draw(f, FUZZ_SLOTS)], *to = &f->slot[fuzz_draw(f, FUZZ_SLOTS)];
  hk_plan *plan = NULL;
  if (!from->plan || fuzz_without("like")) return;
  int of = !from->of;
  if (!f->has[of]) {
    check_case like;
    like_make(f, &f->t[!of], &like);
    hk_extent x, weights, y;
    bool legal = !hk_problem_check(&like.p) || (like.e.gate && !hk_problem_extents(&like.p, &x, &weights, &y));
    if (!legal || !is_small(&like)) return;
    f->t[of] = like;
    f->has[of] = true;
  }
  char *line = check_line(&f->t[of], &f->base, NULL);
  fuzz_note("hk_plan_create_like %s", line ? line : "");
  free(line);
  hk_status status = hk_plan_create_like(&plan, from->plan, &f->t[of].p);
  if (status && (plan || !*hk_last_error())) fuzz_found(f, "create_like refused, but gave a plan or no sentence");
  if (status) return;
  slot_put(to, plan, of); /* which may destroy the plan it is like */
  execute(f, to);
}

static void call(fuzz *f) {
  int64_t how = fuzz_draw(f, 16);
  fuzz_slot *s = &f->slot[how < 7 ? 0 : fuzz_draw(f, FUZZ_SLOTS)];
  bool usable = s->plan && s->of == f->open && hk_plan_workspace(s->plan) <= FUZZ_WORKSPACE;
  if (how < 5) create(f, false);
  else if (how < 7) create(f, true);
  else if (how < 9) create_like(f);
  else if (how < 11) execute(f, s);
  else if (how == 11 && usable) fuzz_call_bad(f, s);
  else if (how == 12 && usable) fuzz_call_twice(f, s);
  else if (how == 13) fuzz_create_bad(f, f->open);
  else if (how == 14) hk_wisdom_forget();
  else slot_put(s, NULL, 0);
}

static void silent(void *context, const char *line) { (void)context, (void)line; }

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static fuzz f;
  f = (fuzz){.at = data, .left = size, .open = -1, .report = {.products = FORMULA_PRODUCTS, .failure = silent}};
  notes_length = 0;
  hk_wisdom_forget();
  if (!case_make(&f)) return 0;
  if (session_open(&f, 0)) {
    create(&f, false);
    for (int i = 0; i < CALLS && f.left; i++) call(&f);
  }
  for (int i = 0; i < FUZZ_SLOTS; i++) hk_plan_destroy(f.slot[i].plan);
  if (f.open >= 0) check_session_close(&f.c);
  return 0;
}
