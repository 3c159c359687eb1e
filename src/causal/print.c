/* One line that says what a call computes and by what, then the same of the gradient. */
#include "causal/causal.h"

static const char *packing_name(hk_causal_packing p) {
  return p == HK_CAUSAL_OFFSETS ? "offsets" : p == HK_CAUSAL_IDS ? "ids" : "batch";
}

static void print_call(hk_text *t, const hk_causal *k) {
  const hk_causal_desc *d = &k->d;
  hk_text_add(t, "causal n%lld c%lld l%lld w%lld", (long long)d->n, (long long)d->c, (long long)d->length,
              (long long)d->window);
  if (d->dilation > 1) hk_text_add(t, " d%lld", (long long)d->dilation);
  hk_text_add(t, " %s/%s/%s %s", hk_type_name(d->x_type), hk_type_name(d->f_type), hk_type_name(d->y_type),
              packing_name(d->packing));
  if (d->has_bias) hk_text_add(t, " bias");
  if (d->has_pre) hk_text_add(t, " pre");
  if (d->act) hk_text_add(t, " %s", hk_act_name(d->act));
  if (d->has_post) hk_text_add(t, " post");
  if (d->has_residual) hk_text_add(t, " residual");
  if (d->state_length)
    hk_text_add(t, " state=%lld:%s%s", (long long)d->state_length, hk_type_name(d->state_type), d->ring ? ":ring" : "");
  if (d->in_place) hk_text_add(t, " in_place");
}

static void print_gradient(hk_text *t, const hk_causal *k) {
  int64_t size, piece;
  if (!k->d.gradient) return;
  if (!k->back) {
    hk_text_add(t, "; gradient: ref");
    return;
  }
  hk_causal_back_fits(k, &size, &piece);
  hk_text_add(t, "; gradient: %s, %lld channels per piece, %lld tokens per tile", k->back->name, (long long)piece,
              (long long)size);
}

hk_status hk_causal_print(const hk_causal *causal, char *buffer, size_t size, size_t *length) {
  if (!causal) return hk_fail(HK_INVALID, "causal is NULL");
  if (!buffer && size) return hk_fail(HK_INVALID, "buffer is NULL, size is %zu", size);
  hk_text t = {buffer, size, 0};
  print_call(&t, causal);
  if (causal->o.device == HK_CUDA) {
    char chosen[160];
    hk_cu_causal_print(&causal->cuda, chosen, sizeof chosen);
    hk_text_add(&t, ": %s", chosen);
  } else {
    if (causal->way == HK_CAUSAL_REF) hk_text_add(&t, ": ref");
    else hk_text_add(&t, ": %s, %lld channels per piece", causal->kernel->name, (long long)causal->piece);
    hk_text_add(&t, ", %d threads", causal->threads);
    print_gradient(&t, causal);
  }
  if (length) *length = t.length;
  return HK_OK;
}
