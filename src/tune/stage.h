/* Where candidates are measured: made-up operands of a task on its device, and the timing of a plan on them. */
#ifndef HK_STAGE_H
#define HK_STAGE_H
#include "plan/plan.h"

enum { HK_STAGE_SETS = 8 };
typedef struct hk_stage {
  hk_device device;
  int sets; /* operands taken in turn: one on the CPU; on CUDA, where it may, more than the L2 holds */
  hk_args args[HK_STAGE_SETS];
  void *block[4 + 3 * HK_STAGE_SETS];
  int blocks;
} hk_stage;

/* workspace: bytes that serve every plan to be timed. Free it even after a failure. */
hk_status hk_stage_make(hk_stage *stage, const hk_task *task, size_t workspace);
void hk_stage_free(hk_stage *stage);
/* Mean seconds of one of `repeats` executions. */
hk_status hk_stage_time(const hk_stage *stage, const hk_plan *plan, int repeats, double *seconds);
#endif
