/* XNNPACK, which knows channels-last only; weights [k][r][s][c] are packed by it before the clock starts. */
#include <math.h>
#include <pthreadpool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xnnpack.h>
#ifdef PEER_CPUINFO
#include <cpuinfo.h>
#endif

#include "plain.h"

/* XNNPACK may read this many bytes beyond its inputs, so it gets a copy of x with room behind it */
typedef struct state {
  xnn_operator_t op;
  pthreadpool_t pool;
  float *x;
} state;

static void destroy(void *context) {
  state *s = context;
  if (s->op) xnn_delete_operator(s->op);
  if (s->pool) pthreadpool_destroy(s->pool);
  free(s->x);
  free(s);
}

/* XNNPACK chooses kernels by what cpuinfo found, and no variable holds it: what HANKEL_PEER_ISA leaves out is taken
 * away from cpuinfo before XNNPACK looks. False where it would use more than asked and cannot be held. */
static bool hold(void) {
  const char *isa = getenv("HANKEL_PEER_ISA");
  if (!isa || strcmp(isa, "avx2") != 0) return true;
#if defined PEER_CPUINFO && defined __x86_64__
  if (!cpuinfo_initialize()) return false;
  cpuinfo_isa.avx512f = cpuinfo_isa.avx512cd = cpuinfo_isa.avx512dq = false;
  cpuinfo_isa.avx512bw = cpuinfo_isa.avx512vl = cpuinfo_isa.avx512vnni = cpuinfo_isa.avx512vbmi = false;
  return true;
#else
  return !__builtin_cpu_supports("avx512f");
#endif
}

static enum xnn_status build(state *s, const plain_conv *v, const hk_peer_job *job) {
  const size_t g = (size_t)v->groups, x_bytes = (size_t)(v->n * v->in[1] * v->in[2] * v->c) * sizeof(float);
  enum xnn_status e = xnn_initialize(NULL);
  if (e) return e;
  s->x = malloc(x_bytes + XNN_EXTRA_BYTES);
  if (!s->x) return xnn_status_out_of_memory;
  memcpy(s->x, job->x, x_bytes);
  if (job->threads > 1) s->pool = pthreadpool_create((size_t)job->threads);
  e = xnn_create_convolution2d_nhwc_f32((uint32_t)v->lo[1], (uint32_t)v->hi[2], (uint32_t)v->hi[1], (uint32_t)v->lo[2],
                                        (uint32_t)v->win[1], (uint32_t)v->win[2], (uint32_t)v->stride[1],
                                        (uint32_t)v->stride[2], (uint32_t)v->dil[1], (uint32_t)v->dil[2], (uint32_t)g,
                                        (size_t)v->c / g, (size_t)v->k / g, (size_t)v->c, (size_t)v->k, job->f,
                                        v->bias ? job->bias : NULL, v->relu ? 0.0f : -INFINITY, INFINITY, 0, &s->op);
  if (e) return e;
  return xnn_setup_convolution2d_nhwc_f32(s->op, (size_t)v->n, (size_t)v->in[1], (size_t)v->in[2], s->x, job->y,
                                          s->pool);
}

static void *make(const hk_peer_job *job, char *why) {
  plain_conv v;
  if (!plain_read_f32(job, &v, why)) return NULL;
  if (!v.last) {
    snprintf(why, PEER_WHY, "channels-last only");
    return NULL;
  }
  if (!hold()) {
    snprintf(why, PEER_WHY, "cannot be held to AVX2 without cpuinfo's header (libcpuinfo-dev)");
    return NULL;
  }
  state *s = calloc(1, sizeof *s);
  if (!s) return NULL;
  const enum xnn_status e = build(s, &v, job);
  if (!e) return s;
  snprintf(why, PEER_WHY, "XNNPACK status %d", (int)e);
  destroy(s);
  return NULL;
}

static void run(void *context) {
  const state *s = context;
  xnn_run_operator(s->op, s->pool);
}

__attribute__((visibility("default"))) const hk_peer *hk_peer_get(void) {
  static const hk_peer peer = {.version = HK_PEER_VERSION,
                               .name = "xnnpack",
                               .about = "XNNPACK (the system's)",
                               .make = make,
                               .run = run,
                               .destroy = destroy};
  return &peer;
}
