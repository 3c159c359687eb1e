/* The rules of hk_longconv_desc, args and grads. Those of tensors are hk_causal's. */
#include <stdlib.h>

#include "causal/causal.h"
#include "longconv/longconv.h"

#define MAX_REACH ((int64_t)1 << 56)

static hk_status check_filter(hk_longconv_desc *d) {
  int64_t channels, taps;
  if (d->length < 0 || d->length > HK_LONGCONV_MOST)
    return hk_fail(HK_INVALID, "desc.length = %lld must be 0 to 2^21 tokens", (long long)d->length);
  if (d->window < 1 || d->window > HK_LONGCONV_MOST)
    return hk_fail(HK_INVALID, "desc.window = %lld must be 1 to 2^21 taps", (long long)d->window);
  if (!d->f_channel && !d->f_tap) d->f_channel = d->window, d->f_tap = 1;
  if (d->f_channel == INT64_MIN || d->f_tap == INT64_MIN ||
      !hk_mul_checked(hk_max64(d->c - 1, 0), llabs(d->f_channel), &channels) ||
      !hk_mul_checked(d->window - 1, llabs(d->f_tap), &taps) || channels > MAX_REACH || taps > MAX_REACH)
    return hk_fail(HK_INVALID, "the strides of f reach beyond 2^56 elements (f_channel %lld, f_tap %lld)",
                   (long long)d->f_channel, (long long)d->f_tap);
  return HK_OK;
}

hk_status hk_longconv_check(hk_longconv_desc *d, hk_causal_desc *like) {
  *like = (hk_causal_desc){.size = sizeof *like,
                           .x_type = d->x_type,
                           .f_type = d->f_type,
                           .y_type = d->y_type,
                           .state_type = d->x_type,
                           .n = d->n,
                           .c = d->c,
                           .length = d->length,
                           .window = 1,
                           .x = d->x,
                           .y = d->y,
                           .pre = d->pre,
                           .post = d->post,
                           .has_pre = d->has_pre,
                           .has_post = d->has_post};
  const hk_status s = hk_causal_check(like);
  if (s) return s;
  d->x = like->x, d->y = like->y, d->pre = like->pre, d->post = like->post;
  return check_filter(d);
}

static hk_status check_pointer(const char *name, bool wanted, const void *p, hk_type type) {
  const size_t bytes = hk_type_bytes(type);
  if (!wanted) return HK_OK;
  if (!p) return hk_fail(HK_INVALID, "%s is NULL", name);
  if ((uintptr_t)p & (bytes - 1)) return hk_fail(HK_INVALID, "%s must be aligned to its element size %zu", name, bytes);
  return HK_OK;
}

static hk_status check_inputs(const hk_longconv *k, const hk_longconv_args *a) {
  const hk_longconv_desc *d = &k->d;
  const bool any = d->n && d->c && d->length, f = any && !k->spectra;
  const size_t need = hk_longconv_workspace(k);
  hk_status s;
  if ((s = check_pointer("args.x", any, a->x, d->x_type)) || (s = check_pointer("args.f", f, a->f, d->f_type)) ||
      (s = check_pointer("args.skip (desc.has_skip)", f && d->has_skip, a->skip, d->f_type)) ||
      (s = check_pointer("args.pre (desc.has_pre)", any && d->has_pre, a->pre, d->x_type)) ||
      (s = check_pointer("args.post (desc.has_post)", any && d->has_post, a->post, d->x_type)))
    return s;
  if (a->workspace_bytes < need)
    return hk_fail(HK_INVALID, "args.workspace_bytes = %zu must be at least hk_longconv_workspace() = %zu",
                   a->workspace_bytes, need);
  if (need && (!a->workspace || (uintptr_t)a->workspace % HK_ALIGN))
    return hk_fail(HK_INVALID, "args.workspace must be an address aligned to %d bytes", HK_ALIGN);
  return HK_OK;
}

hk_status hk_longconv_check_args(const hk_longconv *k, const hk_longconv_args *a) {
  const hk_status s = check_inputs(k, a);
  return s ? s : check_pointer("args.y", k->d.n && k->d.c && k->d.length, a->y, k->d.y_type);
}

/* An output that is wanted lies where it may, and like its input unless said otherwise. */
static hk_status check_output(const hk_longconv *k, const char *name, const void *p, const hk_causal_strides *as,
                              hk_causal_strides *at) {
  if (!p) return HK_OK;
  if (!at->outer && !at->channel && !at->time) *at = *as;
  const hk_status s = check_pointer(name, true, p, k->d.x_type);
  return s ? s : hk_causal_check_written(&k->like, name, at);
}

hk_status hk_longconv_check_grads(const hk_longconv *k, const hk_longconv_args *a, hk_longconv_grads *g) {
  const hk_longconv_desc *d = &k->d;
  hk_status s;
  if (!d->gradient) return hk_fail(HK_INVALID, "hk_longconv_gradient needs desc.gradient, which is 0");
  if ((s = check_inputs(k, a)) || (s = check_pointer("grads.dy", d->n && d->c && d->length, g->dy, d->y_type)) ||
      (s = check_output(k, "grads.dx", g->dx, &d->x, &g->dx_at)) ||
      (s = check_output(k, "grads.dpre", g->dpre, &d->pre, &g->dpre_at)) ||
      (s = check_output(k, "grads.dpost", g->dpost, &d->post, &g->dpost_at)) ||
      (s = check_pointer("grads.df", g->df, g->df, HK_F32)) ||
      (s = check_pointer("grads.dskip", g->dskip, g->dskip, HK_F32)))
    return s;
  if (g->dpre && !d->has_pre) return hk_fail(HK_INVALID, "grads.dpre needs desc.has_pre, which is 0");
  if (g->dpost && !d->has_post) return hk_fail(HK_INVALID, "grads.dpost needs desc.has_post, which is 0");
  if (g->dskip && !d->has_skip) return hk_fail(HK_INVALID, "grads.dskip needs desc.has_skip, which is 0");
  return HK_OK;
}
