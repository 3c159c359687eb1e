/* Device tensors between guards, and the comparison of a decision with the CPU's reference. */
#include "device.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/core.h"
#include "cuda/cuda.h"
#include "support/check.h"

const char *const gpu_epilogues[] = {
    "scale",
    "scale1+bias",
    "bias+relu",
    "bias+clip:-1:6",
    "leaky:0.25",
    "prelu",
    "sigmoid",
    "bias+silu",
    "tanh",
    "gelu",
    "gelu_tanh",
    "hardswish",
    "hardtanh",
    "sum:0.5",
    "scale+bias+relu+sum:2",
    "bias+presum:1+relu",
    "presum:1+silu",
    "bias+silu+sum:0.5",
};
const int gpu_epilogue_count = sizeof gpu_epilogues / sizeof *gpu_epilogues;

enum { GUARD = 4096 };

typedef struct tensor {
  hk_type type;
  hk_extent extent;
  char *host, *device; /* whole memory, guards included */
  size_t bytes;        /* of the tensor alone */
} tensor;

static int64_t elements(const tensor *t) { return t->extent.elements; }

static void tensor_make(tensor *t, hk_type type, hk_extent extent) {
  t->type = type;
  t->extent = extent;
  t->bytes = (size_t)extent.elements * hk_type_bytes(type);
  t->host = malloc(t->bytes + 2 * GUARD);
  /* All ones is NaN in every float type: what is read outside the tensor shows. */
  memset(t->host, 0xff, t->bytes + 2 * GUARD);
  if (hk_gpu_alloc((void **)&t->device, t->bytes + 2 * GUARD)) exit((fprintf(stderr, "%s\n", hk_last_error()), 1));
}
static void tensor_free(tensor *t) {
  free(t->host);
  hk_gpu_free(t->device);
}
static void tensor_up(tensor *t) { hk_gpu_copy(t->device, t->host, t->bytes + 2 * GUARD); }
/* The pointer that execute takes: element 0, which may lie inside the extent. */
static void *at(const tensor *t, char *memory) {
  return memory + GUARD + (size_t)t->extent.below * hk_type_bytes(t->type);
}
static void fill_integers(tensor *t, uint64_t *seed, int range) {
  for (int64_t i = 0; i < elements(t); ++i) hk_store_element(t->type, t->host + GUARD, i, hk_test_integer(seed, range));
}
static void fill_fractions(tensor *t, uint64_t *seed, double scale) {
  for (int64_t i = 0; i < elements(t); ++i) {
    double v = 0;
    for (int j = 0; j < 4; ++j) v += hk_test_integer(seed, 1000) / 1000.0;
    hk_store_element(t->type, t->host + GUARD, i, v * scale);
  }
}
static void fill_positions(tensor *t) {
  for (int64_t i = 0; i < elements(t); ++i) hk_store_element(t->type, t->host + GUARD, i, (double)(i % 251 - 125));
}

static void fill_ends(tensor *t, int64_t width) {
  for (int64_t i = width - 1; i < elements(t); i += 3 * width) hk_store_element(t->type, t->host + GUARD, i, NAN);
}

typedef struct setup {
  hk_problem p;
  hk_epilogue e;
  hk_geom g;
  tensor x, f, c, y, scale, bias;
  float *slopes;
  char *want;    /* y's memory as the reference leaves it */
  double *limit; /* allowed error of each element of y; NULL: none */
  hk_weights w;
  hk_args host, device;
  void *workspace;
} setup;

static hk_extent plain(int64_t n) { return (hk_extent){n, 0}; }

static void setup_fill(setup *s, int fill, uint64_t *seed) {
  const bool whole = fill != FILL_FRACTIONS;
  if (whole) fill_integers(&s->x, seed, 2), fill_integers(&s->f, seed, fill == FILL_POSITIONS ? 0 : 1);
  else fill_fractions(&s->x, seed, 1), fill_fractions(&s->f, seed, 0.1);
  if (fill == FILL_ENDS) fill_ends(&s->x, s->g.in[2]);
  if (fill == FILL_POSITIONS) fill_positions(&s->c);
  else fill_integers(&s->c, seed, 8);
  fill_integers(&s->scale, seed, 2);
  fill_integers(&s->bias, seed, 4);
  for (int64_t k = 0; k < s->p.k; ++k) s->slopes[k] = (float)hk_test_integer(seed, 3);
}

static void setup_make(setup *s, const gpu_case *c, const hk_problem *problem, uint64_t *seed) {
  hk_extent x, f, y;
  memset(s, 0, sizeof *s);
  if (problem) s->p = *problem;
  else if (hk_problem_parse(&s->p, c->problem)) exit((fprintf(stderr, "%s: %s\n", c->problem, hk_last_error()), 1));
  if (hk_epilogue_parse(&s->e, c->epilogue)) exit((fprintf(stderr, "%s: %s\n", c->epilogue, hk_last_error()), 1));
  if (s->e.gate && hk_problem_dense_y(&s->p, HK_CHANNELS_LAST, s->p.k / 2))
    exit((fprintf(stderr, "%s\n", hk_last_error()), 1));
  hk_problem whole = s->p; /* extents are those of all k channels; a gated y has half of them */
  if (s->e.gate) hk_problem_dense(&whole, HK_CHANNELS_LAST);
  if (hk_geom_make(&s->g, &s->p, s->e.gate) || hk_problem_extents(&whole, &x, &f, &y))
    exit((fprintf(stderr, "%s\n", hk_last_error()), 1));
  if (s->e.gate) y.elements /= 2;
  const hk_type real = s->g.acc_type == HK_F64 ? HK_F64 : HK_F32;
  tensor_make(&s->x, s->p.x_type, x);
  tensor_make(&s->f, s->p.f_type, f);
  tensor_make(&s->y, s->p.y_type, y);
  tensor_make(&s->c, s->p.y_type, y);
  tensor_make(&s->scale, real, plain(s->p.k));
  tensor_make(&s->bias, s->g.acc_type == HK_S32 ? HK_S32 : real, plain(s->p.k));
  s->slopes = malloc((size_t)s->p.k * 4 + 4);
  setup_fill(s, c->fill, seed);
  tensor *all[] = {&s->x, &s->f, &s->c, &s->scale, &s->bias};
  for (int i = 0; i < HK_COUNT(all); ++i) tensor_up(all[i]);
  s->w = (hk_weights){.size = sizeof s->w,
                      .f = at(&s->f, s->f.host),
                      .scale = at(&s->scale, s->scale.host),
                      .bias = at(&s->bias, s->bias.host),
                      .slopes = s->slopes};
  if (c->late_weights) s->w.f = s->w.scale = s->w.bias = NULL;
  s->host = (hk_args){.size = sizeof s->host,
                      .x = at(&s->x, s->x.host),
                      .f = at(&s->f, s->f.host),
                      .y = at(&s->y, s->y.host),
                      .c = at(&s->c, s->c.host),
                      .scale = at(&s->scale, s->scale.host),
                      .bias = at(&s->bias, s->bias.host)};
  s->device = (hk_args){.size = sizeof s->device,
                        .x = at(&s->x, s->x.device),
                        .f = at(&s->f, s->f.device),
                        .y = at(&s->y, s->y.device),
                        .c = at(&s->c, s->c.device),
                        .scale = at(&s->scale, s->scale.device),
                        .bias = at(&s->bias, s->bias.device)};
}

static void setup_free(setup *s) {
  tensor *all[] = {&s->x, &s->f, &s->c, &s->y, &s->scale, &s->bias};
  for (int i = 0; i < HK_COUNT(all); ++i) tensor_free(all[i]);
  free(s->slopes);
  free(s->want);
  free(s->limit);
}

/* By the CPU's reference; integers with more than 2^25 products, which take it a second, by the CPU's own choice, as
 * exact. */
static void reference_run(setup *s, const gpu_case *c, const hk_weights *w, char *to) {
  hk_plan *plan = NULL;
  const double products = (double)s->g.gm * (double)s->g.gk * (double)(s->g.k * s->g.groups);
  const hk_options o = {.size = sizeof o, .decision = products > 0x1p25 && c->fill != FILL_FRACTIONS ? NULL : "ref"};
  hk_status status = hk_plan_create(&plan, &s->p, &s->e, &o, w);
  hk_args a = s->host;
  void *workspace = NULL;
  a.workspace_bytes = plan ? hk_plan_workspace(plan) : 0;
  if (!posix_memalign(&workspace, 64, a.workspace_bytes + 64)) a.workspace = workspace;
  if (!status) status = hk_plan_execute(plan, &a);
  free(workspace);
  CHECK(status == HK_OK, "reference: %s", hk_last_error());
  hk_plan_destroy(plan);
  memcpy(to, s->y.host, s->y.bytes + 2 * GUARD);
}

/* The reference's y; for fractions also gk * eps * sum |x||f|, by running the reference on absolute values. */
static void setup_reference(setup *s, const gpu_case *c) {
  s->want = malloc(s->y.bytes + 2 * GUARD);
  reference_run(s, c, &s->w, s->want);
  const double eps_y = s->p.y_type == HK_BF16     ? 0x1p-8
                       : s->p.y_type == HK_F16    ? 0x1p-11
                       : s->p.y_type == HK_F8E4M3 ? 0x1p-4
                                                  : 0x1p-23;
  const bool smooth = s->e.act >= HK_ACT_SIGMOID && s->e.act <= HK_ACT_SOFTSIGN;
  if (c->fill != FILL_FRACTIONS && !smooth && !s->e.gate) return;
  s->limit = malloc(sizeof(double) * (size_t)elements(&s->y) + 8);
  /* e4m3 products are added in about 14 bits between promotions */
  const double eps = c->math & HK_MATH_TF32 && s->p.x_type == HK_F32 ? 0x1p-10
                     : s->p.x_type == HK_F8E4M3                      ? 0x1p-17
                                                                     : 0x1p-23;
  for (int64_t i = 0; i < elements(&s->y); ++i) {
    const double v = fabs(hk_load_element(s->y.type, s->want + GUARD, i));
    /* |x| is 1 and |f| 0.1 in the mean */
    s->limit[i] = v * eps_y * 1.01 + 1e-6 * (1 + v) + (c->fill == FILL_FRACTIONS ? 0.1 * (double)s->g.gk * eps * 4 : 0);
  }
}

static int64_t compare(const setup *s, const char *got, int64_t *first) {
  int64_t wrong = 0;
  for (int64_t i = 0; i < elements(&s->y); ++i) {
    const double a = hk_load_element(s->y.type, got + GUARD, i), b = hk_load_element(s->y.type, s->want + GUARD, i);
    const bool gap = !memcmp(s->want + GUARD + (size_t)i * hk_type_bytes(s->y.type), s->want, hk_type_bytes(s->y.type));
    const bool same =
        gap        ? !memcmp(got + GUARD + (size_t)i * hk_type_bytes(s->y.type), s->want, hk_type_bytes(s->y.type))
        : s->limit ? fabs(a - b) <= s->limit[i]
                   : a == b || (isnan(a) && isnan(b));
    if (!same && !wrong++) *first = i;
  }
  return wrong;
}

static void check_guards(const setup *s, const char *got, const char *decision, const char *text) {
  bool whole = true;
  for (int i = 0; i < GUARD; ++i)
    whole =
        whole && (unsigned char)got[i] == 0xff && (unsigned char)got[(size_t)GUARD + s->y.bytes + (size_t)i] == 0xff;
  CHECK(whole, "%s: %s wrote outside y", decision, text);
}

/* True when the decision ran. */
static bool run_decision(setup *s, const gpu_case *c, const char *decision, const char *text) {
  hk_plan *plan = NULL;
  const hk_options o = {.size = sizeof o, .device = HK_CUDA, .decision = decision, .math = c->math};
  const hk_status status = hk_plan_create(&plan, &s->p, &s->e, &o, &s->w);
  if (status == HK_UNSUPPORTED) return false;
  CHECK(status == HK_OK, "%s: %s: %s", decision, text, hk_last_error());
  if (status) return false;
  const size_t need = hk_plan_workspace(plan), bytes = s->y.bytes + 2 * GUARD;
  void *workspace = NULL;
  char *got = malloc(bytes);
  memset(got, 0xff, bytes);
  if (need) hk_gpu_alloc(&workspace, need);
  s->device.workspace = workspace, s->device.workspace_bytes = need;
  hk_gpu_copy(s->y.device, got, bytes);
  if (getenv("HANKEL_TEST_TRACE")) fprintf(stderr, "%s: %s\n", text, decision); /* names the kernel that does not end */
  hk_status ran = hk_plan_execute(plan, &s->device);
  if (!ran) ran = hk_gpu_sync(NULL);
  CHECK(ran == HK_OK, "%s: %s: %s", decision, text, hk_last_error());
  if (ran == HK_DEVICE) exit((fprintf(stderr, "the device is lost\n"), 1));
  hk_gpu_copy(got, s->y.device, bytes);
  int64_t first = 0;
  const int64_t wrong = compare(s, got, &first);
  CHECK(
      !wrong,
      "hankel check '%s' --epilogue '%s' --device cuda --decision '%s': %lld of %lld wrong, element %lld is %g, not %g",
      text, c->epilogue, decision, (long long)wrong, (long long)elements(&s->y), (long long)first,
      hk_load_element(s->y.type, got + GUARD, first), hk_load_element(s->y.type, s->want + GUARD, first));
  check_guards(s, got, decision, text);
  free(got);
  hk_gpu_free(workspace);
  hk_plan_destroy(plan);
  return true;
}

void gpu_names_collect(void *context, const hk_candidate *c) {
  gpu_names *n = context;
  if (c->refusal || n->count >= 128 || (n->skip && !strncmp(c->decision, n->skip, strlen(n->skip)))) return;
  for (int i = 0; i < n->count && n->once && strstr(c->decision, n->once); ++i)
    if (strstr(n->text[i], n->once)) return;
  snprintf(n->text[n->count++], 200, "%s", c->decision);
}

bool gpu_few_tiles = false;
const char *gpu_only = NULL;
int gpu_tile_step = 1;

int gpu_case_run(const gpu_case *c, const hk_problem *problem, uint64_t seed) {
  setup s;
  char text[1024], decision[200];
  const uint64_t first = seed;
  int ran = 0;
  setup_make(&s, c, problem, &seed);
  hk_problem_print(&s.p, text, sizeof text, NULL);
  setup_reference(&s, c);
  for (int i = 0; i < hk_cu_row_count && !gpu_few_tiles && !gpu_only; ++i) {
    const hk_cu_row *r = &hk_cu_rows[i];
    if (r->type != s.p.x_type || (uint64_t)i % (unsigned)gpu_tile_step != first % (unsigned)gpu_tile_step) continue;
    snprintf(decision, sizeof decision, "wgmma bm=%d bn=%d stages=%d cm=%d cn=%d split=%d parts=%d turns=%d",
             hk_cu_row_bm(r), r->bn, r->stages, r->cm, r->cn, r->split, r->parts, r->wgs < r->nc);
    ran += run_decision(&s, c, decision, text);
  }
  gpu_names n = {.skip = "wgmma "}; /* its tiles were run above, or not at all */
  const hk_options o = {.size = sizeof o, .device = HK_CUDA, .math = c->math, .rigor = HK_PATIENT};
  CHECK(hk_plan_candidates(&s.p, &s.e, &o, gpu_names_collect, &n) == HK_OK, "%s", hk_last_error());
  bool tiled = false;
  for (int i = 0; i < n.count; ++i) {
    const bool tile = !strncmp(n.text[i], "wgmma", 5);
    if (gpu_only && strncmp(n.text[i], gpu_only, strlen(gpu_only))) continue;
    if (!gpu_few_tiles || !tile || !tiled) ran += run_decision(&s, c, n.text[i], text);
    tiled |= tile;
  }
  CHECK(n.count > 0, "%s: no general decision", text);
  setup_free(&s);
  return ran;
}
