/* oneDNN on plain activations: x and y stay in the caller's layout, the weights take whatever format oneDNN likes and
 * are reordered before the clock starts. Threads by OpenMP, which oneDNN's build uses. */
#include <oneapi/dnnl/dnnl.h>
#include <stdio.h>
#include <stdlib.h>

#include "plain.h"

/* from the OpenMP run-time that oneDNN brings; declared here so that this module needs no OpenMP flags */
__attribute__((weak)) void omp_set_num_threads(int threads);

typedef struct state {
  dnnl_engine_t engine;
  dnnl_stream_t stream;
  dnnl_primitive_t conv;
  dnnl_memory_t x, f, b, y, packed;
  int threads;
} state;

static void destroy(void *context) {
  state *s = context;
  if (s->conv) dnnl_primitive_destroy(s->conv);
  dnnl_memory_t all[] = {s->x, s->f, s->b, s->y, s->packed};
  for (int i = 0; i < 5; i++)
    if (all[i]) dnnl_memory_destroy(all[i]);
  if (s->stream) dnnl_stream_destroy(s->stream);
  if (s->engine) dnnl_engine_destroy(s->engine);
  free(s);
}

static dnnl_status_t describe(const plain_conv *v, dnnl_memory_desc_t *x, dnnl_memory_desc_t *f,
                              dnnl_memory_desc_t *any, dnnl_memory_desc_t *b, dnnl_memory_desc_t *y) {
  const int64_t g = v->groups;
  dnnl_dims_t dx = {v->n, v->c, v->h, v->w}, dy = {v->n, v->k, v->p, v->q}, db = {v->k};
  dnnl_dims_t df = {v->k, v->c, v->r, v->s}, dg = {g, v->k / g, v->c / g, v->r, v->s};
  const dnnl_format_tag_t io = v->last ? dnnl_nhwc : dnnl_nchw;
  const dnnl_format_tag_t plain = v->last ? (g > 1 ? dnnl_gohwi : dnnl_ohwi) : (g > 1 ? dnnl_goihw : dnnl_oihw);
  const int rank = g > 1 ? 5 : 4;
  int64_t *weights = g > 1 ? dg : df;
  dnnl_status_t s;
  if ((s = dnnl_memory_desc_init_by_tag(x, 4, dx, dnnl_f32, io)) ||
      (s = dnnl_memory_desc_init_by_tag(y, 4, dy, dnnl_f32, io)) ||
      (s = dnnl_memory_desc_init_by_tag(b, 1, db, dnnl_f32, dnnl_x)) ||
      (s = dnnl_memory_desc_init_by_tag(f, rank, weights, dnnl_f32, plain)))
    return s;
  return dnnl_memory_desc_init_by_tag(any, rank, weights, dnnl_f32, dnnl_format_tag_any);
}

static dnnl_status_t build(state *s, const plain_conv *v, const hk_peer_job *job) {
  dnnl_memory_desc_t x, f, any, b, y;
  dnnl_convolution_desc_t desc;
  dnnl_primitive_desc_t pd = NULL;
  dnnl_primitive_attr_t attr = NULL;
  dnnl_post_ops_t ops = NULL;
  dnnl_dims_t stride = {v->stride[0], v->stride[1]}, dil = {v->dil[0] - 1, v->dil[1] - 1};
  dnnl_dims_t lo = {v->lo[0], v->lo[1]}, hi = {v->hi[0], v->hi[1]};
  dnnl_status_t e;
  if ((e = dnnl_engine_create(&s->engine, dnnl_cpu, 0)) ||
      (e = dnnl_stream_create(&s->stream, s->engine, dnnl_stream_default_flags)) ||
      (e = describe(v, &x, &f, &any, &b, &y)) ||
      (e = dnnl_dilated_convolution_forward_desc_init(&desc, dnnl_forward_inference, dnnl_convolution_direct, &x, &any,
                                                      v->bias ? &b : NULL, &y, stride, dil, lo, hi)) ||
      (e = dnnl_primitive_attr_create(&attr)))
    return e;
  if (v->relu) {
    dnnl_post_ops_create(&ops);
    dnnl_post_ops_append_eltwise(ops, 1.0f, dnnl_eltwise_relu, 0.0f, 0.0f);
    dnnl_primitive_attr_set_post_ops(attr, ops);
  }
  if ((e = dnnl_primitive_desc_create(&pd, &desc, attr, s->engine, NULL))) return e;
  const dnnl_memory_desc_t *want = dnnl_primitive_desc_query_md(pd, dnnl_query_weights_md, 0);
  dnnl_primitive_desc_t rd = NULL;
  dnnl_primitive_t reorder = NULL;
  if ((e = dnnl_memory_create(&s->x, &x, s->engine, (void *)job->x)) ||
      (e = dnnl_memory_create(&s->f, &f, s->engine, (void *)job->f)) ||
      (e = dnnl_memory_create(&s->y, &y, s->engine, job->y)) ||
      (v->bias && (e = dnnl_memory_create(&s->b, &b, s->engine, (void *)job->bias))) ||
      (e = dnnl_memory_create(&s->packed, want, s->engine, DNNL_MEMORY_ALLOCATE)) ||
      (e = dnnl_reorder_primitive_desc_create(&rd, &f, s->engine, want, s->engine, NULL)) ||
      (e = dnnl_primitive_create(&reorder, rd)))
    return e;
  const dnnl_exec_arg_t move[] = {{DNNL_ARG_FROM, s->f}, {DNNL_ARG_TO, s->packed}};
  e = dnnl_primitive_execute(reorder, s->stream, 2, move);
  dnnl_stream_wait(s->stream);
  dnnl_primitive_destroy(reorder);
  dnnl_primitive_desc_destroy(rd);
  if (!e) e = dnnl_primitive_create(&s->conv, pd);
  dnnl_primitive_desc_destroy(pd);
  dnnl_primitive_attr_destroy(attr);
  if (ops) dnnl_post_ops_destroy(ops);
  return e;
}

static void *make(const hk_peer_job *job, char *why) {
  plain_conv v;
  if (!plain_read(job, &v, why)) return NULL;
  state *s = calloc(1, sizeof *s);
  if (!s) return NULL;
  s->threads = job->threads;
  if (omp_set_num_threads) omp_set_num_threads(job->threads);
  const dnnl_status_t e = build(s, &v, job);
  if (!e) return s;
  snprintf(why, PEER_WHY, "oneDNN status %d", (int)e);
  destroy(s);
  return NULL;
}

static void run(void *context) {
  const state *s = context;
  dnnl_exec_arg_t args[4] = {
      {DNNL_ARG_SRC, s->x}, {DNNL_ARG_WEIGHTS, s->packed}, {DNNL_ARG_DST, s->y}, {DNNL_ARG_BIAS, s->b}};
  if (omp_set_num_threads) omp_set_num_threads(s->threads);
  dnnl_primitive_execute(s->conv, s->stream, s->b ? 4 : 3, args);
  dnnl_stream_wait(s->stream);
}

__attribute__((visibility("default"))) const hk_peer *hk_peer_get(void) {
  static char about[64];
  const dnnl_version_t *v = dnnl_version();
  snprintf(about, sizeof about, "oneDNN %d.%d.%d", v->major, v->minor, v->patch);
  static hk_peer peer = {.version = HK_PEER_VERSION, .name = "onednn", .make = make, .run = run, .destroy = destroy};
  peer.about = about;
  return &peer;
}
