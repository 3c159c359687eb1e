/* Host side of the long convolution: cuts a description into transforms, and launches its passes chunk of channels by
 * chunk of channels, so that the spectra of one chunk stay in L2 between passes and the workspace is bounded. */
#include "cuda/longconv/longconv.h"

#include <stdio.h>
#include <string.h>

enum { FILTER, CONVOLVE, DX, DF };                              /* kernels of a block of threads, */
enum { COLUMNS, COLUMNS_BACK, ROWS, ROWS_ONCE, ROWS_GRADIENT }; /* and of tiles */
enum {
  LEAST = 10,
  MOST_BLOCK = 14,
  MOST = 21
};                                       /* log2 of points: at all, in a block of threads, by columns and rows */
#define CHUNK_BYTES (64.0 * 1024 * 1024) /* of spectra in the workspace: about the L2 of an H200 */
#define SHARED(points) ((int)(points) / 16 * 17 * 8)

/* By columns and rows a value passes through global memory three times instead of once. */
static double cost(int64_t blocks, int log) {
  return (double)blocks * (double)((int64_t)1 << log) * (log + 6.0) * (log > MOST_BLOCK ? 2.5 : 1.0);
}

static hk_status cut(hk_cu_longconv *k, const hk_longconv_desc *d) {
  const int64_t taps = hk_max64(1, hk_min64(d->window, d->length)), whole = d->length + taps - 1;
  hk_cu_long_call *c = &k->call;
  int best = 0;
  for (int log = LEAST; log <= MOST; log++) {
    const int64_t step = ((int64_t)2 << log) - taps + 1;
    const int64_t blocks = (int64_t)2 << log >= whole ? 1 : step < 1 ? 0 : hk_ceil_div(d->length, step);
    if (!blocks || (log > MOST_BLOCK && blocks > 1)) continue;
    if (best && cost(blocks, log) >= cost(c->blocks, best)) continue;
    best = log, c->blocks = (int)blocks, c->step = (int)step;
  }
  if (!best)
    return hk_fail(HK_UNSUPPORTED, "desc.length = %lld with %lld taps is too long for CUDA: 2^21 points",
                   (long long)d->length, (long long)taps);
  c->n = (int)d->n, c->taps = (int)taps, c->window = (int)d->window, c->before = c->blocks > 1 ? (int)taps - 1 : 0;
  k->n1 = best > MOST_BLOCK ? best / 2 : 0, k->n2 = best - k->n1;
  return HK_OK;
}

/* Spectra of a channel: h; by columns and rows also those of its sequences; with the gradient those of dy, and a sum.
 */
static double channel_bytes(const hk_cu_longconv *k, const hk_longconv_desc *d) {
  const double points = 8.0 * (double)((int64_t)1 << (k->n1 + k->n2)), rows = (double)d->n * k->call.blocks;
  const double z = k->n1 ? rows : 0;
  return points * (d->gradient ? 2.0 + z + rows : 1.0 + z);
}

static hk_status find(hk_cu_longconv *k) {
  static const char *const names[2][HK_CU_LONG_KERNELS] = {
      {"filter", "convolve", "dx", "df"}, {"columns", "columns_back", "rows", "rows_once", "rows_gradient"}};
  hk_status s = HK_OK;
  for (int i = 0; i < (k->n1 ? 5 : 4) && !s; i++) {
    char name[48];
    if (k->n1) snprintf(name, sizeof name, "hk_long_%s_%d_%d", names[1][i], k->n1, k->n2);
    else snprintf(name, sizeof name, "hk_long_%s_%d", names[0][i], k->n2);
    s = hk_cu_kernel_find("longconv", name, k->n1 ? SHARED(8192) : SHARED(1 << k->n2), &k->kernel[i]);
  }
  return s;
}

/* Channels of a chunk: what fits, in whole waves, since some launches have one block of threads per channel, and no
 * more than a launch can count. */
static void chunk(hk_cu_longconv *k, const hk_longconv_desc *d, int processors) {
  const double each = channel_bytes(k, d), tiles = k->n1 ? (double)(1 << (k->n2 - 3)) : k->call.blocks;
  int64_t channels = hk_max64(1, hk_min64(d->c, (int64_t)(CHUNK_BYTES / each)));
  if (channels < d->c && channels > processors && processors) channels -= channels % processors;
  k->channels = (int)hk_max64(1, hk_min64(channels, (int64_t)(1e9 / (tiles * (double)hk_max64(d->n, 1)))));
  k->bytes = (size_t)((double)k->channels * each);
}

hk_status hk_cu_longconv_make(hk_cu_longconv *k, const hk_longconv_desc *d) {
  hk_cu_device here;
  char why[HK_CU_REASON];
  memset(k, 0, sizeof *k);
  if (d->n > INT32_MAX / 4 || d->c > INT32_MAX / 4)
    return hk_fail(HK_UNSUPPORTED, "desc.n = %lld and desc.c = %lld: CUDA supports at most 2^29", (long long)d->n,
                   (long long)d->c);
  hk_status s = cut(k, d);
  if (!s) s = hk_cu_here(&here);
  if (s) return s;
  if (!hk_cu_has_code(&here, why)) return hk_fail(HK_UNSUPPORTED, "device: %s", why);
  chunk(k, d, here.processors);
  return find(k);
}

size_t hk_cu_longconv_workspace(const hk_cu_longconv *k) { return k->bytes; }
void hk_cu_longconv_print(const hk_cu_longconv *k, char *buffer, size_t size) {
  if (k->n1) snprintf(buffer, size, "cuda columns and rows, 2^%d x 2^%d points, chunk=%d", k->n1, k->n2, k->channels);
  else snprintf(buffer, size, "cuda block, 2^%d points, blocks=%d, chunk=%d", k->n2, k->call.blocks, k->channels);
}

static hk_cu_long_tensor tensor(const void *at, hk_type type, hk_causal_strides s) {
  return (hk_cu_long_tensor){(void *)(uintptr_t)at, s.outer, s.channel, s.time, (int)type};
}

/* A chunk's spectra in the workspace: h, of the gradient sum and g, then z. */
static void lay(const hk_cu_longconv *k, const hk_longconv_desc *d, void *workspace, hk_cu_long_call *c) {
  const int64_t one = (int64_t)k->channels * 2 << (k->n1 + k->n2);
  c->h = workspace;
  if (d->gradient) c->sum = c->h + one, c->g = c->sum + one;
  if (k->n1) c->z = d->gradient ? c->g + d->n * one : c->h + one;
}

static hk_status launch(const hk_cu_longconv *k, int kernel, const hk_cu_long_call *c, int64_t blocks, void *stream) {
  const int log = !k->n1 ? k->n2 : kernel >= ROWS ? k->n2 + HK_CU_LONG_ROWS(k->n2) : k->n1 + HK_CU_LONG_COLUMNS(k->n1);
  hk_cu_long_call copy = *c;
  return hk_cu_kernel_run_pdl(k->kernel[kernel], blocks, (1 << log) / HK_CU_LONG_VALUES, 1, SHARED(1 << log), stream,
                              &copy);
}
/* Tiles of n sequences of a chunk. */
static hk_status columns(const hk_cu_longconv *k, int kernel, const hk_cu_long_call *c, int n, void *stream) {
  return launch(k, kernel, c, ((int64_t)n * c->channels) << (k->n2 - HK_CU_LONG_COLUMNS(k->n1)), stream);
}
static hk_status rows(const hk_cu_longconv *k, int kernel, const hk_cu_long_call *c, int n, void *stream) {
  return launch(k, kernel, c, ((int64_t)n * c->channels) << (k->n1 - HK_CU_LONG_ROWS(k->n2)), stream);
}

/* Spectra of the filters of a chunk. */
static hk_status filters(const hk_cu_longconv *k, const hk_longconv_desc *d, const hk_longconv_args *a,
                         const hk_cu_long_call *chunk) {
  hk_cu_long_call c = *chunk;
  c.op = HK_CU_LONG_FILTER, c.length = c.taps;
  c.in = (hk_cu_long_rows){.a = tensor(a->f, d->f_type, (hk_causal_strides){0, d->f_channel, d->f_tap})};
  if (d->has_skip) c.skip = tensor(a->skip, d->f_type, (hk_causal_strides){0, 1, 0});
  if (!k->n1) return launch(k, FILTER, &c, c.channels, a->stream);
  c.z = c.h;
  const hk_status s = columns(k, COLUMNS, &c, 1, a->stream);
  return s || chunk->op == HK_CU_LONG_ONCE ? s : rows(k, ROWS, &c, 1, a->stream);
}

static hk_status convolve(const hk_cu_longconv *k, const hk_cu_long_call *chunk, void *stream) {
  hk_cu_long_call c = *chunk;
  c.op = HK_CU_LONG_CONVOLVE;
  if (!k->n1) return launch(k, CONVOLVE, &c, (int64_t)c.n * c.channels * c.blocks, stream);
  hk_status s = columns(k, COLUMNS, &c, c.n, stream);
  if (!s) s = rows(k, chunk->op == HK_CU_LONG_ONCE ? ROWS_ONCE : ROWS, &c, c.n, stream);
  return s ? s : columns(k, COLUMNS_BACK, &c, c.n, stream);
}

hk_status hk_cu_longconv_run(const hk_cu_longconv *k, const hk_longconv_desc *d, const hk_longconv_args *a) {
  hk_cu_long_call c = k->call;
  hk_status s = HK_OK;
  lay(k, d, a->workspace, &c);
  c.length = (int)d->length, c.op = k->n1 && d->n == 1 ? HK_CU_LONG_ONCE : HK_CU_LONG_CONVOLVE;
  c.in.a = tensor(a->x, d->x_type, d->x), c.out.a = tensor(a->y, d->y_type, d->y);
  if (d->has_pre) c.in.b = tensor(a->pre, d->x_type, d->pre);
  if (d->has_post) c.out.b = tensor(a->post, d->x_type, d->post);
  for (int64_t first = 0; first < d->c && !s; first += k->channels) {
    c.first = (int)first, c.channels = (int)hk_min64(k->channels, d->c - first);
    s = filters(k, d, a, &c);
    if (!s) s = convolve(k, &c, a->stream);
  }
  return s;
}

/* The gradient of a chunk by columns and rows. */
static hk_status gradient_shared(const hk_cu_longconv *k, const hk_cu_long_call *chunk, void *stream) {
  const bool filter = chunk->df || chunk->dskip, x = filter || chunk->dpost.a.at;
  const bool dx = chunk->out.a.at || chunk->out2.a.at;
  hk_cu_long_call c = *chunk;
  hk_status s = x ? columns(k, COLUMNS, &c, c.n, stream) : HK_OK;
  c.in = chunk->dy, c.z = chunk->g;
  if (!s) s = columns(k, COLUMNS, &c, c.n, stream);
  c = *chunk;
  if (!x) c.z = NULL;
  if (!s) s = rows(k, ROWS_GRADIENT, &c, 1, stream);
  c = *chunk, c.op = HK_CU_LONG_CONVOLVE, c.z = chunk->g;
  if (!s && dx) s = columns(k, COLUMNS_BACK, &c, c.n, stream);
  c.z = chunk->z, c.out = chunk->dpost, c.out2.a.at = NULL;
  if (!s && c.out.a.at) s = columns(k, COLUMNS_BACK, &c, c.n, stream);
  c.z = chunk->sum, c.op = HK_CU_LONG_FILTER;
  return s || !filter ? s : columns(k, COLUMNS_BACK, &c, 1, stream);
}

static hk_status gradient_block(const hk_cu_longconv *k, const hk_cu_long_call *chunk, void *stream) {
  const bool filter = chunk->df || chunk->dskip;
  hk_status s = HK_OK;
  if (filter || chunk->out.a.at || chunk->out2.a.at)
    s = launch(k, DX, chunk, (int64_t)chunk->n * chunk->channels * chunk->blocks, stream);
  if (!s && filter) s = launch(k, DF, chunk, chunk->channels, stream);
  if (s || !chunk->dpost.a.at) return s;
  hk_cu_long_call c = *chunk;
  c.out = chunk->dpost;
  return convolve(k, &c, stream);
}

hk_status hk_cu_longconv_grad(const hk_cu_longconv *k, const hk_longconv_desc *d, const hk_longconv_args *a,
                              const hk_longconv_grads *g) {
  hk_cu_long_call c = k->call;
  hk_status s = HK_OK;
  lay(k, d, a->workspace, &c);
  c.length = (int)d->length, c.df = g->df, c.dskip = g->dskip;
  c.in.a = tensor(a->x, d->x_type, d->x), c.dy.a = tensor(g->dy, d->y_type, d->y);
  if (d->has_pre) c.in.b = tensor(a->pre, d->x_type, d->pre);
  if (d->has_post) c.dy.b = tensor(a->post, d->x_type, d->post);
  c.out = (hk_cu_long_rows){tensor(g->dx, d->x_type, g->dx_at), c.in.b};
  c.out2 = (hk_cu_long_rows){tensor(g->dpre, d->x_type, g->dpre_at), c.in.a};
  c.dpost = (hk_cu_long_rows){tensor(g->dpost, d->x_type, g->dpost_at), c.dy.a};
  for (int64_t first = 0; first < d->c && !s; first += k->channels) {
    c.first = (int)first, c.channels = (int)hk_min64(k->channels, d->c - first);
    s = filters(k, d, a, &c);
    if (!s) s = k->n1 ? gradient_shared(k, &c, a->stream) : gradient_block(k, &c, a->stream);
  }
  return s;
}
