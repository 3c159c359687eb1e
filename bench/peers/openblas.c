/* im2col and one matrix product a group and image by OpenBLAS: what most programs do without a convolution library.
 * A pointwise problem of stride 1 needs no im2col and gets none. Bias and relu run over y afterwards. */
#include <cblas.h>
#include <stdlib.h>
#include <string.h>

#include "plain.h"

void openblas_set_num_threads(int threads);
char *openblas_get_config(void);

typedef struct state {
  plain_conv v;
  const float *x, *f, *bias;
  float *y, *columns;
  int threads;
} state;

static void destroy(void *context) {
  state *s = context;
  free(s->columns);
  free(s);
}

static bool pointwise(const plain_conv *v) {
  return v->win[1] == 1 && v->win[2] == 1 && v->stride[1] == 1 && v->stride[2] == 1 && !v->lo[1] && !v->lo[2] &&
         !v->hi[1] && !v->hi[2];
}

static void *make(const hk_peer_job *job, char *why) {
  plain_conv v;
  if (!plain_read_f32(job, &v, why)) return NULL;
  state *s = calloc(1, sizeof *s);
  if (!s) return NULL;
  s->v = v, s->x = job->x, s->f = job->f, s->bias = job->bias, s->y = job->y, s->threads = job->threads;
  s->columns = malloc((size_t)(v.out[1] * v.out[2] * v.win[1] * v.win[2] * (v.c / v.groups)) * sizeof(float) + 64);
  return s;
}

/* rows of pixels: columns[pixel][tap][channel] */
static void im2col_last(const plain_conv *v, const float *x, float *to) {
  const int64_t cg = v->c / v->groups;
  for (int64_t p = 0; p < v->out[1]; p++)
    for (int64_t q = 0; q < v->out[2]; q++)
      for (int64_t r = 0; r < v->win[1]; r++)
        for (int64_t s = 0; s < v->win[2]; s++, to += cg) {
          const int64_t i = p * v->stride[1] + r * v->dil[1] - v->lo[1],
                        j = q * v->stride[2] + s * v->dil[2] - v->lo[2];
          if (i < 0 || i >= v->in[1] || j < 0 || j >= v->in[2]) memset(to, 0, (size_t)cg * sizeof *to);
          else memcpy(to, x + (i * v->in[2] + j) * v->c, (size_t)cg * sizeof *to);
        }
}

/* columns[channel][tap][pixel] */
static void im2col_first(const plain_conv *v, const float *x, float *to) {
  for (int64_t c = 0; c < v->c / v->groups; c++, x += v->in[1] * v->in[2])
    for (int64_t r = 0; r < v->win[1]; r++)
      for (int64_t s = 0; s < v->win[2]; s++)
        for (int64_t p = 0; p < v->out[1]; p++, to += v->out[2]) {
          const int64_t i = p * v->stride[1] + r * v->dil[1] - v->lo[1], j0 = s * v->dil[2] - v->lo[2];
          if (i < 0 || i >= v->in[1]) {
            memset(to, 0, (size_t)v->out[2] * sizeof *to);
            continue;
          }
          for (int64_t q = 0; q < v->out[2]; q++) {
            const int64_t j = q * v->stride[2] + j0;
            to[q] = j < 0 || j >= v->in[2] ? 0 : x[i * v->in[2] + j];
          }
        }
}

static void finish(const state *s) {
  const plain_conv *v = &s->v;
  const int64_t pixels = v->out[1] * v->out[2], count = v->n * v->k * pixels;
  if (!v->bias && !v->relu) return;
  for (int64_t i = 0; i < count; i++) {
    float y = s->y[i] + (v->bias ? s->bias[v->last ? i % v->k : i / pixels % v->k] : 0);
    s->y[i] = v->relu && y < 0 ? 0 : y;
  }
}

static void run(void *context) {
  const state *s = context;
  const plain_conv *v = &s->v;
  const int pixels = (int)(v->out[1] * v->out[2]), kg = (int)(v->k / v->groups), cg = (int)(v->c / v->groups);
  const int depth = (int)(v->win[1] * v->win[2]) * cg;
  const bool direct = pointwise(v);
  openblas_set_num_threads(s->threads);
  for (int64_t i = 0; i < v->n * v->groups; i++) {
    const int64_t n = i / v->groups, g = i % v->groups;
    const float *f = s->f + g * kg * depth;
    if (v->last) {
      const float *x = s->x + n * v->in[1] * v->in[2] * v->c + g * cg;
      if (!direct) im2col_last(v, x, s->columns);
      cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, pixels, kg, depth, 1.0f, direct ? x : s->columns,
                  direct ? (int)v->c : depth, f, depth, 0.0f, s->y + n * pixels * v->k + g * kg, (int)v->k);
    } else {
      const float *x = s->x + (n * v->c + g * cg) * v->in[1] * v->in[2];
      if (!direct) im2col_first(v, x, s->columns);
      cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, kg, pixels, depth, 1.0f, f, depth, direct ? x : s->columns,
                  pixels, 0.0f, s->y + (n * v->k + g * kg) * pixels, pixels);
    }
  }
  finish(s);
}

__attribute__((visibility("default"))) const hk_peer *hk_peer_get(void) {
  static hk_peer peer = {.version = HK_PEER_VERSION, .name = "openblas", .make = make, .run = run, .destroy = destroy};
  peer.about = openblas_get_config();
  return &peer;
}
