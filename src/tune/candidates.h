/* The candidates of a task: every decision that fits it, and why others do not. */
#ifndef HK_CANDIDATES_H
#define HK_CANDIDATES_H
#include "plan/plan.h"

typedef struct hk_refusal {
  hk_decision d; /* algo is NULL where a rewrite was refused */
  char why[HK_REASON];
} hk_refusal;

/* Sorted by predicted time; refusals in the order they were made. */
typedef struct hk_candidates {
  hk_decision *usable;
  hk_refusal *refused;
  int usable_count, usable_room, refused_count, refused_room;
  bool no_memory;
} hk_candidates;

/* Asks every algorithm, for the task itself and behind every path of rewrites. */
hk_status hk_candidates_find(const hk_task *task, hk_candidates *to);
/* Those that a measured choice looks at: the few best predictions for MEASURE, every candidate and its other knob
 * settings for PATIENT. */
hk_status hk_candidates_shortlist(const hk_task *task, const hk_candidates *from, hk_candidates *to);
void hk_candidates_free(hk_candidates *c);
/* Whether a decision keeps the workspace limit. */
bool hk_candidates_fits(const hk_task *task, const hk_decision *d, char *why);

/* candidates_batch.c: the task as a batch-invariant choice sees it: one image, one thread. */
hk_task hk_candidates_seen(const hk_task *task);
/* For a decision that was made for the task as seen: sets the workspace of the task that will run, whose predicted time
 * stays; false where it does not serve every batch and any number of threads alike. */
bool hk_candidates_settle(const hk_task *task, hk_decision *d, char *why);
#endif
