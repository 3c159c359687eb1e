/* Trials of hk_longconv; see longconv.h. */
#include "support/longconv.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "core/core.h"
#include "support/check.h"

#define MARK 77.0 /* exact in every type; stands where nothing is to be written */

static void *room(size_t bytes) {
  void *p = calloc(1, bytes ? bytes : 1);
  if (!p) abort();
  return p;
}

/* Dense in one of the two layouts, or with gaps; the same for the same `lie`. */
static void tensor_make(longconv_tensor *t, const hk_longconv_desc *d, hk_type type, uint64_t *seed, int64_t lie,
                        bool random) {
  const int64_t gap = lie < 6 ? 1 : 2;
  *t = (longconv_tensor){.type = type, .elements = d->n * d->c * d->length * gap + 2, .first = 1};
  t->at = lie % 2 ? (hk_causal_strides){d->c * d->length * gap, d->length * gap, gap}
                  : (hk_causal_strides){d->c * d->length * gap, gap, d->c * gap};
  t->memory = room((size_t)t->elements * hk_type_bytes(type));
  t->value = room((size_t)(d->n * d->c * d->length) * sizeof(double));
  for (int64_t i = 0; i < t->elements; i++) hk_store_element(type, t->memory, i, MARK);
  for (int64_t i = 0; random && i < d->n * d->c * d->length; i++) {
    const int64_t s = i / (d->c * d->length), c = i / d->length % d->c, u = i % d->length;
    const int64_t at = t->first + s * t->at.outer + c * t->at.channel + u * t->at.time;
    hk_store_element(type, t->memory, at, (double)hk_test_float(seed));
    t->value[i] = hk_load_element(type, t->memory, at);
  }
}
static void tensor_free(longconv_tensor *t) {
  free(t->memory);
  free(t->value);
}

/* ||t - want|| / ||want|| and whether neighbours are untouched. */
static void compare(const longconv_trial *r, const longconv_tensor *t, const double *want, const char *name,
                    const char *text) {
  const hk_longconv_desc *d = &r->d;
  const double eps = t->type == HK_F32 ? 2e-6 : t->type == HK_F16 ? 1e-3 : 8e-3;
  double error = 0, size = 0;
  char *seen = room((size_t)t->elements);
  for (int64_t i = 0; i < d->n * d->c * d->length; i++) {
    const int64_t s = i / (d->c * d->length), c = i / d->length % d->c, u = i % d->length;
    const int64_t where = t->first + s * t->at.outer + c * t->at.channel + u * t->at.time;
    const double e = hk_load_element(t->type, t->memory, where) - want[i];
    error += e * e, size += want[i] * want[i];
    seen[where] = 1;
  }
  CHECK(error <= eps * eps * size + 1e-20, "%s: relative error %g: %s", name, sqrt(error / size), text);
  int64_t touched = 0;
  for (int64_t i = 0; i < t->elements; i++) touched += !seen[i] && hk_load_element(t->type, t->memory, i) != MARK;
  CHECK(!touched, "%s: %lld neighbours written: %s", name, (long long)touched, text);
  free(seen);
}

/* The error of df and dskip is relative to all lags of the correlation, of which df may hold few: each is a sum of n *
 * length products, of variance 1/81 with both gates. */
static void compare_filter(const longconv_trial *r, const float *got, int i, const char *name, const char *text) {
  const int64_t all = r->d.c * r->d.window;
  double error = 0, size = 0;
  for (int64_t j = 0; j < (i == 4 ? all : r->d.c); j++) error += pow((double)got[j] - r->want[i][j], 2);
  for (int64_t j = 0; j < all; j++) size += pow(r->want[4][j], 2);
  size = fmax(size, (double)(hk_min64(r->d.window, r->d.length) * r->d.c * r->d.n * r->d.length) / 81);
  CHECK(error <= 2e-6 * 2e-6 * size + 1e-20, "%s: relative error %g: %s", name, sqrt(error / size), text);
}

/* The formulas of the header, in double, one row at a time; want: y, dx, dpre, dpost, then df and dskip. */
static void formula(const longconv_trial *r, double *const want[6]) {
  const hk_longconv_desc *d = &r->d;
  const int64_t length = d->length, taps = hk_min64(d->window, length);
  for (int64_t row = 0; row < d->n * d->c; row++) {
    const int64_t c = row % d->c, o = row * length;
    double *f = r->f + c * d->window;
    const double keep = f[0];
    if (d->has_skip) f[0] += r->skip[c];
    for (int64_t t = 0; t < length; t++) {
      const double pre = d->has_pre ? r->pre.value[o + t] : 1, post = d->has_post ? r->post.value[o + t] : 1;
      double sum = 0, du = 0;
      for (int64_t i = 0; i < taps && i <= t; i++)
        sum += f[i] * r->x.value[o + t - i] * (d->has_pre ? r->pre.value[o + t - i] : 1);
      for (int64_t i = 0; i < taps && t + i < length; i++)
        du += f[i] * r->dy.value[o + t + i] * (d->has_post ? r->post.value[o + t + i] : 1);
      for (int64_t i = 0; i < taps && i <= t; i++)
        want[4][c * d->window + i] +=
            post * r->dy.value[o + t] * r->x.value[o + t - i] * (d->has_pre ? r->pre.value[o + t - i] : 1);
      want[0][o + t] = post * sum, want[1][o + t] = pre * du;
      want[2][o + t] = r->x.value[o + t] * du, want[3][o + t] = r->dy.value[o + t] * sum;
    }
    f[0] = keep;
  }
  for (int64_t c = 0; c < d->c; c++) want[5][c] = want[4][c * d->window];
}

/* Memory that the library sees: the tensor's own, or a copy on the device. */
typedef struct mirror {
  void *host, *seen;
  size_t bytes;
} mirror;

static void *mirror_up(mirror *m, bool device, void *host, size_t bytes) {
  *m = (mirror){host, host, bytes};
  if (device && (hk_gpu_alloc(&m->seen, bytes) || hk_gpu_copy(m->seen, host, bytes))) abort();
  return m->seen;
}
static void mirror_down(mirror *m) {
  if (m->seen == m->host) return;
  if (hk_gpu_copy(m->host, m->seen, m->bytes)) abort();
  hk_gpu_free(m->seen);
}
static char *up(mirror *m, bool device, const longconv_tensor *t) {
  const size_t size = hk_type_bytes(t->type);
  return (char *)mirror_up(m, device, t->memory, (size_t)t->elements * size) + (size_t)t->first * size;
}

enum { X, PRE, POST, DY, Y, DX, DPRE, DPOST, F, SKIP, DF, DSKIP, MIRRORS };

static void run_gradient(const longconv_trial *r, hk_longconv *k, const hk_longconv_args *a, mirror *m, bool device) {
  const hk_longconv_desc *d = &r->d;
  const hk_longconv_grads g = {.size = sizeof g,
                               .dy = up(&m[DY], device, &r->dy),
                               .dx = up(&m[DX], device, &r->dx),
                               .dx_at = r->dx.at,
                               .dpre = d->has_pre ? up(&m[DPRE], device, &r->dpre) : NULL,
                               .dpre_at = r->dpre.at,
                               .dpost = d->has_post ? up(&m[DPOST], device, &r->dpost) : NULL,
                               .dpost_at = r->dpost.at,
                               .df = mirror_up(&m[DF], device, r->df, (size_t)(d->c * d->window) * 4),
                               .dskip = d->has_skip ? mirror_up(&m[DSKIP], device, r->dskip, (size_t)d->c * 4) : NULL};
  CHECK_STATUS(HK_OK, "", hk_longconv_gradient(k, a, &g));
}

static void compare_all(const longconv_trial *r, const char *text) {
  const hk_longconv_desc *d = &r->d;
  compare(r, &r->y, r->want[0], "y", text);
  if (!d->gradient) return;
  compare(r, &r->dx, r->want[1], "dx", text);
  if (d->has_pre) compare(r, &r->dpre, r->want[2], "dpre", text);
  if (d->has_post) compare(r, &r->dpost, r->want[3], "dpost", text);
  compare_filter(r, r->df, 4, "df", text);
  if (d->has_skip) compare_filter(r, r->dskip, 5, "dskip", text);
}

void longconv_trial_run(const longconv_trial *r, const hk_options *o, bool constant) {
  const hk_longconv_desc *d = &r->d;
  const bool device = o->device == HK_CUDA;
  hk_longconv *k;
  CHECK_STATUS(HK_OK, "", hk_longconv_create(&k, d, constant ? r->f_memory : NULL, r->skip_memory, o));
  if (!k) return;
  char text[256];
  CHECK_STATUS(HK_OK, "", hk_longconv_print(k, text, sizeof text, NULL));
  const size_t bytes = hk_longconv_workspace(k), f = hk_type_bytes(d->f_type);
  mirror m[MIRRORS] = {{0}}, w;
  void *workspace = hk_alloc(bytes);
  if (!workspace) abort();
  memset(workspace, 0xff, bytes); /* NaN: nothing is read before it is written */
  hk_longconv_args a = {.size = sizeof a, .workspace_bytes = bytes};
  a.workspace = mirror_up(&w, device, workspace, bytes);
  a.x = up(&m[X], device, &r->x), a.y = up(&m[Y], device, &r->y);
  if (!constant) a.f = mirror_up(&m[F], device, r->f_memory, (size_t)(d->c * d->window) * f);
  if (!constant && d->has_skip) a.skip = mirror_up(&m[SKIP], device, r->skip_memory, (size_t)d->c * f);
  if (d->has_pre) a.pre = up(&m[PRE], device, &r->pre);
  if (d->has_post) a.post = up(&m[POST], device, &r->post);
  CHECK_STATUS(HK_OK, "", hk_longconv_execute(k, &a));
  if (d->gradient) run_gradient(r, k, &a, m, device);
  if (device) CHECK_STATUS(HK_OK, "", hk_gpu_sync(NULL));
  for (int i = 0; i < MIRRORS; i++)
    if (m[i].host) mirror_down(&m[i]);
  mirror_down(&w);
  compare_all(r, text);
  hk_free(workspace);
  hk_longconv_destroy(k);
}

void longconv_trial_make(longconv_trial *r, uint64_t *seed, int64_t longest) {
  static const hk_type types[] = {HK_F32, HK_F32, HK_F16, HK_BF16};
  *r = (longconv_trial){.d = {.size = sizeof r->d}};
  hk_longconv_desc *d = &r->d;
  d->n = hk_test_between(seed, 1, 3),
  d->c = hk_test_between(seed, 0, 1) ? hk_test_between(seed, 1, 3) : hk_test_between(seed, 4, 40);
  d->length = hk_test_between(seed, 1, d->c > 3 ? hk_min64(300, longest) : longest);
  d->window = hk_test_between(seed, 0, 2) ? hk_test_between(seed, 1, 1 + d->length / 4)
                                          : hk_test_between(seed, 1, 2 * d->length);
  if (longest > 5000) { /* the formula takes a while */
    d->n = hk_test_between(seed, 1, 2), d->c = hk_test_between(seed, 1, 2);
    d->length = hk_test_between(seed, longest / 2, longest),
    d->window = hk_test_between(seed, d->length / 2, d->length);
  }
  d->x_type = types[hk_test_between(seed, 0, 3)], d->y_type = types[hk_test_between(seed, 0, 3)],
  d->f_type = types[hk_test_between(seed, 0, 3)];
  d->has_skip = (int)hk_test_between(seed, 0, 1), d->has_pre = (int)hk_test_between(seed, 0, 1),
  d->has_post = (int)hk_test_between(seed, 0, 1);
  d->gradient = (int)hk_test_between(seed, 0, 2) != 0;
  longconv_tensor *in[] = {&r->x, &r->pre, &r->post}, *out[] = {&r->dx, &r->dpre, &r->dpost};
  for (int i = 0; i < 3; i++) {
    tensor_make(in[i], d, d->x_type, seed, hk_test_between(seed, 0, 7), true);
    tensor_make(out[i], d, d->x_type, seed, hk_test_between(seed, 0, 7), false);
  }
  const int64_t lie = hk_test_between(seed, 0, 7);
  tensor_make(&r->y, d, d->y_type, seed, lie, false);
  tensor_make(&r->dy, d, d->y_type, seed, lie, true);
  d->x = r->x.at, d->y = r->y.at, d->pre = r->pre.at, d->post = r->post.at;
  const int64_t taps = d->c * d->window;
  const size_t bytes = hk_type_bytes(d->f_type);
  r->f = room((size_t)taps * sizeof(double)), r->f_memory = room((size_t)taps * bytes);
  r->skip = room((size_t)d->c * sizeof(double)), r->skip_memory = room((size_t)d->c * bytes);
  const bool last = hk_test_between(seed, 0, 3) == 0;
  d->f_channel = last ? 1 : d->window, d->f_tap = last ? d->c : 1;
  for (int64_t i = 0; i < taps; i++) {
    const int64_t where = i / d->window * d->f_channel + i % d->window * d->f_tap;
    hk_store_element(d->f_type, r->f_memory, where, (double)hk_test_float(seed));
    r->f[i] = hk_load_element(d->f_type, r->f_memory, where);
  }
  for (int64_t i = 0; i < d->c; i++) {
    hk_store_element(d->f_type, r->skip_memory, i, (double)hk_test_float(seed));
    r->skip[i] = hk_load_element(d->f_type, r->skip_memory, i);
  }
  const int64_t n = d->n * d->c * d->length, sizes[6] = {n, n, n, n, taps, d->c};
  for (int i = 0; i < 6; i++) r->want[i] = room((size_t)sizes[i] * sizeof(double));
  r->df = room((size_t)taps * sizeof(float)), r->dskip = room((size_t)d->c * sizeof(float));
  formula(r, r->want);
}

void longconv_trial_free(longconv_trial *r) {
  longconv_tensor *all[] = {&r->x, &r->pre, &r->post, &r->dy, &r->y, &r->dx, &r->dpre, &r->dpost};
  for (int i = 0; i < HK_COUNT(all); i++) tensor_free(all[i]);
  for (int i = 0; i < 6; i++) free(r->want[i]);
  free(r->f), free(r->skip), free(r->f_memory), free(r->skip_memory), free(r->df), free(r->dskip);
}
