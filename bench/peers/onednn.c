/* oneDNN on plain activations: x and y stay in the caller's layout, the weights take whatever format oneDNN likes and
 * are reordered before the clock starts. f32, bf16, f16; s8 and u8 with oneDNN 3 (a bias is f32 there and follows the
 * scale). Threads by OpenMP, which oneDNN's build uses. The module works with oneDNN 2.x and 3.x: -DPEER_onednn_INCLUDE
 * and -DPEER_onednn_dnnl name another than the system's. */
#include <oneapi/dnnl/dnnl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "plain.h"

/* from the OpenMP run-time that oneDNN brings; declared here so that this module needs no OpenMP flags */
__attribute__((weak)) void omp_set_num_threads(int threads);

enum { X, Y, B, PACKED, SCALE, X_ZERO, Y_ZERO, PLAIN, MEMORIES };
static const int roles[] = {DNNL_ARG_SRC,
                            DNNL_ARG_DST,
                            DNNL_ARG_BIAS,
                            DNNL_ARG_WEIGHTS,
#if DNNL_VERSION_MAJOR >= 3
                            DNNL_ARG_ATTR_SCALES | DNNL_ARG_WEIGHTS,
#else
                            0,
#endif
                            DNNL_ARG_ATTR_ZERO_POINTS | DNNL_ARG_SRC,
                            DNNL_ARG_ATTR_ZERO_POINTS | DNNL_ARG_DST};

typedef struct state {
  dnnl_engine_t engine;
  dnnl_stream_t stream;
  dnnl_primitive_t conv;
  dnnl_memory_t memory[MEMORIES];
  dnnl_exec_arg_t args[MEMORIES];
  int arg_count, threads;
  float *float_bias; /* of int8 problems */
  int32_t zero[2];
} state;

/* ---- what the two versions spell differently */
#if DNNL_VERSION_MAJOR >= 3
typedef dnnl_memory_desc_t desc;
typedef const_dnnl_memory_desc_t desc_in;
static dnnl_status_t desc_make(desc *d, int rank, const int64_t *size, dnnl_data_type_t type, dnnl_format_tag_t tag) {
  return dnnl_memory_desc_create_with_tag(d, rank, size, type, tag);
}
static void desc_free(desc d) {
  if (d) dnnl_memory_desc_destroy(d);
}
static dnnl_status_t relu_append(dnnl_post_ops_t ops) {
  return dnnl_post_ops_append_eltwise(ops, dnnl_eltwise_relu, 0.0f, 0.0f);
}
#else
typedef dnnl_memory_desc_t *desc;
typedef const dnnl_memory_desc_t *desc_in;
static dnnl_status_t desc_make(desc *d, int rank, const int64_t *size, dnnl_data_type_t type, dnnl_format_tag_t tag) {
  *d = calloc(1, sizeof **d);
  return *d ? dnnl_memory_desc_init_by_tag(*d, rank, size, type, tag) : dnnl_out_of_memory;
}
static void desc_free(desc d) { free(d); }
static dnnl_status_t relu_append(dnnl_post_ops_t ops) {
  return dnnl_post_ops_append_eltwise(ops, 1.0f, dnnl_eltwise_relu, 0.0f, 0.0f);
}
#endif

static void destroy(void *context) {
  state *s = context;
  if (s->conv) dnnl_primitive_destroy(s->conv);
  for (int i = 0; i < MEMORIES; i++)
    if (s->memory[i]) dnnl_memory_destroy(s->memory[i]);
  if (s->stream) dnnl_stream_destroy(s->stream);
  if (s->engine) dnnl_engine_destroy(s->engine);
  free(s->float_bias);
  free(s);
}

static dnnl_data_type_t type_of(hk_type t) {
  switch (t) {
  case HK_F32: return dnnl_f32;
  case HK_BF16: return dnnl_bf16;
  case HK_F16: return dnnl_f16;
  case HK_S8: return dnnl_s8;
  case HK_U8: return dnnl_u8;
  case HK_S32: return dnnl_s32;
  default: return dnnl_data_type_undef;
  }
}

typedef struct descs {
  desc x, f, any, b, y, scale, zero;
} descs;

static dnnl_status_t describe(const plain_conv *v, const hk_problem *p, descs *d) {
  const int64_t g = v->groups;
  const bool deep = v->rank == 3, many = g > 1;
  const int64_t *in = v->in + 3 - v->rank, *win = v->win + 3 - v->rank, *out = v->out + 3 - v->rank;
  dnnl_dims_t dx = {v->n, v->c}, dy = {v->n, v->k}, dk = {v->k}, one = {1}, df = {g, v->k / g, v->c / g};
  memcpy(dx + 2, in, (size_t)v->rank * sizeof *in);
  memcpy(dy + 2, out, (size_t)v->rank * sizeof *out);
  memcpy(df + 3, win, (size_t)v->rank * sizeof *win);
  const dnnl_format_tag_t io = v->last ? (deep ? dnnl_ndhwc : dnnl_nhwc) : (deep ? dnnl_ncdhw : dnnl_nchw);
  const dnnl_format_tag_t last = deep ? (many ? dnnl_godhwi : dnnl_odhwi) : (many ? dnnl_gohwi : dnnl_ohwi);
  const dnnl_format_tag_t first = deep ? (many ? dnnl_goidhw : dnnl_oidhw) : (many ? dnnl_goihw : dnnl_oihw);
  const int rank = v->rank + (many ? 3 : 2);
  const int64_t *weights = many ? df : df + 1;
  const dnnl_data_type_t tx = type_of(p->x_type), tf = type_of(p->f_type), ty = type_of(p->y_type);
  dnnl_status_t e;
  if ((e = desc_make(&d->x, v->rank + 2, dx, tx, io)) || (e = desc_make(&d->y, v->rank + 2, dy, ty, io)) ||
      (e = desc_make(&d->f, rank, weights, tf, v->last ? last : first)) ||
      (e = desc_make(&d->any, rank, weights, tf, dnnl_format_tag_any)) ||
      (v->bias && (e = desc_make(&d->b, 1, dk, dnnl_f32, dnnl_x))) ||
      (e = desc_make(&d->scale, 1, dk, dnnl_f32, dnnl_x)))
    return e;
  return desc_make(&d->zero, 1, one, dnnl_s32, dnnl_x);
}

/* relu, scales and zero points */
static dnnl_status_t attributes(const plain_conv *v, const hk_problem *p, dnnl_primitive_attr_t *attr) {
  dnnl_status_t e = dnnl_primitive_attr_create(attr);
  if (!e && v->relu) {
    dnnl_post_ops_t ops = NULL;
    if (!(e = dnnl_post_ops_create(&ops)) && !(e = relu_append(ops))) e = dnnl_primitive_attr_set_post_ops(*attr, ops);
    if (ops) dnnl_post_ops_destroy(ops);
  }
#if DNNL_VERSION_MAJOR >= 3
  if (!e && v->scale) e = dnnl_primitive_attr_set_scales_mask(*attr, DNNL_ARG_WEIGHTS, v->groups > 1 ? 3 : 1);
  if (!e && p->x_zero) e = dnnl_primitive_attr_set_zero_points_mask(*attr, DNNL_ARG_SRC, 0);
  if (!e && p->y_zero) e = dnnl_primitive_attr_set_zero_points_mask(*attr, DNNL_ARG_DST, 0);
#else
  (void)p;
#endif
  return e;
}

static dnnl_status_t convolution(const state *s, const plain_conv *v, const descs *d, dnnl_primitive_attr_t attr,
                                 dnnl_primitive_desc_t *pd) {
  dnnl_dims_t stride = {0}, dil = {0}, lo = {0}, hi = {0};
  for (int i = 0, d = 3 - v->rank; i < v->rank; i++, d++)
    stride[i] = v->stride[d], dil[i] = v->dil[d] - 1, lo[i] = v->lo[d], hi[i] = v->hi[d];
#if DNNL_VERSION_MAJOR >= 3
  return dnnl_convolution_forward_primitive_desc_create(pd, s->engine, dnnl_forward_inference, dnnl_convolution_direct,
                                                        d->x, d->any, d->b, d->y, stride, dil, lo, hi, attr);
#else
  dnnl_convolution_desc_t desc;
  const dnnl_status_t e = dnnl_dilated_convolution_forward_desc_init(
      &desc, dnnl_forward_inference, dnnl_convolution_direct, d->x, d->any, d->b, d->y, stride, dil, lo, hi);
  return e ? e : dnnl_primitive_desc_create(pd, &desc, attr, s->engine, NULL);
#endif
}

static dnnl_status_t pack(state *s, const descs *d, desc_in want) {
  dnnl_primitive_desc_t pd = NULL;
  dnnl_primitive_t reorder = NULL;
  dnnl_status_t e;
  if ((e = dnnl_reorder_primitive_desc_create(&pd, d->f, s->engine, want, s->engine, NULL))) return e;
  if (!(e = dnnl_primitive_create(&reorder, pd))) {
    const dnnl_exec_arg_t move[] = {{DNNL_ARG_FROM, s->memory[PLAIN]}, {DNNL_ARG_TO, s->memory[PACKED]}};
    if (!(e = dnnl_primitive_execute(reorder, s->stream, 2, move))) e = dnnl_stream_wait(s->stream);
    dnnl_primitive_destroy(reorder);
  }
  dnnl_primitive_desc_destroy(pd);
  return e;
}

static dnnl_status_t hold(state *s, int which, desc_in d, const void *data) {
  const dnnl_status_t e = dnnl_memory_create(&s->memory[which], d, s->engine, (void *)data);
  if (!e && which != PLAIN) s->args[s->arg_count++] = (dnnl_exec_arg_t){roles[which], s->memory[which]};
  return e;
}

/* oneDNN reads one scale per channel and an f32 bias. */
static dnnl_status_t hold_epilogue(state *s, const plain_conv *v, const hk_peer_job *job, const descs *d) {
  const bool int8 = job->problem->x_type == HK_S8 || job->problem->x_type == HK_U8;
  dnnl_status_t e = dnnl_success;
  if (int8 && v->bias) {
    if (!(s->float_bias = malloc((size_t)v->k * sizeof(float)))) return dnnl_out_of_memory;
    for (int64_t k = 0; k < v->k; k++) s->float_bias[k] = (float)((const int32_t *)job->bias)[k];
  }
  if (v->bias) e = hold(s, B, d->b, s->float_bias ? s->float_bias : job->bias);
  if (!e && v->scale) {
    float *to = NULL;
    if ((e = hold(s, SCALE, d->scale, DNNL_MEMORY_ALLOCATE)) ||
        (e = dnnl_memory_get_data_handle(s->memory[SCALE], (void **)&to)))
      return e;
    for (int64_t k = 0; k < v->k; k++) to[k] = ((const float *)job->scale)[job->epilogue->scale == 2 ? k : 0];
  }
  s->zero[0] = job->problem->x_zero, s->zero[1] = job->problem->y_zero;
  if (!e && s->zero[0]) e = hold(s, X_ZERO, d->zero, &s->zero[0]);
  if (!e && s->zero[1]) e = hold(s, Y_ZERO, d->zero, &s->zero[1]);
  return e;
}

static dnnl_status_t build(state *s, const plain_conv *v, const hk_peer_job *job, descs *d) {
  dnnl_primitive_desc_t pd = NULL;
  dnnl_primitive_attr_t attr = NULL;
  dnnl_status_t e;
  if ((e = dnnl_engine_create(&s->engine, dnnl_cpu, 0)) ||
      (e = dnnl_stream_create(&s->stream, s->engine, dnnl_stream_default_flags)) ||
      (e = describe(v, job->problem, d)) || (e = attributes(v, job->problem, &attr)) ||
      (e = convolution(s, v, d, attr, &pd)))
    goto end;
  desc_in want = dnnl_primitive_desc_query_md(pd, dnnl_query_weights_md, 0);
  if ((e = hold(s, X, d->x, job->x)) || (e = hold(s, Y, d->y, job->y)) || (e = hold(s, PLAIN, d->f, job->f)) ||
      (e = hold(s, PACKED, want, DNNL_MEMORY_ALLOCATE)) || (e = hold_epilogue(s, v, job, d)) || (e = pack(s, d, want)))
    goto end;
  e = dnnl_primitive_create(&s->conv, pd);
end:
  if (pd) dnnl_primitive_desc_destroy(pd);
  if (attr) dnnl_primitive_attr_destroy(attr);
  return e;
}

static bool knows(const hk_problem *p, const plain_conv *v, char *why) {
  const bool narrow = p->x_type != HK_F32;
  const char *no = NULL;
  if (!type_of(p->x_type) || !type_of(p->f_type) || !type_of(p->y_type)) no = "f32, bf16, f16 and int8 only";
  else if (p->f_zero) no = "no zero point of f";
  else if (DNNL_VERSION_MAJOR < 3 && (v->scale || p->x_zero || p->y_zero || (narrow && p->x_type != HK_BF16)))
    no = "scales, f16 and int8 need oneDNN 3";
  if (no) snprintf(why, PEER_WHY, "%s", no);
  return !no;
}

static void *make(const hk_peer_job *job, char *why) {
  plain_conv v;
  if (!plain_read(job, &v, why) || !knows(job->problem, &v, why)) return NULL;
  state *s = calloc(1, sizeof *s);
  if (!s) return NULL;
  s->threads = job->threads;
  if (omp_set_num_threads) omp_set_num_threads(job->threads);
  descs d = {0};
  const dnnl_status_t e = build(s, &v, job, &d);
  desc all[] = {d.x, d.f, d.any, d.b, d.y, d.scale, d.zero};
  for (size_t i = 0; i < sizeof all / sizeof *all; i++) desc_free(all[i]);
  if (!e) return s;
  snprintf(why, PEER_WHY, "oneDNN status %d", (int)e);
  destroy(s);
  return NULL;
}

static void run(void *context) {
  const state *s = context;
  if (omp_set_num_threads) omp_set_num_threads(s->threads);
  dnnl_primitive_execute(s->conv, s->stream, s->arg_count, s->args);
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
