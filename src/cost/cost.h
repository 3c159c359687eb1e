/* The machine as the cost model sees it: cpu.c finds the parameters, machines/ holds them. */
#ifndef HK_COST_H
#define HK_COST_H
#include "core/core.h"
#include "cost/machine.h"

/* What an algorithm counts of one call by one thread. */
typedef struct hk_work {
  double products; /* seconds of the products at the peak: see hk_cost_products */
  double cycles;   /* of all that surrounds them */
  double moved;    /* seconds to move the operands: see hk_cost_move */
  double rows;     /* handed to the plan's epilogue, of all threads */
  double values;   /* in those rows */
  double seconds;  /* of passes that are predicted on their own */
} hk_work;
/* Seconds of a call whose work is cut into jobs for threads. */
double hk_cost_seconds(const hk_cost_family *family, const hk_work *work, int64_t jobs, int32_t threads);

/* How many products of x and f of these types the ISA and features of this machine do in the time of one of f32. */
double hk_cost_rate(const hk_geom *g, hk_isa isa);
/* f32 flop/s of one thread with an ISA, and flop per cycle. */
double hk_cost_peak(hk_isa isa);
double hk_cost_flops(hk_isa isa);
double hk_cost_clock(void); /* cycles per second */
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
/* floor.c: the least seconds of a problem's own products (those with padding and with zeros between elements left out)
 * at the peak, and of its bytes at the rate of the cache above the one that holds them. */
typedef struct hk_cost_floors {
  double flops_s, bytes_s;
} hk_cost_floors;
hk_cost_floors hk_cost_floors_of(const hk_geom *g, hk_isa isa, int32_t threads);
/* A prediction that is not below the floors; in the same order as those of other candidates. direct: of an algorithm
 * that does one product per tap. */
double hk_cost_above(hk_cost_floors floors, bool direct, double seconds);
#endif
