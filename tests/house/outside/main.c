/* A program outside the tree: y = x * (1, 2, 3), causal, through whatever hankel it was linked to. */
#include <hankel.h>
#include <stdio.h>

int main(void) {
  hk_conv_desc desc = {.size = sizeof desc, .rank = 1, .n = 1, .c = 1, .k = 1, .in = {4}, .window = {3},
                       .padding = HK_PAD_CAUSAL};
  hk_problem problem = {.size = sizeof problem};
  hk_plan *plan = NULL;
  float x[4] = {1, 10, 100, 1000}, f[3] = {3, 2, 1}, y[4] = {0};
  hk_weights weights = {.size = sizeof weights, .f = f};
  hk_options options = {.size = sizeof options, .limit_workspace = 1};
  if (hk_problem_conv(&problem, &desc) || hk_plan_create(&plan, &problem, NULL, &options, &weights)) {
    fprintf(stderr, "%s\n", hk_last_error());
    return 1;
  }
  hk_args args = {.size = sizeof args, .x = x, .y = y};
  hk_status status = hk_plan_execute(plan, &args);
  hk_plan_destroy(plan);
  if (status) fprintf(stderr, "%s\n", hk_last_error());
  printf("%s %g %g %g %g\n", hk_version(), y[0], y[1], y[2], y[3]);
  return status || y[0] != 1 || y[1] != 12 || y[2] != 123 || y[3] != 1230;
}
