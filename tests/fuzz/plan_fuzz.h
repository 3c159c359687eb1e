/* What one input of the plan fuzzer is made into: a case of `hankel check` in guarded memory, a second case that
 * differs from it as hk_plan_create_like allows, and a few plans of either that are alive at once. */
#ifndef PLAN_FUZZ_H
#define PLAN_FUZZ_H
#include "cli/check/execute.h"

enum { FUZZ_SLOTS = 3, FUZZ_TEXT = 600, FUZZ_WORKSPACE = 16 << 20 };

typedef struct fuzz_slot {
  hk_plan *plan;
  int of; /* which case */
} fuzz_slot;

typedef struct fuzz {
  const uint8_t *at; /* bytes not yet used */
  size_t left;
  check_case t[2];
  bool has[2];
  hk_options drawn, base; /* of the generator; and plain ones */
  check_kind kind;
  check_report report;
  check_session c; /* of t[open]; -1: closed */
  int open, opened;
  fuzz_slot slot[FUZZ_SLOTS];
} fuzz;

/* ---- plan_fuzz.c */
int64_t fuzz_draw(fuzz *f, int64_t n); /* 0 once the bytes are used up */
bool fuzz_chance(fuzz *f, int one_in);
/* Notes what is done next; HK_FUZZ_VERBOSE shows it. */
void fuzz_note(const char *format, ...) __attribute__((format(printf, 1, 2)));
bool fuzz_without(const char *what);
/* A finding: prints the case and the notes, and aborts. */
void fuzz_found(const fuzz *f, const char *format, ...) __attribute__((format(printf, 2, 3), noreturn));

/* ---- plan_text.c */
/* Writes a decision for case `of` into text: one of the planner's, one of those with other numbers, names of the tables
 * put together, or bytes. */
void fuzz_decision(fuzz *f, int of, const hk_options *o, char text[FUZZ_TEXT]);
/* Imports a wisdom text that decides a plan of case `of` with options o, or one that nothing should take. */
void fuzz_wisdom(fuzz *f, int of, const hk_options *o);

/* ---- plan_calls.c */
hk_weights fuzz_weights(const fuzz *f); /* of the open case */
/* Executes with arguments that break one rule: refused, and y is not written. */
void fuzz_call_bad(fuzz *f, const fuzz_slot *s);
/* Creates a plan with arguments that break one rule. */
void fuzz_create_bad(fuzz *f, int of);
/* Executes from two threads at once, which give the same bits. */
void fuzz_call_twice(fuzz *f, const fuzz_slot *s);
#endif
