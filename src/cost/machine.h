/* The parameters of a machine, as machines/<name>.inc holds them. Algorithms count what they do, these say what each
 * count costs; scripts/fit_cost.py fits them to bench/timings. */
#ifndef HK_COST_MACHINE_H
#define HK_COST_MACHINE_H
#include "base/base.h"

/* Of one family of algorithms or one rewrite. */
typedef struct hk_cost_family {
  double product; /* time of the products, in times of the ISA's peak */
  double cycle;   /* of what surrounds them, in times of the cycles counted */
  double wait;    /* share of the time to move all bytes that nothing hides */
  double call;    /* seconds of a call */
} hk_cost_family;

typedef struct hk_cost_machine {
  const char *name;
#define HK_PARAMETER(name, what) double name;
#define HK_FAMILY(name, what) hk_cost_family name;
#include "cost/parameters.inc"
  int64_t l1_bytes, l2_bytes, l3_bytes; /* of caches, for hk_cost_use; the machine itself is asked otherwise */
  bool prefetches;                      /* packed weights: pays where they stream from L3 */
} hk_cost_machine;

const hk_cost_machine *hk_cost_here(void); /* of this machine */
/* For tests: the table of a name, NULL where there is none; from now on this table and its caches predict (NULL: this
 * machine's; not thread-safe). */
const hk_cost_machine *hk_cost_find(const char *name);
void hk_cost_use(const hk_cost_machine *m);
#endif
