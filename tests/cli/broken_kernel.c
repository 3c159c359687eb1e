/* Loaded before the library by test_broken.py: hk_plan_execute with one deliberate fault, named by HANKEL_BREAK, in
 * every plan that is not the reference. `hankel check` must see each of them. */
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#include "hankel.h"

static hk_problem problem;

hk_status hk_plan_create(hk_plan **plan, const hk_problem *p, const hk_epilogue *e, const hk_options *o,
                         const hk_weights *w) {
  hk_status (*real)(hk_plan **, const hk_problem *, const hk_epilogue *, const hk_options *, const hk_weights *);
  *(void **)&real = dlsym(RTLD_NEXT, "hk_plan_create");
  problem = *p;
  return real(plan, p, e, o, w);
}

/* One element, at an address the compiler cannot reason about. */
static volatile float *element(const void *base, int64_t index) { return (volatile float *)base + index; }

hk_status hk_plan_execute(const hk_plan *plan, const hk_args *args) {
  hk_status (*real)(const hk_plan *, const hk_args *);
  *(void **)&real = dlsym(RTLD_NEXT, "hk_plan_execute");
  hk_status status = real(plan, args);
  const char *fault = getenv("HANKEL_BREAK");
  char decision[256] = "";
  hk_plan_decision(plan, decision, sizeof decision, NULL);
  if (status || !fault || !strcmp(decision, "ref")) return status;
  hk_extent x, f, y;
  hk_problem_extents(&problem, &x, &f, &y);
  static int calls;
  calls++;
  volatile float *first = element(args->y, 0);
  if (!strcmp(fault, "value")) *first += 1;
  if (!strcmp(fault, "small")) *first *= 1.001f;
  if (!strcmp(fault, "overrun")) *element(args->y, y.elements) = 1;
  if (!strcmp(fault, "underrun")) *element(args->y, -1) = 1;
  if (!strcmp(fault, "gap")) *element(args->y, problem.k) = 1;
  if (!strcmp(fault, "overread")) (void)*element(args->x, x.elements);
  if (!strcmp(fault, "underread")) (void)*element(args->x, -1);
  if (!strcmp(fault, "twice") && calls % 2 == 0) *first = __builtin_nextafterf(*first, 1e30f);
  return status;
}
