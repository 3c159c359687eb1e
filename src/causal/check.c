/* The rules of hk_causal_desc, and its defaults. Sizes stay in bounds in which no later product overflows: 2^48
 * elements per tensor, strides that reach 2^56. */
#include <stdlib.h>
#include <string.h>

#include "causal/causal.h"

#define MAX_COUNT ((int64_t)1 << 48)
#define MAX_REACH ((int64_t)1 << 56)
#define MAX_WINDOW 256

static hk_status check_type(const char *name, hk_type t) {
  if (t == HK_F32 || t == HK_F16 || t == HK_BF16) return HK_OK;
  const char *text = hk_type_name(t);
  return hk_fail(HK_INVALID, "desc.%s = %s must be f32, f16 or bf16", name, text ? text : "no hk_type value");
}

static hk_status check_at_least(const char *name, int64_t value, int64_t least) {
  if (value >= least && value <= MAX_COUNT) return HK_OK;
  return hk_fail(HK_INVALID, "desc.%s = %lld must be %lld to 2^48", name, (long long)value, (long long)least);
}

static hk_status check_sizes(hk_causal_desc *d) {
  hk_status s;
  if ((s = check_type("x_type", d->x_type)) || (s = check_type("f_type", d->f_type)) ||
      (s = check_type("y_type", d->y_type)) || (s = check_type("state_type", d->state_type)) ||
      (s = check_at_least("n", d->n, 0)) || (s = check_at_least("c", d->c, 0)) ||
      (s = check_at_least("length", d->length, 0)) || (s = check_at_least("longest", d->longest, 0)) ||
      (s = check_at_least("dilation", d->dilation, 0)) || (s = check_at_least("state_length", d->state_length, 0)))
    return s;
  if (d->window < 1 || d->window > MAX_WINDOW)
    return hk_fail(HK_INVALID, "desc.window = %lld must be 1 to %d taps", (long long)d->window, MAX_WINDOW);
  if (!d->dilation || d->window == 1) d->dilation = 1;
  if ((unsigned)d->packing > HK_CAUSAL_IDS)
    return hk_fail(HK_INVALID, "desc.packing = %d must be an hk_causal_packing value", (int)d->packing);
  if (d->longest && d->packing != HK_CAUSAL_OFFSETS)
    return hk_fail(HK_INVALID, "desc.longest = %lld needs packing = HK_CAUSAL_OFFSETS", (long long)d->longest);
  if (d->longest > d->length)
    return hk_fail(HK_INVALID, "desc.longest = %lld exceeds desc.length = %lld", (long long)d->longest,
                   (long long)d->length);
  if (!d->longest) d->longest = d->length;
  return HK_OK;
}

static hk_status check_act(const hk_causal_desc *d) {
  if ((unsigned)d->act > HK_ACT_USER) return hk_fail(HK_INVALID, "desc.act = %d must be an hk_act value", (int)d->act);
  if (d->act == HK_ACT_PRELU || d->act == HK_ACT_USER)
    return hk_fail(HK_UNSUPPORTED, "desc.act = %s is not supported: slopes and user functions need an hk_plan",
                   hk_act_name(d->act));
  if ((d->act == HK_ACT_CLIP || d->act == HK_ACT_HARDTANH) && !(d->a <= d->b))
    return hk_fail(HK_INVALID, "desc.a = %g and desc.b = %g, the bounds of act, must be in order", (double)d->a,
                   (double)d->b);
  return HK_OK;
}

static bool is_zero(const hk_causal_strides *s) { return !s->outer && !s->channel && !s->time; }

typedef struct axis {
  int64_t size, stride;
} axis;

/* Elements and reach stay below the bounds; strides over a size of 1 or 0 are never used and become 0. */
static hk_status check_reach(const char *name, axis a[3], hk_causal_strides *s) {
  int64_t total = 1, far, reach = 0;
  const bool empty = !a[0].size || !a[1].size || !a[2].size;
  for (int i = 0; i < 3; i++) {
    if (empty || a[i].size == 1) a[i].stride = 0;
    if (!hk_mul_checked(total, a[i].size, &total) || total > MAX_COUNT)
      return hk_fail(HK_INVALID, "the number of elements of %s exceeds 2^48", name);
    if (empty) continue;
    if (a[i].stride == INT64_MIN || !hk_mul_checked(a[i].size - 1, llabs(a[i].stride), &far) || far > MAX_REACH ||
        (reach += far) > MAX_REACH)
      return hk_fail(HK_INVALID, "the strides of %s reach beyond 2^56 elements (size %lld, stride %lld)", name,
                     (long long)a[i].size, (long long)a[i].stride);
  }
  *s = (hk_causal_strides){a[0].stride, a[1].stride, a[2].stride};
  return HK_OK;
}

/* Distinct places: each stride passes over all that smaller ones reach. */
static hk_status check_distinct(const char *name, const axis a[3]) {
  int order[3] = {0, 1, 2};
  for (int i = 0; i < 3; i++)
    for (int j = i + 1; j < 3; j++)
      if (llabs(a[order[j]].stride) < llabs(a[order[i]].stride)) {
        const int t = order[i];
        order[i] = order[j], order[j] = t;
      }
  int64_t below = 0;
  for (int i = 0; i < 3; i++) {
    const axis b = a[order[i]];
    if (b.size <= 1) continue;
    if (!a[0].size || !a[1].size || !a[2].size) return HK_OK;
    if (llabs(b.stride) <= below)
      return hk_fail(HK_INVALID,
                     "%s must address distinct elements: the stride %lld over size %lld falls within the %lld "
                     "elements of smaller strides",
                     name, (long long)b.stride, (long long)b.size, (long long)(below + 1));
    below += (b.size - 1) * llabs(b.stride);
  }
  return HK_OK;
}

static hk_status check_tensor(const char *name, const hk_causal_desc *d, hk_causal_strides *s, bool written) {
  axis a[3] = {{d->packing == HK_CAUSAL_OFFSETS ? 1 : d->n, s->outer}, {d->c, s->channel}, {d->length, s->time}};
  const hk_status status = check_reach(name, a, s);
  if (status || !written) return status;
  return check_distinct(name, a);
}

hk_status hk_causal_check_written(const hk_causal_desc *d, const char *name, hk_causal_strides *s) {
  return check_tensor(name, d, s, true);
}

hk_status hk_causal_check_dx(const hk_causal_desc *d, hk_causal_strides *dx) {
  if (is_zero(dx)) *dx = d->x;
  return check_tensor("dx_at", d, dx, true);
}

/* Fills strides; x's own default is [n][c][length]. */
static hk_status check_tensors(hk_causal_desc *d) {
  hk_status s;
  if (is_zero(&d->x)) {
    d->x = (hk_causal_strides){0, d->length, 1};
    if (d->packing != HK_CAUSAL_OFFSETS && !hk_mul_checked(d->c, d->length, &d->x.outer))
      return hk_fail(HK_INVALID, "the number of elements of x exceeds 2^48");
  }
  if (is_zero(&d->y)) d->y = d->x;
  if (is_zero(&d->pre)) d->pre = d->x;
  if (is_zero(&d->post)) d->post = d->x;
  if (is_zero(&d->residual)) d->residual = d->x;
  if ((s = check_tensor("x", d, &d->x, false)) || (s = check_tensor("y", d, &d->y, true)) ||
      (d->has_pre && (s = check_tensor("pre", d, &d->pre, false))) ||
      (d->has_post && (s = check_tensor("post", d, &d->post, false))) ||
      (d->has_residual && (s = check_tensor("residual", d, &d->residual, false))))
    return s;
  if (!d->f_channel && !d->f_tap) d->f_channel = d->window, d->f_tap = 1;
  axis f[3] = {{1, 0}, {d->c, d->f_channel}, {d->window, d->f_tap}};
  hk_causal_strides t;
  if ((s = check_reach("f", f, &t))) return s;
  d->f_channel = t.channel, d->f_tap = t.time;
  return HK_OK;
}

/* How many slots there are is not known: the first n are judged. */
static hk_status check_state(hk_causal_desc *d) {
  const int64_t reach = hk_causal_reach(d);
  if (!d->state_length) {
    if (d->ring) return hk_fail(HK_INVALID, "desc.ring needs a state: desc.state_length is 0");
    return HK_OK;
  }
  if (d->packing == HK_CAUSAL_IDS)
    return hk_fail(HK_UNSUPPORTED, "desc.state_length = %lld: packing by ids has no state; pack by offsets",
                   (long long)d->state_length);
  if (d->state_length < reach)
    return hk_fail(HK_INVALID, "desc.state_length = %lld must be at least dilation*(window-1) = %lld",
                   (long long)d->state_length, (long long)reach);
  if (is_zero(&d->state)) {
    d->state = (hk_causal_strides){0, d->state_length, 1};
    if (!hk_mul_checked(d->c, d->state_length, &d->state.outer))
      return hk_fail(HK_INVALID, "the number of elements of state exceeds 2^48");
  }
  const int64_t outer = d->state.outer;
  axis a[3] = {{d->n, outer}, {d->c, d->state.channel}, {d->state_length, d->state.time}};
  hk_status s = check_reach("state", a, &d->state);
  if (s || (s = check_distinct("state", a))) return s;
  if (outer > MAX_REACH >> 31 || outer < -(MAX_REACH >> 31))
    return hk_fail(HK_INVALID, "desc.state.outer = %lld reaches beyond 2^56 elements with 2^31 slots",
                   (long long)outer);
  d->state.outer = outer; /* one sequence may still have any slot */
  return HK_OK;
}

static hk_status check_ways(const hk_causal_desc *d) {
  if (d->in_place) {
    if (d->x_type != d->y_type)
      return hk_fail(HK_INVALID, "desc.in_place needs y_type to equal x_type: they are %s and %s",
                     hk_type_name(d->y_type), hk_type_name(d->x_type));
    if (memcmp(&d->x, &d->y, sizeof d->x)) return hk_fail(HK_INVALID, "desc.in_place needs y to have the strides of x");
    if (hk_causal_reach(d) > HK_CAUSAL_REACH)
      return hk_fail(HK_UNSUPPORTED, "desc.in_place supports dilation*(window-1) up to %d, it is %lld", HK_CAUSAL_REACH,
                     (long long)hk_causal_reach(d));
  }
  if (!d->gradient) return HK_OK;
  if (d->act != HK_ACT_NONE && d->act != HK_ACT_RELU && d->act != HK_ACT_SILU)
    return hk_fail(HK_UNSUPPORTED, "desc.gradient supports act none, relu and silu, not %s", hk_act_name(d->act));
  if (d->has_pre || d->has_post || d->has_residual)
    return hk_fail(HK_UNSUPPORTED, "desc.gradient does not support %s",
                   d->has_pre    ? "has_pre"
                   : d->has_post ? "has_post"
                                 : "has_residual");
  if (d->ring || d->has_skip)
    return hk_fail(HK_UNSUPPORTED, "desc.gradient does not support %s", d->ring ? "ring" : "has_skip");
  return HK_OK;
}

hk_status hk_causal_check(hk_causal_desc *d) {
  hk_status s;
  if ((s = check_sizes(d)) || (s = check_act(d)) || (s = check_tensors(d)) || (s = check_state(d))) return s;
  return check_ways(d);
}

hk_status hk_causal_check_options(const hk_options *o) {
  if (o->threads < 0 || o->threads > 4096)
    return hk_fail(HK_INVALID, "options.threads = %d must be 0 to 4096", o->threads);
  if ((unsigned)o->isa > HK_ISA_AMX)
    return hk_fail(HK_INVALID, "options.isa = %d must be an hk_isa value", (int)o->isa);
  if ((unsigned)o->device > HK_CUDA)
    return hk_fail(HK_INVALID, "options.device = %d must be an hk_device value", (int)o->device);
  if ((unsigned)o->denormals > HK_DENORMALS_FLUSH)
    return hk_fail(HK_INVALID, "options.denormals = %d must be an hk_denormals value", (int)o->denormals);
  return HK_OK;
}
