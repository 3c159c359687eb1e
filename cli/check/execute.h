/* A case at work: one kind of data in guarded memory, the reference's result, and one plan at a time. */
#ifndef CLI_CHECK_EXECUTE_H
#define CLI_CHECK_EXECUTE_H
#include "check/check.h"

enum { CHECK_WHY = 400, CHECK_NAMES = 256 };
typedef struct check_session {
  const check_case *t;
  const hk_options *options;
  check_report *report;
  check_shape s;
  check_data d;
  check_sums u;
  check_sink sink;
  int64_t *at;                                    /* where each compared output lies in a result */
  double *value, *bound, *norm_bound, *ref_bound; /* one per compared output: see check/compare.c */
  double *spread_bound;                           /* of plans that transform: by the largest |x| */
  char *before[2];      /* y before a call: two poisons, so that what is not written differs */
  char *result, *again; /* y (or what the store got) after it */
  char *agreed;         /* all of the first exact result of a sampled case; NULL before */
  size_t result_bytes;
  double *reference; /* decoded, once it ran */
  bool has_reference;
  char *in[V_COUNT][PLACES];
} check_session;

/* ---- check/execute.c */
bool check_session_open(check_session *c, check_kind kind);
void check_session_close(check_session *c);
/* A plan of the case's problem, epilogue, options and weights. decision: "" leaves the choice to the planner. */
hk_status check_session_plan(const check_session *c, hk_plan **plan, const char *decision, int threads, bool own_loop);
/* One call; everything around y and the workspace must stay as it was. where NULL: the CPU. */
bool check_session_execute(check_session *c, const hk_options *where, const hk_plan *plan, check_place place,
                           char *result, char why[CHECK_WHY]);
/* Executes a plan and compares its result. */
bool check_session_try(check_session *c, const hk_plan *plan, char why[CHECK_WHY]);
/* Pointers of a call whose y and state are the caller's own; no workspace yet. */
hk_args check_session_args(const check_session *c, check_place place);
int check_session_threads(const check_session *c);

/* ---- check/compare.c */
typedef struct comparison {
  bool exact, with_formula;
  bool transforms; /* the plan's error is not that of plain sums: Inf in x reaches outputs that it should not */
  double factor;
} comparison;
bool check_expected_make(check_session *c);
comparison check_comparison(const check_session *c, const hk_plan *plan);
bool check_result_agrees(check_session *c, const comparison *m, const char *result, char why[CHECK_WHY]);
double check_result_at(const check_session *c, const char *result, int64_t j); /* of the j-th compared output */

/* ---- check/decision.c: what one decision promises */
/* Runs "ref" and compares it with the formula. */
check_verdict check_session_reference(check_session *c, char why[CHECK_WHY]);
bool check_session_decision(check_session *c, const char *decision, char why[CHECK_WHY]);
/* What the options promise: a workspace limit, no slow path, an ISA cap. */
bool check_limits_kept(const check_session *c, const hk_plan *plan, char why[CHECK_WHY]);
/* Whether a refusal is one that the options and words of the case explain. */
bool check_refusal_fits(const check_session *c, hk_status status, const char *decision);

/* ---- check/misuse.c */
bool check_misuse_refused(check_session *c, const hk_plan *plan, char why[CHECK_WHY]);

/* ---- check/names.c: the decisions of a case */
typedef struct check_names {
  int count;
  char *at[CHECK_NAMES];
} check_names;
void check_names_add(check_names *n, const char *decision);
void check_names_free(check_names *n);
hk_status check_names_gather(check_names *n, const check_case *t, const hk_options *options);
void check_names_thin(check_names *n, int most, uint64_t seed); /* keeps the first and others by chance */

/* ---- call sequences; each tells its failures to the report and returns whether there were none */
bool check_like_run(const check_case *t, const hk_options *options, const check_names *n, check_report *report);
bool check_wisdom_run(const check_case *t, const hk_options *options, const check_names *n, check_report *report);
void check_hostile_names(check_names *n, const check_case *t); /* replaces decisions by ones with hostile knobs */
/* check/alive.c: keeps a plan that gave `result`, as its owner from then on; false: the caller still owns it. */
bool check_alive_keep(const check_session *c, hk_plan *plan, const char *result, const char *line);
/* Runs kept plans again, from several threads on the CPU. */
bool check_alive_run(const hk_options *options, check_report *report, uint64_t seed);

void check_tell(check_report *report, const check_case *t, const hk_options *options, const char *decision,
                const char *kind, const char *why);
void check_before(check_report *report, const check_case *t, const hk_options *options, const char *decision);
#endif
