/* A problem on the device: tensors between guard bytes, every decision of it executed and compared with the CPU's
 * reference. */
#ifndef HK_TESTS_GPU_DEVICE_H
#define HK_TESTS_GPU_DEVICE_H
#include <stdbool.h>
#include <stdint.h>

#include "hankel.h"

/* How the tensors are filled: small integers (all sums exact), normal-like fractions, or a zero filter with a residual
 * that codes its position; integers where every third row of x (its last dimension, contiguous) ends in a NaN. */
enum { FILL_INTEGERS = 0, FILL_FRACTIONS = 1, FILL_POSITIONS = 2, FILL_ENDS = 3 };

typedef struct gpu_case {
  const char *problem, *epilogue;
  int fill;
  uint32_t math;
  int late_weights; /* filters, scale and bias given at execute */
} gpu_case;

/* Epilogues that every kernel of the tensor cores has. */
extern const char *const gpu_epilogues[];
extern const int gpu_epilogue_count;

/* Set by tests of other kernels: wgmma by one tile only. */
extern bool gpu_few_tiles;
/* Not NULL: only decisions that begin with it. */
extern const char *gpu_only;
/* Only every such wgmma tile, the seed says from which: for tests of many cases. */
extern int gpu_tile_step;

/* Runs the case by every wgmma tile and every other decision of the device; counts what ran. Failures go to CHECK. */
int gpu_case_run(const gpu_case *c, const hk_problem *problem, uint64_t seed);

/* The decisions that the planner offers: a context and a callback for hk_plan_candidates. skip (may be NULL): decisions
 * that begin with it are left out. once (may be NULL): of those that hold it only the first is kept. */
typedef struct gpu_names {
  const char *skip, *once;
  char text[128][200];
  int count;
} gpu_names;
void gpu_names_collect(void *context, const hk_candidate *c);
#endif
