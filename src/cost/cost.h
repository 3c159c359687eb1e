/* The machine as the cost model sees it: cpu.c holds the parameters. */
#ifndef HK_COST_H
#define HK_COST_H
#include "base/base.h"

/* f32 flop/s of one thread with an ISA. */
double hk_cost_peak(hk_isa isa);
/* Seconds for one thread to move bytes that fit in a working set of that size. */
double hk_cost_move(double bytes, double working_set);
/* Cache of a core, in bytes. */
int64_t hk_cost_l1(void);
int64_t hk_cost_l2(void);
int64_t hk_cost_l3(void); /* that cores share */
/* Whether to prefetch packed weights (pays where they stream from L3). */
bool hk_cost_ahead(void);
/* Seconds for jobs equal pieces over threads, from the seconds of one thread: the last round may be partly idle. */
double hk_cost_spread(double seconds, int64_t jobs, int32_t threads);
#endif
