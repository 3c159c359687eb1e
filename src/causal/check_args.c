/* The rules of hk_causal_args and hk_causal_grads. On the CPU the tables of a call (slots, offsets, positions,
 * accepted) are read here once and refused where they point outside; on a device the host reads none of them. */
#include <stdlib.h>

#include "causal/causal.h"

static hk_status check_pointer(const char *name, const void *p, size_t bytes) {
  if (!p) return hk_fail(HK_INVALID, "%s is NULL", name);
  if ((uintptr_t)p & (bytes - 1)) return hk_fail(HK_INVALID, "%s must be aligned to its element size %zu", name, bytes);
  return HK_OK;
}

/* NULL is as good as any address for a tensor without elements, and for one that the description leaves out. */
static hk_status check_given(const char *name, bool wanted, const void *p, size_t bytes) {
  return wanted ? check_pointer(name, p, bytes) : HK_OK;
}

static hk_status check_tensors(const hk_causal_desc *d, const hk_causal_args *a) {
  const size_t xb = hk_type_bytes(d->x_type), fb = hk_type_bytes(d->f_type);
  const bool any = d->n && d->c && d->length;
  hk_status s;
  if ((s = check_given("args.x", any, a->x, xb)) || (s = check_given("args.f", any, a->f, fb)) ||
      (s = check_given("args.bias (desc.has_bias)", any && d->has_bias, a->bias, fb)) ||
      (s = check_given("args.pre (desc.has_pre)", any && d->has_pre, a->pre, xb)) ||
      (s = check_given("args.post (desc.has_post)", any && d->has_post, a->post, xb)) ||
      (s = check_given("args.residual (desc.has_residual)", any && d->has_residual, a->residual, xb)))
    return s;
  if (d->packing == HK_CAUSAL_OFFSETS && d->n &&
      (s = check_pointer("args.offsets (packing by offsets)", a->offsets, 4)))
    return s;
  if (d->packing == HK_CAUSAL_IDS && any && (s = check_pointer("args.ids (packing by ids)", a->ids, 4))) return s;
  const size_t sb = hk_type_bytes(d->state_type);
  if (!d->state_length && (a->state_in || a->state_out || a->has_state))
    return hk_fail(HK_INVALID, "args.%s needs desc.state_length, which is 0",
                   a->state_in    ? "state_in"
                   : a->state_out ? "state_out"
                                  : "has_state");
  if (a->state_in && (s = check_pointer("args.state_in", a->state_in, sb))) return s;
  if (a->state_out && (s = check_pointer("args.state_out", a->state_out, sb))) return s;
  return HK_OK;
}

static hk_status check_tables(const hk_causal_desc *d, const hk_causal_args *a) {
  if (d->has_skip && !a->slots_in && d->n)
    return hk_fail(HK_INVALID, "desc.has_skip needs args.slots_in, which is NULL");
  if (!d->state_length && !d->has_skip && (a->slots_in || a->slots_out))
    return hk_fail(HK_INVALID, "args.slots_in and slots_out need desc.state_length or desc.has_skip");
  if (d->ring && d->n && !a->positions) return hk_fail(HK_INVALID, "desc.ring needs args.positions, which is NULL");
  if (d->ring && a->accepted) return hk_fail(HK_INVALID, "args.accepted needs a linear state: desc.ring is set");
  if (!d->ring && a->positions) return hk_fail(HK_INVALID, "args.positions needs desc.ring");
  if (!a->accepted) return HK_OK;
  const int64_t kept = hk_max64(hk_causal_reach(d) - 1, 0);
  if (!d->state_length) return hk_fail(HK_INVALID, "args.accepted needs desc.state_length, which is 0");
  if (d->longest > d->state_length - kept)
    return hk_fail(HK_INVALID, "args.accepted: a state of %lld entries keeps %lld and takes %lld tokens, not %lld",
                   (long long)d->state_length, (long long)kept, (long long)(d->state_length - kept),
                   (long long)d->longest);
  return HK_OK;
}

static hk_status check_row(const char *name, int64_t s, int64_t value, int64_t lo, int64_t hi) {
  if (value >= lo && value <= hi) return HK_OK;
  return hk_fail(HK_INVALID, "args.%s[%lld] = %lld must be %lld to %lld", name, (long long)s, (long long)value,
                 (long long)lo, (long long)hi);
}

/* What the tables hold, on the CPU. */
static hk_status check_rows(const hk_causal_desc *d, const hk_causal_args *a) {
  hk_status status;
  for (int64_t s = 0; s < d->n; s++) {
    if (a->offsets && d->packing == HK_CAUSAL_OFFSETS) {
      const int64_t first = a->offsets[s], end = a->offsets[s + 1];
      if ((status = check_row("offsets", s, first, 0, d->length)) ||
          (status = check_row("offsets", s + 1, end, first, d->length)))
        return status;
      if (end - first > d->longest)
        return hk_fail(HK_INVALID, "args.offsets: sequence %lld has %lld tokens, desc.longest is %lld", (long long)s,
                       (long long)(end - first), (long long)d->longest);
    }
    if (a->slots_in && d->has_skip && a->slots_in[s] == d->skip) continue;
    if (a->slots_in && (status = check_row("slots_in", s, a->slots_in[s], 0, INT32_MAX))) return status;
    if (a->slots_out && !(d->has_skip && a->slots_out[s] == d->skip) &&
        (status = check_row("slots_out", s, a->slots_out[s], 0, INT32_MAX)))
      return status;
    if (a->positions && (status = check_row("positions", s, a->positions[s], 0, INT32_MAX))) return status;
    if (a->accepted && (status = check_row("accepted", s, a->accepted[s], 1, d->state_length - hk_causal_reach(d) + 1)))
      return status;
  }
  return HK_OK;
}

/* Whether delta = i*a + j*b + k*c for some |i| < the first size and so on; strides nest, as check.c has made sure, so
 * that each quotient has two candidates at most. */
static bool reaches(int64_t delta, const int64_t stride[3], const int64_t size[3], int level) {
  if (level == 3) return delta == 0;
  const int64_t step = stride[level];
  if (!step || size[level] <= 1) return reaches(delta, stride, size, level + 1);
  for (int64_t i = delta / step - 1; i <= delta / step + 1; i++)
    if (llabs(i) < size[level] && reaches(delta - i * step, stride, size, level + 1)) return true;
  return false;
}

static void swap_if_less(int64_t *stride, int64_t *size, int i, int j) {
  if (llabs(stride[i]) >= llabs(stride[j])) return;
  const int64_t t = stride[i], u = size[i];
  stride[i] = stride[j], size[i] = size[j];
  stride[j] = t, size[j] = u;
}

/* x and y with the same strides and element size share an element if their distance is a difference of places; with
 * other strides only equal addresses are found out. */
static hk_status check_overlap(const hk_causal_desc *d, const hk_causal_args *a) {
  const intptr_t bytes = (intptr_t)((uintptr_t)a->y - (uintptr_t)a->x), size = (intptr_t)hk_type_bytes(d->x_type);
  if (!d->n || !d->c || !d->length || (bytes == 0 && d->in_place)) return HK_OK;
  bool shared = bytes == 0;
  if (!shared && size == (intptr_t)hk_type_bytes(d->y_type) && d->x.outer == d->y.outer &&
      d->x.channel == d->y.channel && d->x.time == d->y.time && bytes % size == 0) {
    int64_t stride[3] = {d->x.outer, d->x.channel, d->x.time}, sizes[3] = {d->n, d->c, d->length};
    swap_if_less(stride, sizes, 0, 1);
    swap_if_less(stride, sizes, 1, 2);
    swap_if_less(stride, sizes, 0, 1);
    shared = reaches(bytes / size, stride, sizes, 0);
  }
  if (!shared) return HK_OK;
  if (bytes == 0) return hk_fail(HK_INVALID, "args.y equals args.x: set desc.in_place");
  return hk_fail(HK_INVALID, "args.y overlaps args.x, %lld bytes behind it", (long long)bytes);
}

hk_status hk_causal_check_args(const hk_causal *k, const hk_causal_args *a) {
  const hk_causal_desc *d = &k->d;
  hk_status s;
  const bool any = d->n && d->c && d->length;
  if ((s = check_tensors(d, a)) || (s = check_given("args.y", any, a->y, hk_type_bytes(d->y_type))) ||
      (s = check_tables(d, a)) || (s = check_overlap(d, a)))
    return s;
  return k->o.device == HK_CPU ? check_rows(d, a) : HK_OK;
}

hk_status hk_causal_check_grads(const hk_causal *k, const hk_causal_args *a, const hk_causal_grads *g) {
  const hk_causal_desc *d = &k->d;
  const bool any = d->n && d->c && d->length;
  const size_t sb = hk_type_bytes(d->state_type);
  hk_status s;
  if (!d->gradient) return hk_fail(HK_INVALID, "hk_causal_gradient needs a description with desc.gradient set");
  if (a->slots_in || a->slots_out || a->accepted)
    return hk_fail(HK_UNSUPPORTED, "args.%s: the gradient does not support it",
                   a->slots_in    ? "slots_in"
                   : a->slots_out ? "slots_out"
                                  : "accepted");
  if ((s = check_tensors(d, a)) || (s = check_tables(d, a)) ||
      (s = check_given("grads.dy", any, g->dy, hk_type_bytes(d->y_type))))
    return s;
  if (!d->state_length && (g->dstate_in || g->dstate_out))
    return hk_fail(HK_INVALID, "grads.%s needs desc.state_length, which is 0",
                   g->dstate_in ? "dstate_in" : "dstate_out");
  if ((g->dx && (s = check_pointer("grads.dx", g->dx, hk_type_bytes(d->x_type)))) ||
      (g->df && (s = check_pointer("grads.df", g->df, 4))) ||
      (g->dbias && (s = check_pointer("grads.dbias", g->dbias, 4))) ||
      (g->dstate_in && (s = check_pointer("grads.dstate_in", g->dstate_in, sb))) ||
      (g->dstate_out && (s = check_pointer("grads.dstate_out", g->dstate_out, sb))))
    return s;
  return k->o.device == HK_CPU ? check_rows(d, a) : HK_OK;
}
