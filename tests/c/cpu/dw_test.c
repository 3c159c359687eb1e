/* Depthwise and grouped convolutions: random problems, every candidate of the algorithms named below, with its own
 * knobs and with random ones, bit for bit against the reference on small integers. Tensors end (or begin) at a page
 * that must not be touched, unused parts of x are NaN. Arguments: how many problems, the seed. */
#include <stdbool.h>
#include <stdlib.h>

#include "support/check.h"
#include "support/guard.h"

static const char *const algorithms[] = {"point ",       "strip ", "dwp ", "dwc ",
                                         "phase / dwc ", "dwm ",   "dwd ", "grouped "};

static int64_t pick(uint64_t *seed, int64_t lo, int64_t hi) { return hk_test_between(seed, lo, hi); }

/* A window of one tap, few channels per group. */
static bool make_point(uint64_t *seed, hk_problem *p) {
  hk_conv_desc d = {.size = sizeof d, .rank = (int32_t)pick(seed, 1, 3), .layout = (hk_layout)pick(seed, 0, 1)};
  const int64_t inputs = pick(seed, 1, pick(seed, 0, 1) ? 4 : 17),
                outputs = pick(seed, 0, 1) ? inputs : pick(seed, 1, 18);
  d.groups = pick(seed, 1, 13);
  d.n = pick(seed, 1, 2);
  d.c = d.groups * inputs;
  d.k = d.groups * outputs;
  for (int i = 0; i < d.rank; i++) {
    d.in[i] = pick(seed, 1, d.rank == 1 ? 70 : 9);
    d.window[i] = d.stride[i] = d.dilation[i] = 1;
  }
  return hk_problem_conv(p, &d) == HK_OK && hk_problem_dense(p, d.layout) == HK_OK && hk_problem_check(p) == HK_OK;
}

/* Depthwise along a row, windows that kernels know whole, any count of channels. */
static bool make_row(uint64_t *seed, hk_problem *p) {
  hk_conv_desc d = {.size = sizeof d, .rank = 1, .layout = (hk_layout)pick(seed, 0, 1)};
  d.groups = d.c = pick(seed, 1, d.layout == HK_CHANNELS_LAST ? 90 : 6);
  d.k = pick(seed, 0, 4) ? d.c : 2 * d.c;
  d.n = pick(seed, 1, 2);
  d.window[0] = pick(seed, 1, pick(seed, 0, 1) ? 8 : 26);
  d.dilation[0] = pick(seed, 0, 2) ? 1 : pick(seed, 2, 30);
  if (d.layout == HK_CHANNELS_LAST && !pick(seed, 0, 9)) { /* pixels, or those of a phase, a multiple of 2 KiB apart */
    d.dilation[0] = pick(seed, 0, 1) ? 8 * pick(seed, 1, 4) : 1;
    d.groups = d.c = d.k = d.dilation[0] > 1 ? 64 : 512 * pick(seed, 1, 2);
  }
  d.in[0] = (d.window[0] - 1) * d.dilation[0] + 1 + pick(seed, 0, d.c > 90 ? 20 : 100);
  if (!pick(seed, 0, 2)) d.pad_lo[0] = pick(seed, 0, 4), d.pad_hi[0] = pick(seed, 0, 4);
  return hk_problem_conv(p, &d) == HK_OK && hk_problem_dense(p, d.layout) == HK_OK && hk_problem_check(p) == HK_OK;
}

/* Depthwise 3 x 3, 5 x 5 and 7 x 7, channels-last: every remainder of rows and columns by tiles, padding on any side,
 * dilation, whole and cut vectors. */
static bool make_square(uint64_t *seed, hk_problem *p) {
  hk_conv_desc d = {.size = sizeof d, .rank = 2, .layout = HK_CHANNELS_LAST, .n = pick(seed, 1, 2)};
  d.groups = d.c = d.k = pick(seed, 0, 1) ? 8 * pick(seed, 1, 17) : pick(seed, 1, 90);
  const int64_t stride = pick(seed, 1, 2), window = pick(seed, 0, 1) ? 3 : 3 + 2 * pick(seed, 1, 2),
                most = pick(seed, 0, 3) ? window / 2 : 7;
  for (int i = 0; i < 2; i++) {
    d.window[i] = window;
    d.stride[i] = stride;
    d.dilation[i] = stride == 1 && !pick(seed, 0, 3) ? pick(seed, 1, 5) : 1;
    d.in[i] = pick(seed, 1, pick(seed, 0, 3) ? 12 : 40);
    d.pad_lo[i] = pick(seed, 0, most), d.pad_hi[i] = pick(seed, 0, most);
  }
  return hk_problem_conv(p, &d) == HK_OK && hk_problem_dense(p, d.layout) == HK_OK && hk_problem_check(p) == HK_OK;
}

static bool make_problem(uint64_t *seed, hk_problem *p) {
  if (!pick(seed, 0, 4)) return make_point(seed, p);
  if (!pick(seed, 0, 4)) return make_row(seed, p);
  if (!pick(seed, 0, 4)) return make_square(seed, p);
  static const int64_t inputs[] = {1, 1, 1, 1, 1, 2, 3, 4, 5, 8, 16}, sizes[] = {200, 30, 9}, windows[] = {90, 9, 4};
  hk_conv_desc d = {.size = sizeof d, .rank = (int32_t)pick(seed, 1, 3), .layout = (hk_layout)pick(seed, 0, 1)};
  d.groups = pick(seed, 1, pick(seed, 0, 3) ? 40 : 9);
  const int64_t in_group = inputs[pick(seed, 0, 10)], out_group = pick(seed, 0, 2) ? in_group : pick(seed, 1, 5);
  if (in_group > 1) d.groups = 1 + d.groups % 9;
  d.n = pick(seed, 1, 2);
  d.c = d.groups * in_group;
  d.k = d.groups * out_group;
  const bool large = d.rank == 1 && !pick(seed, 0, 3);
  for (int i = 0; i < d.rank; i++) {
    d.in[i] = pick(seed, 1, large ? 3000 : sizes[d.rank - 1]);
    d.window[i] = pick(seed, 1, large && !pick(seed, 0, 2) ? 700 : pick(seed, 0, 2) ? 5 : windows[d.rank - 1]);
    d.stride[i] = pick(seed, 0, 1) ? 1 : pick(seed, 1, 4);
    d.dilation[i] = pick(seed, 0, 2) ? 1 : pick(seed, 1, large ? 150 : 5);
    d.pad_lo[i] = pick(seed, 0, 2) ? pick(seed, 0, 3) : pick(seed, 0, d.dilation[i] * d.window[i]);
    d.pad_hi[i] = pick(seed, 0, 2) ? d.pad_lo[i] : pick(seed, 0, 9);
  }
  if (d.rank == 2 && !pick(seed, 0, 2)) { /* the window that a kernel of its own takes */
    for (int i = 0; i < 2; i++) d.window[i] = 3, d.dilation[i] = 1, d.stride[i] = i ? d.stride[0] : pick(seed, 1, 2);
  }
  if (hk_problem_conv(p, &d)) return false;
  for (int i = 0; i < d.rank; i++) {
    if (!pick(seed, 0, 9)) p->in_dilation[i] = pick(seed, 1, 3);
    if (!pick(seed, 0, 9)) p->pad_lo[i] = -pick(seed, 0, 3);
    if (!pick(seed, 0, 9)) p->reverse[i] = 1;
  }
  return hk_problem_dense(p, d.layout) == HK_OK && hk_problem_check(p) == HK_OK;
}

typedef struct tensors {
  guarded x, f, y, c;
  float *bias, *scale, *want;
  hk_extent ex, ef, ey;
  int at_execute, in_place;
} tensors;

static void fill(float *v, int64_t count, int range, uint64_t *seed) {
  for (int64_t i = 0; i < count; i++) v[i] = (float)hk_test_integer(seed, range);
}

static tensors make_tensors(uint64_t *seed, const hk_problem *p) {
  tensors t = {.at_execute = !pick(seed, 0, 4), .in_place = !pick(seed, 0, 2)};
  hk_problem_extents(p, &t.ex, &t.ef, &t.ey);
  const int end = (int)pick(seed, 0, 1);
  t.x = guarded_make((size_t)t.ex.elements, end);
  t.f = guarded_make((size_t)t.ef.elements, end);
  t.y = guarded_make((size_t)t.ey.elements + (end ? 0 : 16), end);
  if (!end) t.y.at += 16; /* y at a slightly higher page offset than x: dwc then iterates blocks backwards */
  t.c = guarded_make((size_t)t.ey.elements, end);
  t.want = malloc((size_t)t.ey.elements * 4 + 4);
  t.bias = malloc((size_t)p->k * 4);
  t.scale = malloc((size_t)p->k * 4);
  fill(t.x.at, t.ex.elements, 4, seed);
  fill(t.f.at, t.ef.elements, 4, seed);
  fill(t.c.at, t.ey.elements, 9, seed);
  fill(t.bias, p->k, 9, seed);
  fill(t.scale, p->k, 2, seed);
  return t;
}

static void drop_tensors(tensors *t) {
  guarded *all[] = {&t->x, &t->f, &t->y, &t->c};
  for (int i = 0; i < 4; i++) guarded_free(all[i]);
  free(t->want);
  free(t->bias);
  free(t->scale);
}

/* runs one decision into t->y; false when it cannot be built */
static bool run(const hk_problem *p, const hk_epilogue *e, tensors *t, const char *decision, int threads) {
  hk_options o = {.size = sizeof o, .decision = decision, .threads = threads};
  float *x = t->x.at + t->ex.below, *f = t->f.at + t->ef.below;
  float *y = t->y.at + t->ey.below, *c = t->c.at + t->ey.below;
  const hk_weights w = {.size = sizeof w, .f = t->at_execute ? NULL : f, .scale = t->scale, .bias = t->bias};
  hk_plan *plan = NULL;
  if (hk_plan_create(&plan, p, e, &o, &w)) return false;
  if (t->in_place) memcpy(t->y.at, t->c.at, (size_t)t->ey.elements * 4);
  else memset(t->y.at, 0x7f, (size_t)t->ey.elements * 4);
  hk_args a = {.size = sizeof a, .x = x, .f = t->at_execute ? f : NULL, .y = y, .c = t->in_place ? y : c};
  CHECK(hk_plan_workspace(plan) == 0, "%s wants workspace", decision);
  CHECK_STATUS(HK_OK, "", hk_plan_execute(plan, &a));
  hk_plan_destroy(plan);
  return true;
}

typedef struct visit {
  const hk_problem *p;
  const hk_epilogue *e;
  tensors *t;
  uint64_t *seed;
  int tried;
} visit;

static void compare(const visit *v, const char *decision) {
  const float *y = v->t->y.at;
  int64_t bad = 0, first = -1;
  for (int64_t i = 0; i < v->t->ey.elements; i++) {
    if (y[i] == v->t->want[i]) continue;
    if (!bad++) first = i;
  }
  char text[400];
  if (bad) hk_problem_print(v->p, text, sizeof text, NULL);
  CHECK(bad == 0, "%lld of %lld differ, first %lld: %g for %g: %s: %s", (long long)bad, (long long)v->t->ey.elements,
        (long long)first, y[first < 0 ? 0 : first], v->t->want[first < 0 ? 0 : first], decision, text);
}

/* Changes one knob of a decision at random; the plan refuses what cannot be. */
static void change(const char *decision, uint64_t *seed, char *out, size_t size) {
  int knobs = 0;
  for (const char *c = decision; *c; c++) knobs += *c == '=';
  const char *c = decision;
  for (int64_t i = pick(seed, 2, knobs); i > 0; i--) c = strchr(c, '=') + 1;
  const char *rest = strchr(c, ' ');
  const int64_t old = strtoll(c, NULL, 10), now = pick(seed, 0, 1) ? pick(seed, 0, 3) : pick(seed, 1, 2 * old + 1);
  snprintf(out, size, "%.*s%lld%s", (int)(c - decision), decision, (long long)now, rest ? rest : "");
}

static void on_candidate(void *context, const hk_candidate *candidate) {
  visit *v = context;
  bool ours = false;
  for (size_t i = 0; i < sizeof algorithms / sizeof *algorithms; i++)
    ours |= !strncmp(candidate->decision, algorithms[i], strlen(algorithms[i]));
  if (!ours || candidate->refusal) return;
  const int threads = (int)pick(v->seed, 1, 3);
  v->tried++;
  /* candidates are asked for as if weights came at creation; at execute they may be too many for the stack */
  const bool ran = run(v->p, v->e, v->t, candidate->decision, threads);
  CHECK(ran || v->t->at_execute, "%s: %s", candidate->decision, hk_last_error());
  if (!ran) return;
  compare(v, candidate->decision);
  char changed[400];
  change(candidate->decision, v->seed, changed, sizeof changed);
  if (!run(v->p, v->e, v->t, changed, threads)) return;
  compare(v, changed);
}

int main(int argc, char **argv) {
  static const char *const epilogues[] = {"",
                                          "",
                                          "bias",
                                          "scale+bias+relu",
                                          "relu",
                                          "bias+clip:-20:30+sum:2",
                                          "sum:1+relu",
                                          "bias+leaky:0.5",
                                          "hardtanh:-8:8",
                                          "sum:0.5"};
  const int64_t count = argc > 1 ? atoll(argv[1]) : 500;
  const uint64_t seed0 = argc > 2 ? strtoull(argv[2], NULL, 10) : 1;
  int64_t tried = 0, made = 0;
  for (int64_t i = 0; made < count; i++) {
    uint64_t seed = (seed0 << 32) + (uint64_t)i * 2654435761u;
    hk_problem p;
    hk_epilogue e = {.size = sizeof e};
    for (int k = 0; k < 4; k++) pick(&seed, 0, 1);
    if (!make_problem(&seed, &p)) continue;
    int64_t out[HK_MAX_RANK], pixels = 1;
    double flops, bytes;
    hk_problem_output(&p, out, NULL);
    hk_problem_work(&p, &flops, &bytes);
    for (int d = 0; d < p.rank; d++) pixels *= out[d];
    if (pixels == 0 || flops > 4e7) continue;
    const char *text = epilogues[pick(&seed, 0, 9)];
    CHECK(!*text || hk_epilogue_parse(&e, text) == HK_OK, "%s: %s", text, hk_last_error());
    made++;
    tensors t = make_tensors(&seed, &p);
    CHECK(run(&p, &e, &t, "ref", 1), "ref: %s", hk_last_error());
    memcpy(t.want, t.y.at, (size_t)t.ey.elements * 4);
    visit v = {&p, &e, &t, &seed, 0};
    hk_options o = {.size = sizeof o, .threads = (int32_t)pick(&seed, 1, 3)};
    CHECK_STATUS(HK_OK, "", hk_plan_candidates(&p, &e, &o, on_candidate, &v));
    tried += v.tried;
    drop_tensors(&t);
    if (hk_test_failed) {
      fprintf(stderr, "seed %llu problem %lld epilogue \"%s\"\n", (unsigned long long)seed0, (long long)i, text);
      break;
    }
  }
  printf("%lld problems, %lld decisions\n", (long long)made, (long long)tried);
  return hk_test_end();
}
