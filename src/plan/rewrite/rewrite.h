/* Rewrites: rules from a task to an inner task, with what runs before and after it. They know nothing of algorithms,
 * and algorithms nothing of them; a decision names a path of them, and what they have in common (cost, workspace, plans
 * inside plans) is done here for every path. */
#ifndef HK_REWRITE_H
#define HK_REWRITE_H
#include "plan/plan.h"

/* Paths name rewrites in rising order, at most one of each. */
enum { HK_ORDER_STATE, HK_ORDER_GATE, HK_ORDER_CONVERT, HK_ORDER_TRANSPOSE, HK_ORDER_PHASE };

struct hk_rewrite {
  const char *name;    /* as printed */
  const char *summary; /* one line for docs/algorithms.md */
  hk_device device;
  int order;
  bool last_resort; /* not followed where an earlier rewrite of its order takes the task; a given path may name it */
  /* Says whether it has anything to do for the task and can; writes why not. */
  bool (*takes)(const hk_task *task, char *why);
  /* Fills in the part-th inner task from a copy of the task, and returns how many parts there are, at most HK_PARTS.
   * They run one after another and share one decision, workspace and (without filter_at) packed weights. A rewrite of
   * several parts is the last of its path. */
  int (*inner)(const hk_task *task, int part, hk_task *to);
  /* Where the part's filter lies in the task's, in elements from f[0]: its parts have filters of their own. NULL: they
   * share one. Sets *first to its first tap, which no other part has. */
  int64_t (*filter_at)(const hk_task *task, int part, int64_t *first);
  /* Workspace of its own pass, a multiple of HK_ALIGN, behind that of the inner plans. NULL: none. */
  size_t (*bytes)(const hk_task *task);
  /* How many calls of the inner plan run at once, each with the workspace of its own. NULL: one. */
  int64_t (*copies)(const hk_task *task);
  /* Predicted time with its own pass, from that of the inner plans. */
  double (*seconds)(const hk_task *task, double inner);
  /* The inner plans' f[0] from the caller's, plan->raw_f; *made is freed when they are built. NULL: the same. */
  hk_status (*filter)(const hk_plan *plan, const void **f, void **made);
  hk_status (*build)(hk_plan *plan); /* plan->pass, once the inner plans are there; NULL: nothing */
  hk_status (*run)(const hk_plan *plan, const hk_call *call);
  void (*destroy)(hk_plan *plan); /* what build acquired but plan->pass itself; NULL: nothing */
};

/* A path and the task at each of its steps. */
typedef struct hk_path {
  const hk_task *task; /* as the caller sees it */
  int depth;
  const hk_rewrite *step[HK_DEPTH];
  int parts[HK_DEPTH];     /* that step[i] leaves */
  hk_task inner[HK_DEPTH]; /* the first of them */
} hk_path;

static inline const hk_task *hk_path_task(const hk_path *p, int depth) {
  return depth ? &p->inner[depth - 1] : p->task;
}
/* Adds a rewrite to the path, or writes why it cannot follow. */
bool hk_path_push(hk_path *p, const hk_rewrite *r, char *why);
/* Asks d->algo (with d->kernel) for the task at the end of the path: for an offer, or whether the knobs that stand in
 * *d fit. Sets path, workspace_bytes and predicted_s of *d for the whole path. */
bool hk_path_ask(const hk_path *p, hk_decision *d, bool offer, char *why);
/* Fills in the knobs that d->algo would choose, though they may not fit all parts: for knobs that are then replaced. */
bool hk_path_suggest(const hk_path *p, hk_decision *d, char *why);
/* The time of the whole path when its algorithm takes that long. */
double hk_path_seconds(const hk_path *p, double inner);
/* path.c: reads the rewrites and the algorithm of a decision's text; *save goes on behind them. */
hk_status hk_path_parse(const hk_task *task, const char *text, char **save, hk_decision *d);
/* Makes the path of a decision; writes which rewrite refuses, and why. */
bool hk_path_make(hk_path *p, const hk_task *task, const hk_decision *d, char *why);
/* The index-th other setting of a decision's knobs worth measuring; false when there are no more. */
bool hk_path_vary(const hk_task *task, const hk_decision *base, int index, hk_decision *d);

/* Of a plan whose decision has a path: the plans of the rest of it, then the first rewrite's own pass. The plan then
 * holds the inner plan's packed weights, which plans made alike share. */
hk_status hk_rewrite_build(hk_plan *plan);
void hk_rewrite_destroy(hk_plan *plan);
/* plan->pass: that many zeroed bytes. */
hk_status hk_rewrite_alloc_pass(hk_plan *plan, size_t bytes);
/* Where the rewrite's own workspace starts. */
char *hk_rewrite_workspace(const hk_plan *plan, const hk_call *call);
/* Runs an inner plan; call is the rewrite's with x, y, c and f as they are for it. Weights known at creation are filled
 * in here. */
hk_status hk_rewrite_run_inner(const hk_plan *plan, int part, const hk_call *call);

/* decision.c: knob ranges and the algorithm's check for the task that the algorithm sees. */
bool hk_decision_check_algo(const hk_task *task, hk_decision *d, char *why);
#endif
