/* The canonical geometry of a problem: the one place where the size formulas live, in checked 64-bit arithmetic.
 * Refuses what spec.md calls wrong, naming field, value and rule. */
#include <stdlib.h>
#include <string.h>

#include "core/core.h"

#define MAX_REACH (INT64_MAX / 16) /* elements: leaves room for the widest type in bytes */
/* Elements of a tensor, output positions, products of a sum. With 2^48 the bytes of any packed or padded copy fit 63
 * bits, so that nothing built on a geometry can wrap. */
#define MAX_COUNT (INT64_C(1) << 48)
#define MAX_IDLE (1 << 20) /* largest factor that is kept where it is multiplied by 0 alone */

bool hk_add_checked(int64_t a, int64_t b, int64_t *r) { return !__builtin_add_overflow(a, b, r); }
bool hk_mul_checked(int64_t a, int64_t b, int64_t *r) { return !__builtin_mul_overflow(a, b, r); }

static hk_status at_least(const char *field, int d, int64_t value, int64_t least) {
  if (value >= least) return HK_OK;
  if (d < 0) return hk_fail(HK_INVALID, "%s = %lld must be >= %lld", field, (long long)value, (long long)least);
  return hk_fail(HK_INVALID, "%s[%d] = %lld must be >= %lld", field, d, (long long)value, (long long)least);
}

static hk_status check_types(const hk_problem *p, hk_geom *g) {
  const hk_type x = p->x_type, f = p->f_type, y = p->y_type;
  if (!hk_type_valid(x) || !hk_type_valid(f) || !hk_type_valid(y))
    return hk_fail(HK_INVALID, "x_type = %d, f_type = %d, y_type = %d must be hk_type values", x, f, y);
  if (x == HK_S32 || f == HK_S32)
    return hk_fail(HK_INVALID, "x_type = %s, f_type = %s: s32 is a type of y only", hk_type_name(x), hk_type_name(f));
  if (hk_type_is_int8(x) != hk_type_is_int8(f))
    return hk_fail(HK_INVALID, "x_type = %s, f_type = %s must both be int8 or both float", hk_type_name(x),
                   hk_type_name(f));
  const bool integer = hk_type_is_int8(x);
  if (y == HK_S32 && !integer) return hk_fail(HK_INVALID, "y_type = s32 needs int8 x and f, not %s", hk_type_name(x));
  if (!integer && (p->x_zero || p->f_zero))
    return hk_fail(HK_INVALID, "x_zero = %d, f_zero = %d must be 0 for x_type = %s", p->x_zero, p->f_zero,
                   hk_type_name(x));
  if (p->y_zero && !hk_type_is_int8(y))
    return hk_fail(HK_INVALID, "y_zero = %d must be 0 for y_type = %s", p->y_zero, hk_type_name(y));
  const struct {
    const char *name;
    int32_t zero;
    hk_type t;
  } z[] = {{"x_zero", p->x_zero, x}, {"f_zero", p->f_zero, f}, {"y_zero", p->y_zero, y}};
  for (int i = 0; i < 3; i++) {
    const int lo = z[i].t == HK_U8 ? 0 : -128, hi = z[i].t == HK_U8 ? 255 : 127;
    if (hk_type_is_int8(z[i].t) && (z[i].zero < lo || z[i].zero > hi))
      return hk_fail(HK_INVALID, "%s = %d must be in %d..%d for %s", z[i].name, z[i].zero, lo, hi,
                     hk_type_name(z[i].t));
  }
  g->x_type = x, g->f_type = f, g->y_type = y;
  g->x_zero = p->x_zero, g->f_zero = p->f_zero, g->y_zero = p->y_zero;
  g->acc_type = integer ? HK_S32 : (x == HK_F64 || f == HK_F64 || y == HK_F64) ? HK_F64 : HK_F32;
  return HK_OK;
}

static hk_status check_groups(const hk_problem *p, hk_geom *g) {
  hk_status s;
  if ((s = at_least("n", -1, p->n, 0)) || (s = at_least("c", -1, p->c, 0)) || (s = at_least("k", -1, p->k, 0)) ||
      (s = at_least("feature_groups", -1, p->feature_groups, 1)) ||
      (s = at_least("batch_groups", -1, p->batch_groups, 1)))
    return s;
  const int64_t fg = p->feature_groups, bg = p->batch_groups;
  if (fg > 1 && bg > 1)
    return hk_fail(HK_INVALID, "feature_groups = %lld and batch_groups = %lld: at most one may exceed 1", (long long)fg,
                   (long long)bg);
  const struct {
    const char *size, *groups;
    int64_t v, by;
  } rule[] = {{"c", "feature_groups", p->c, fg},
              {"k", "feature_groups", p->k, fg},
              {"n", "batch_groups", p->n, bg},
              {"k", "batch_groups", p->k, bg}};
  for (int i = 0; i < 4; i++)
    if (rule[i].v % rule[i].by)
      return hk_fail(HK_INVALID, "%s = %lld must be a multiple of %s = %lld", rule[i].size, (long long)rule[i].v,
                     rule[i].groups, (long long)rule[i].by);
  g->groups = fg * bg;
  g->batch_grouped = bg > 1;
  g->n = p->n / bg, g->c = p->c / fg, g->k = p->k / g->groups;
  return HK_OK;
}

static hk_status too_far(const char *what, int d) {
  return hk_fail(HK_INVALID, "%s of dimension %d overflows 63 bits", what, d);
}

/* one spatial dimension; i indexes the problem, d the canonical three */
static hk_status check_dimension(const hk_problem *p, hk_geom *g, int i, int d) {
  hk_status s;
  if ((s = at_least("in", i, p->in[i], 0)) || (s = at_least("window", i, p->window[i], 1)) ||
      (s = at_least("stride", i, p->stride[i], 1)) || (s = at_least("dilation", i, p->dilation[i], 1)) ||
      (s = at_least("in_dilation", i, p->in_dilation[i], 1)))
    return s;
  g->in[d] = p->in[i], g->win[d] = p->window[i], g->stride[d] = p->stride[i];
  g->dil[d] = p->dilation[i], g->in_dil[d] = p->in_dilation[i];
  g->lo[d] = p->pad_lo[i], g->hi[d] = p->pad_hi[i];
  int64_t span = 0, reach, padded;
  if (g->in[d] && (!hk_mul_checked(g->in_dil[d], g->in[d] - 1, &span) || !hk_add_checked(span, 1, &span)))
    return too_far("in_dilation*(in-1)+1", i);
  g->in_span[d] = span;
  if (!hk_mul_checked(g->dil[d], g->win[d] - 1, &reach) || !hk_add_checked(reach, 1, &reach))
    return too_far("dilation*(window-1)+1", i);
  if (!hk_add_checked(span, g->lo[d], &padded) || !hk_add_checked(padded, g->hi[d], &padded))
    return too_far("in + pad_lo + pad_hi", i);
  g->out[d] = padded < reach || padded == 0 ? 0 : (padded - reach) / g->stride[d] + 1;
  /* positions p*stride + s*dilation - lo must be exact for every p and s */
  int64_t far = 0;
  if (g->out[d] && (!hk_mul_checked(g->out[d] - 1, g->stride[d], &far) || !hk_add_checked(far, reach, &far)))
    return too_far("(out-1)*stride + dilation*(window-1)", i);
  if (far > MAX_REACH || g->lo[d] > MAX_REACH || g->lo[d] < -MAX_REACH)
    return too_far("(out-1)*stride + dilation*(window-1) - pad_lo", i);
  /* a factor that is multiplied by 0 alone may be as large as 2^63 - 1; a harmless one in its place cannot overflow
   * later */
  if (g->out[d] <= 1 && g->stride[d] > MAX_IDLE) g->stride[d] = 1;
  if (g->win[d] == 1 && g->dil[d] > MAX_IDLE) g->dil[d] = 1;
  if (g->in[d] <= 1 && g->in_dil[d] > MAX_IDLE) g->in_dil[d] = 1;
  return HK_OK;
}

typedef struct axis {
  int64_t size, stride;
} axis;

/* Product of sizes, reach of strides and offset stay inside 63 bits. Empty tensors are never addressed. */
static hk_status check_tensor(const char *name, const axis *a, int count, int64_t offset) {
  int64_t total = 1, lo = 0, hi = 0;
  for (int i = 0; i < count; i++)
    if (a[i].size == 0) return HK_OK;
  for (int i = 0; i < count; i++) {
    int64_t far;
    if (!hk_mul_checked(total, a[i].size, &total) || total > MAX_COUNT)
      return hk_fail(HK_INVALID, "the number of elements of %s exceeds 2^48", name);
    if (a[i].size > 1) {
      if (!hk_mul_checked(a[i].size - 1, a[i].stride, &far) || far > MAX_REACH || far < -MAX_REACH ||
          !hk_add_checked(far > 0 ? hi : lo, far, far > 0 ? &hi : &lo))
        return hk_fail(HK_INVALID, "the strides of %s reach beyond 63 bits (size %lld, stride %lld)", name,
                       (long long)a[i].size, (long long)a[i].stride);
    }
  }
  if (offset > MAX_REACH || offset < -MAX_REACH || hi > MAX_REACH || lo < -MAX_REACH)
    return hk_fail(HK_INVALID, "the strides of %s reach beyond 63 bits (offset %lld)", name, (long long)offset);
  return HK_OK;
}

static hk_status check_aligned(const char *name, const void *p, size_t bytes) {
  if (((uintptr_t)p & (bytes - 1)) == 0) return HK_OK;
  return hk_fail(HK_INVALID, "weights.%s must be aligned to its element size %zu", name, bytes);
}

hk_status hk_weights_check(const hk_geom *g, const hk_weights *w) {
  const size_t real = g->acc_type == HK_F64 ? 8 : 4;
  hk_status s;
  if ((s = check_aligned("f", w->f, hk_type_bytes(g->f_type))) || (s = check_aligned("scale", w->scale, real)) ||
      (s = check_aligned("bias", w->bias, real)) || (s = check_aligned("slopes", w->slopes, real)))
    return s;
  return check_aligned("f_zero", w->f_zero, sizeof *w->f_zero);
}

static int by_stride_down(const void *a, const void *b) {
  const int64_t x = ((const axis *)a)->stride, y = ((const axis *)b)->stride;
  return x < y ? 1 : x > y ? -1 : 0;
}

/* Looks for integers d_i, |d_i| < size_i, not all zero, with rest + sum d_i*stride_i = 0: two elements on one place.
 * reach[i]: how far axes i.. can go. Gives up (as if found) when *steps runs out. */
static bool collide(const axis *a, const int64_t *reach, int count, int i, int64_t rest, bool any, int *steps) {
  if (--*steps < 0) return true;
  if (i == count) return any && rest == 0;
  const int64_t s = a[i].stride, below = reach[i + 1];
  int64_t lo = -(a[i].size - 1), hi = a[i].size - 1;
  const int64_t from = (-rest - below) / s - 1, to = (-rest + below) / s + 1;
  if (!any && lo < 0) lo = 0; /* d and -d are the same collision */
  if (from > lo) lo = from;
  if (to < hi) hi = to;
  for (int64_t d = lo; d <= hi; d++) {
    const int64_t r = rest + d * s;
    if (r > below || r < -below) continue;
    if (collide(a, reach, count, i + 1, r, any || d != 0, steps)) return true;
  }
  return false;
}

static hk_status check_distinct(const axis *all, int count) {
  axis a[6];
  int n = 0;
  for (int i = 0; i < count; i++)
    if (all[i].size == 0) return HK_OK;
  for (int i = 0; i < count; i++) {
    if (all[i].size == 1) continue;
    if (all[i].stride == 0)
      return hk_fail(HK_INVALID, "a stride of y is 0 over size %lld: y must address distinct elements",
                     (long long)all[i].size);
    a[n++] = (axis){all[i].size, llabs(all[i].stride)};
  }
  qsort(a, (size_t)n, sizeof a[0], by_stride_down);
  int64_t reach[7] = {0};
  for (int i = n - 1; i >= 0; i--) reach[i] = reach[i + 1] + (a[i].size - 1) * a[i].stride;
  bool nested = true;
  for (int i = 0; i < n; i++) nested = nested && a[i].stride > reach[i + 1];
  int steps = 200000;
  if (nested || !collide(a, reach, n, 0, 0, false, &steps)) return HK_OK;
  return hk_fail(HK_INVALID, "the strides of y make two elements share a place: y must address distinct elements");
}

static hk_status check_strides(hk_geom *g) {
  const axis x[6] = {{g->groups, g->x.group}, {g->n, g->x.outer},     {g->c, g->x.channel},
                     {g->in[0], g->x.at[0]},  {g->in[1], g->x.at[1]}, {g->in[2], g->x.at[2]}};
  const axis f[6] = {{g->groups, g->f.group}, {g->k, g->f.outer},      {g->c, g->f.channel},
                     {g->win[0], g->f.at[0]}, {g->win[1], g->f.at[1]}, {g->win[2], g->f.at[2]}};
  const bool gated = g->y_channels != g->k * g->groups;
  const axis y[6] = {{gated ? 1 : g->groups, g->y.group},
                     {g->n, g->y.outer},
                     {gated ? g->y_channels : g->k, g->y.channel},
                     {g->out[0], g->y.at[0]},
                     {g->out[1], g->y.at[1]},
                     {g->out[2], g->y.at[2]}};
  hk_status s;
  if ((s = check_tensor("x", x, 6, g->x.offset)) || (s = check_tensor("f", f, 6, g->f.offset)) ||
      (s = check_tensor("y", y, 6, g->y.offset)))
    return s;
  return check_distinct(y, 6);
}

/* The places p*stride + s*dilation - lo of x that windows reach, those in the padding too, count within 63 bits:
 * algorithms form such offsets before they know which of them lie inside. */
static hk_status check_windows(hk_geom *g) {
  for (int d = 0; d < 3; d++) {
    const int64_t step = llabs(g->x.at[d]), lo = llabs(g->lo[d]);
    int64_t far = 0, reach = 0;
    if (g->out[d] <= 1 && (!hk_mul_checked(g->stride[d], step, &far) || far > MAX_REACH)) g->stride[d] = 1;
    if (g->win[d] == 1 && (!hk_mul_checked(g->dil[d], step, &far) || far > MAX_REACH)) g->dil[d] = 1;
    if (!g->gm || !g->gk) continue;
    const int64_t windows =
        (g->out[d] - 1) * g->stride[d] + g->dil[d] * (g->win[d] - 1) + 1; /* check_dimension bounds it */
    if (!hk_mul_checked(windows, step, &far) || !hk_mul_checked(lo, step, &reach) || far > MAX_REACH ||
        reach > MAX_REACH)
      return hk_fail(HK_INVALID,
                     "the strides of x reach beyond 63 bits over its padding (dimension %d: stride %lld, pad_lo %lld)",
                     d - (3 - g->rank), (long long)g->x.at[d], (long long)g->lo[d]);
  }
  return HK_OK;
}

static hk_strides spread(const hk_strides *s, int rank) {
  hk_strides r = *s;
  for (int d = 0; d < 3; d++) r.at[d] = d < 3 - rank ? 0 : s->at[d - (3 - rank)];
  return r;
}

static hk_status derive(hk_geom *g) {
  if (!hk_mul_checked(g->win[0], g->win[1], &g->taps) || !hk_mul_checked(g->taps, g->win[2], &g->taps) ||
      g->taps > MAX_COUNT)
    return hk_fail(HK_INVALID, "the number of window taps exceeds 2^48");
  if (!hk_mul_checked(g->out[0], g->out[1], &g->pixels) || !hk_mul_checked(g->pixels, g->out[2], &g->pixels) ||
      !hk_mul_checked(g->n, g->pixels, &g->gm) || g->pixels > MAX_COUNT || g->gm > MAX_COUNT)
    return hk_fail(HK_INVALID, "the number of output positions exceeds 2^48");
  if (!hk_mul_checked(g->c, g->taps, &g->gk) || g->gk > MAX_COUNT) return hk_fail(HK_INVALID, "c*window exceeds 2^48");
  g->gn = g->k;
  g->flops = 2.0 * (double)g->groups * (double)g->gm * (double)g->gn * (double)g->gk;
  const double images = (double)g->n * (g->batch_grouped ? (double)g->groups : 1);
  const double channels = (double)g->c * (g->batch_grouped ? 1 : (double)g->groups);
  g->bytes =
      images * channels * (double)g->in[0] * (double)g->in[1] * (double)g->in[2] * (double)hk_type_bytes(g->x_type) +
      (double)g->groups * (double)g->k * (double)g->gk * (double)hk_type_bytes(g->f_type) +
      (double)g->gm * (double)g->y_channels * (double)hk_type_bytes(g->y_type);
  return HK_OK;
}

void hk_strides_settle(hk_strides *s, int64_t groups, int64_t outer, int64_t channels, const int64_t *at) {
  const bool empty = !groups || !outer || !channels || !at[0] || !at[1] || !at[2];
  if (empty || groups == 1) s->group = 0;
  if (empty || outer == 1) s->outer = 0;
  if (empty || channels == 1) s->channel = 1;
  for (int d = 0; d < 3; d++)
    if (empty || at[d] == 1) s->at[d] = d == 2;
  if (empty) s->offset = 0;
}

hk_status hk_geom_make(hk_geom *g, const hk_problem *p, bool gated) {
  hk_status s;
  hk_problem room;
  memset(g, 0, sizeof *g);
  if (!(p = hk_take(p, &room, sizeof room, "problem"))) return HK_INVALID;
  if (p->rank < 1 || p->rank > 3) return hk_fail(HK_INVALID, "rank = %d must be 1, 2 or 3", p->rank);
  g->rank = p->rank;
  if ((s = check_types(p, g)) || (s = check_groups(p, g))) return s;
  const int lead = 3 - p->rank;
  for (int d = 0; d < lead; d++)
    g->in[d] = g->in_span[d] = g->win[d] = g->out[d] = g->stride[d] = g->dil[d] = g->in_dil[d] = 1;
  for (int i = 0; i < p->rank; i++)
    if ((s = check_dimension(p, g, i, i + lead))) return s;
  g->x = spread(&p->x, p->rank), g->f = spread(&p->f, p->rank), g->y = spread(&p->y, p->rank);
  g->y_channels = gated ? p->k / 2 : p->k;
  if (gated && p->k % 2) return hk_fail(HK_INVALID, "k = %lld must be even for a gated epilogue", (long long)p->k);
  if ((s = derive(g)) || (s = check_strides(g))) return s;
  hk_strides_settle(&g->x, g->groups, g->n, g->c, g->in);
  hk_strides_settle(&g->f, g->groups, g->k, g->c, g->win);
  hk_strides_settle(&g->y, g->groups, g->n, g->y_channels == p->k ? g->k : g->y_channels, g->out);
  if ((s = check_windows(g))) return s;
  for (int i = 0; i < p->rank; i++)
    if (p->reverse[i] && g->win[i + lead] > 1) {
      const int d = i + lead;
      g->f.offset += (g->win[d] - 1) * g->f.at[d];
      g->f.at[d] = -g->f.at[d];
    }
  return HK_OK;
}

void hk_geom_valid(const hk_geom *g, int d, int64_t s, int64_t *lo, int64_t *hi) {
  const int64_t shift = hk_geom_source(g, d, 0, s);
  *lo = hk_max64(0, -hk_floor_div(shift, g->stride[d]));
  *hi = hk_min64(g->out[d], hk_floor_div(g->in[d] - 1 - shift, g->stride[d]) + 1);
  if (*hi < *lo) *hi = *lo;
}

bool hk_geom_leaves(const hk_geom *g, int d) {
  return g->in_dil[d] > 1 || g->lo[d] > 0 || hk_geom_source(g, d, g->out[d] - 1, g->win[d] - 1) >= g->in_span[d];
}

double hk_geom_inside(const hk_geom *g) {
  double share = 1;
  for (int d = 0; d < 3; d++) {
    const int64_t step = hk_ceil_div(g->win[d], 64);
    double inside = 0;
    for (int64_t s = 0; s < g->win[d]; s += step) {
      int64_t lo, hi;
      hk_geom_valid(g, d, s, &lo, &hi);
      inside += (double)(hi - lo);
    }
    share *= inside / ((double)g->out[d] * (double)hk_ceil_div(g->win[d], step));
  }
  return share;
}
