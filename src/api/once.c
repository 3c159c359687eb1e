/* A convolution in one call: plan, workspace, execution, and all of it freed. */
#include "plan/plan.h"

hk_status hk_conv(const hk_conv_desc *desc, const void *x, const void *f, const void *bias, void *y) {
  hk_problem p;
  hk_plan *plan;
  hk_status s = hk_problem_conv(&p, desc);
  if (s) return s;
  const hk_epilogue e = {.size = sizeof e, .bias = bias != NULL};
  const hk_weights w = {.size = sizeof w, .f = f, .bias = bias};
  if ((s = hk_plan_create(&plan, &p, &e, NULL, &w))) return s;
  const size_t bytes = hk_plan_workspace(plan);
  void *workspace = bytes ? hk_alloc(bytes) : NULL;
  const hk_args a = {
      .size = sizeof a, .x = x, .f = f, .y = y, .bias = bias, .workspace = workspace, .workspace_bytes = bytes};
  if (bytes && !workspace) s = hk_fail(HK_NO_MEMORY, "no memory for a workspace of %zu bytes", bytes);
  else s = hk_plan_execute(plan, &a);
  hk_free(workspace);
  hk_plan_destroy(plan);
  return s;
}
