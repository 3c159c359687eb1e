/* The gradient of a call. With u = pre*x and e = post*dy, per channel: du[t] = sum over i of f[i]*e[t+i], df[i] = sum
 * over sequences and t of e[t]*u[t-i]; dx = du*pre, dpre = du*x, dpost = dy*conv(u). A block takes u at `step` tokens
 * and e at all of its positions from the same token on, so both sums are whole. The spectra of df are summed over
 * blocks and sequences in their order by one thread and transformed back once. */
#include <string.h>

#include "longconv/longconv.h"

typedef struct call {
  const hk_longconv *k;
  const hk_longconv_args *a;
  const hk_longconv_grads *g;
} call;

/* Row i of a group: du into slot->o, conv(u) into slot->v where dpost is wanted. */
static void run_row(const call *call, const hk_longconv_slot *slot, const float *h, float *sum, int64_t i) {
  const hk_longconv *k = call->k;
  const hk_longconv_shape *s = &k->shape;
  const hk_longconv_grads *g = call->g;
  const int64_t length = k->d.length, row = i * length;
  const bool conv = g->dpost && k->d.has_post;
  hk_longfft_args a = hk_longconv_kernel(k, slot, HK_LONGFFT_GRADIENT);
  a.g = slot->g, a.h = h, a.sum = sum;
  if (conv && s->blocks > 1) hk_longconv_row(k, slot, h, slot->u + row, slot->v + row);
  for (int64_t b = 0; b < s->blocks; b++) {
    const int64_t shift = b * s->step, some = s->blocks > 1 ? s->step : length;
    const int64_t last = hk_min64(2 * s->points, length - shift);
    if (sum || conv) a.x = (hk_longfft_row){slot->u + row, shift, 0, hk_min64(some, length - shift)};
    if (conv && s->blocks == 1) a.y = (hk_longfft_row){slot->v + row, 0, 0, length};
    a.dy = (hk_longfft_row){slot->w + row, shift, 0, last};
    if (g->dx || g->dpre) a.dx = (hk_longfft_row){slot->o + row, shift, 0, hk_min64(some, length - shift)};
    k->kernel->fn(&a);
  }
}

/* df of channel c from its summed spectrum. */
static void finish(const call *call, const hk_longconv_slot *slot, float *sum, int64_t c) {
  const hk_longconv *k = call->k;
  const hk_longconv_grads *g = call->g;
  const int64_t taps = k->shape.taps, window = k->d.window;
  float *df = g->df ? g->df + c * window : slot->filter;
  hk_longfft_args a = hk_longconv_kernel(k, slot, HK_LONGFFT_INVERSE);
  a.z = sum;
  a.y = (hk_longfft_row){df, 0, 0, g->df ? taps : 1};
  k->kernel->fn(&a);
  if (g->df) memset(df + taps, 0, (size_t)(window - taps) * sizeof *df);
  if (g->dskip) g->dskip[c] = df[0];
}

static hk_longconv_view view(const void *at, hk_type type, hk_causal_strides strides) {
  return (hk_longconv_view){(void *)(uintptr_t)at, type, strides};
}

static void store(const call *call, const hk_longconv_slot *slot, const hk_longconv_part *p) {
  const hk_longconv_desc *d = &call->k->d;
  const hk_longconv_grads *g = call->g;
  const hk_longconv_view pre = view(d->has_pre ? call->a->pre : NULL, d->x_type, d->pre);
  const hk_longconv_view x = view(call->a->x, d->x_type, d->x), dy = view(g->dy, d->y_type, d->y);
  const hk_longconv_view dx = view(g->dx, d->x_type, g->dx_at), dpre = view(g->dpre, d->x_type, g->dpre_at);
  const hk_longconv_view dpost = view(g->dpost, d->x_type, g->dpost_at);
  if (g->dx) hk_longconv_store(p, slot->o, &pre, &dx);
  if (g->dpre && d->has_pre) hk_longconv_store(p, slot->o, &x, &dpre);
  if (g->dpost && d->has_post) hk_longconv_store(p, slot->v, &dy, &dpost);
}

static void run_group(const void *context, const hk_longconv_slot *slot, hk_longconv_part p) {
  const call *call = context;
  const hk_longconv *k = call->k;
  const hk_longconv_desc *d = &k->d;
  const hk_longconv_args *a = call->a;
  const hk_longconv_grads *g = call->g;
  const int64_t z = 2 * k->shape.points;
  const bool filters = g->df || g->dskip;
  const hk_longconv_view x = view(a->x, d->x_type, d->x), dy = view(g->dy, d->y_type, d->y);
  const hk_longconv_view pre = view(d->has_pre ? a->pre : NULL, d->x_type, d->pre);
  const hk_longconv_view post = view(d->has_post ? a->post : NULL, d->x_type, d->post);
  if (!k->spectra) hk_longconv_filters(&p, a->f, a->skip, slot);
  for (p.s = 0; p.s < d->n; p.s++) {
    hk_longconv_load(&p, &x, &pre, slot->u, d->length);
    hk_longconv_load(&p, &dy, &post, slot->w, d->length);
    for (int64_t i = 0; i < p.count; i++) {
      float *sum = filters ? slot->sum + (k->kept > 1 ? i : 0) * z : NULL;
      if (sum && p.s == 0) memset(sum, 0, (size_t)z * sizeof *sum);
      run_row(call, slot, hk_longconv_spectrum(k, &p, slot, i), sum, i);
      if (sum && p.s == d->n - 1 && k->kept == 1) finish(call, slot, sum, p.c + i);
    }
    store(call, slot, &p);
  }
  for (int64_t i = 0; filters && k->kept > 1 && i < p.count; i++) finish(call, slot, slot->sum + i * z, p.c + i);
}

hk_status hk_longconv_gradient(const hk_longconv *conv, const hk_longconv_args *args, const hk_longconv_grads *grads) {
  hk_longconv_args args_room;
  hk_longconv_grads grads_room;
  if (!conv) return hk_fail(HK_INVALID, "conv is NULL");
  if (!(args = hk_take(args, &args_room, sizeof args_room, "args")) ||
      !(grads = hk_take(grads, &grads_room, sizeof grads_room, "grads")))
    return HK_INVALID;
  hk_longconv_grads g = *grads;
  const hk_status s = hk_longconv_check_grads(conv, args, &g);
  const hk_longconv_desc *d = &conv->d;
  if (s) return s;
  if (!d->n || !d->c || !d->length) { /* sums over nothing */
    if (conv->o.device == HK_CUDA && d->c && (g.df || g.dskip))
      return hk_fail(HK_UNSUPPORTED,
                     "grads.df of desc.n = %lld sequences of %lld tokens is zero, which CUDA has no "
                     "kernel to write: leave it out",
                     (long long)d->n, (long long)d->length);
    if (d->c && g.df) memset(g.df, 0, (size_t)(d->c * d->window) * sizeof(float));
    if (d->c && g.dskip) memset(g.dskip, 0, (size_t)d->c * sizeof(float));
    return HK_OK;
  }
  if (conv->o.device == HK_CUDA) return hk_cu_longconv_grad(&conv->cuda, d, args, &g);
  const call call = {conv, args, &g};
  hk_longconv_each(conv, args->workspace, 1, run_group, &call);
  return HK_OK;
}
