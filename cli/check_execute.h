/* A case at work: one kind of data in guarded memory, the reference's result, and one decision at a time. */
#ifndef CLI_CHECK_EXECUTE_H
#define CLI_CHECK_EXECUTE_H
#include "check.h"

enum { CHECK_WHY = 320 };
typedef struct check_session {
  const check_case *t;
  const hk_options *options;
  check_report *report;
  check_shape s;
  check_data d;
  check_sums u;
  check_sink sink;
  double *value, *bound, *norm_bound, *ref_bound; /* one an output: see check_case.c */
  char *before;                                   /* y as it is before a call */
  char *result, *again;                           /* y (or what the store got) after it */
  size_t result_bytes;
  double *reference; /* decoded */
  char *in[V_COUNT][PLACES];
} check_session;
bool check_session_open(check_session *c, check_kind kind);
void check_session_close(check_session *c);
/* Runs "ref" and compares it with the formula. */
check_verdict check_session_reference(check_session *c, char why[CHECK_WHY]);
bool check_session_decision(check_session *c, const char *decision, char why[CHECK_WHY]);
#endif
