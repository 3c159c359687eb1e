/* Problems from the usual arguments: dense layouts, torch-style descriptions, XLA dimension numbers, padding rules.
 * Helpers refuse what torch refuses (a window larger than the padded input, negative padding); hk_problem_check allows
 * all that spec.md allows. */
#include <string.h>

#include "core/core.h"

hk_status hk_problem_check(const hk_problem *p) {
  hk_geom g;
  return hk_geom_make(&g, p, false);
}

static void clear(hk_problem *p, int32_t rank) {
  memset(p, 0, sizeof *p);
  p->size = sizeof *p;
  p->rank = rank;
  p->feature_groups = p->batch_groups = 1;
  for (int d = 0; d < HK_MAX_RANK; d++) p->window[d] = p->stride[d] = p->dilation[d] = p->in_dilation[d] = 1;
}

/* Dense strides over (outer, channels, at): channel or space innermost. *total: elements, checked. */
static bool dense(hk_strides *s, hk_layout layout, int rank, int64_t outer, int64_t channels, const int64_t *at) {
  int64_t step = 1;
  memset(s, 0, sizeof *s);
  if (layout == HK_CHANNELS_LAST) {
    s->channel = 1;
    step = hk_max64(channels, 1);
  }
  for (int d = rank - 1; d >= 0; d--) {
    s->at[d] = step;
    if (!hk_mul_checked(step, hk_max64(at[d], 1), &step)) return false;
  }
  if (layout == HK_CHANNELS_FIRST) {
    s->channel = step;
    if (!hk_mul_checked(step, hk_max64(channels, 1), &step)) return false;
  }
  s->outer = step;
  return hk_mul_checked(step, hk_max64(outer, 1), &step);
}

/* Sizes without strides: what the dense helpers need of a problem. */
static hk_status sizes(const hk_problem *p, hk_geom *g) {
  hk_problem q;
  if (!(p = hk_take(p, &q, sizeof q, "problem"))) return HK_INVALID;
  if (p != &q) q = *p;
  const int64_t k = q.k;
  memset(&q.x, 0, sizeof q.x);
  memset(&q.f, 0, sizeof q.f);
  memset(&q.y, 0, sizeof q.y);
  q.k = 0; /* y is empty, so its strides are not judged */
  hk_status s = hk_geom_make(g, &q, false);
  if (s) return s;
  if (k < 0 || k % (q.feature_groups * q.batch_groups)) {
    q.k = k;
    return hk_geom_make(g, &q, false);
  }
  g->k = k / g->groups;
  return HK_OK;
}

/* The same for functions that write to the problem, which has to be whole for that. */
static hk_status sizes_to_write(const hk_problem *p, hk_geom *g) {
  const hk_status s = sizes(p, g);
  if (s || p->size == sizeof *p) return s;
  return hk_fail(HK_INVALID, "problem.size = %zu must be sizeof(hk_problem) = %zu here: its fields are written",
                 p->size, sizeof *p);
}

static hk_status overflow(const char *tensor) {
  return hk_fail(HK_INVALID, "the number of elements of %s overflows 63 bits", tensor);
}

hk_status hk_problem_dense_y(hk_problem *p, hk_layout layout, int64_t channels) {
  hk_geom g;
  const hk_status s = sizes_to_write(p, &g);
  if (s) return s;
  if (channels < 0) return hk_fail(HK_INVALID, "channels = %lld must be >= 0", (long long)channels);
  if (!dense(&p->y, layout, p->rank, g.n, channels, g.out + 3 - p->rank)) return overflow("y");
  p->y.group = g.groups > 1 && channels == p->k ? g.k * p->y.channel : 0;
  return HK_OK;
}

hk_status hk_problem_dense(hk_problem *p, hk_layout layout) {
  hk_geom g;
  const hk_status s = sizes_to_write(p, &g);
  if (s) return s;
  if (!dense(&p->x, layout, p->rank, p->n, p->c, p->in)) return overflow("x");
  if (!dense(&p->f, layout, p->rank, p->k, g.c, p->window)) return overflow("f");
  if (g.groups > 1) {
    p->x.group = g.batch_grouped ? g.n * p->x.outer : g.c * p->x.channel;
    p->f.group = g.k * p->f.outer;
  }
  return hk_problem_dense_y(p, layout, p->k);
}

/* Canonical strides of one tensor; at: its sizes in the three dimensions of a geometry. */
static void settle(hk_strides *s, int rank, const int64_t count[3], const int64_t *at) {
  hk_strides t = *s;
  const int lead = 3 - rank;
  for (int d = 0; d < 3; d++) t.at[d] = d < lead ? 0 : s->at[d - lead];
  hk_strides_settle(&t, count[0], count[1], count[2], at);
  *s = t;
  for (int d = 0; d < HK_MAX_RANK; d++) s->at[d] = d < rank ? t.at[d + lead] : 0;
}

void hk_problem_settle(hk_problem *p) {
  hk_geom g;
  if (sizes(p, &g)) return;
  settle(&p->x, p->rank, (const int64_t[]){g.groups, g.n, g.c}, g.in);
  settle(&p->f, p->rank, (const int64_t[]){g.groups, g.k, g.c}, g.win);
  /* under a gate, which a problem does not name, y.channel is the stride over the channels of all groups */
  const int64_t channels = g.groups > 1 && g.k == 1 ? g.groups : g.k;
  settle(&p->y, p->rank, (const int64_t[]){g.groups, g.n, channels}, g.out);
}

static bool strides_same(const hk_strides *a, const hk_strides *b) {
  return !memcmp(a, b, sizeof *a); /* eight-byte fields alone: no padding */
}

bool hk_problem_is_dense(const hk_problem *p, hk_layout layout) {
  hk_problem q = *p;
  if (hk_problem_dense(&q, layout)) return false;
  hk_problem_settle(&q);
  return strides_same(&q.x, &p->x) && strides_same(&q.f, &p->f) && strides_same(&q.y, &p->y);
}

bool hk_problem_alike(const hk_problem *first, const hk_problem *second) {
  hk_problem a = *first, b = *second;
  bool same = a.rank == b.rank && a.x_type == b.x_type && a.f_type == b.f_type && a.y_type == b.y_type && a.c == b.c &&
              a.k == b.k && a.feature_groups == b.feature_groups && a.batch_groups == b.batch_groups &&
              a.x_zero == b.x_zero && a.f_zero == b.f_zero && a.y_zero == b.y_zero;
  for (int d = 0; same && d < a.rank; d++)
    same = a.window[d] == b.window[d] && a.stride[d] == b.stride[d] && a.dilation[d] == b.dilation[d] &&
           a.in_dilation[d] == b.in_dilation[d] && !a.reverse[d] == !b.reverse[d];
  hk_problem_settle(&a), hk_problem_settle(&b);
  return same && strides_same(&a.f, &b.f);
}

hk_status hk_problem_pad(hk_problem *p, hk_padding padding) {
  hk_geom g;
  const hk_status s = sizes_to_write(p, &g);
  if (s) return s;
  const int lead = 3 - p->rank;
  for (int i = 0; i < p->rank; i++) {
    const int64_t reach = g.dil[i + lead] * (g.win[i + lead] - 1), span = g.in_span[i + lead], st = p->stride[i];
    int64_t lo = 0, hi = 0;
    if (padding == HK_PAD_SAME_UPPER || padding == HK_PAD_SAME_LOWER) {
      /* (out - 1)*stride + reach + 1 - span with out = ceil(span / stride); what the last window has of x is 1..stride
       * elements */
      const int64_t last = span ? span - (hk_ceil_div(span, st) - 1) * st : st;
      const int64_t all = hk_max64(0, reach + 1 - last);
      lo = padding == HK_PAD_SAME_UPPER ? all / 2 : all - all / 2;
      hi = all - lo;
    } else if (padding == HK_PAD_CAUSAL) {
      lo = reach;
    } else if (padding != HK_PAD_VALID) {
      return hk_fail(HK_INVALID, "padding = %d must be VALID, SAME_UPPER, SAME_LOWER or CAUSAL here", (int)padding);
    }
    p->pad_lo[i] = lo, p->pad_hi[i] = hi;
  }
  return HK_OK;
}

static int64_t or_one(int64_t v) { return v ? v : 1; }

static hk_status check_desc(const hk_conv_desc *d, hk_problem *p) {
  if (!p) return hk_fail(HK_INVALID, "problem is NULL");
  if (d->rank < 1 || d->rank > 3) return hk_fail(HK_INVALID, "rank = %d must be 1, 2 or 3", d->rank);
  if (d->layout != HK_CHANNELS_FIRST && d->layout != HK_CHANNELS_LAST)
    return hk_fail(HK_INVALID, "layout = %d must be HK_CHANNELS_FIRST or HK_CHANNELS_LAST", (int)d->layout);
  for (int i = 0; i < d->rank; i++)
    if (d->padding == HK_PAD_EXPLICIT && (d->pad_lo[i] < 0 || d->pad_hi[i] < 0))
      return hk_fail(HK_INVALID, "pad_lo[%d] = %lld, pad_hi[%d] = %lld must be >= 0", i, (long long)d->pad_lo[i], i,
                     (long long)d->pad_hi[i]);
  return HK_OK;
}

static void common(hk_problem *p, const hk_conv_desc *d) {
  clear(p, d->rank);
  p->x_type = d->x_type, p->f_type = d->f_type, p->y_type = d->y_type;
  p->n = d->n, p->c = d->c, p->k = d->k;
  p->feature_groups = or_one(d->groups);
  for (int i = 0; i < d->rank; i++) {
    p->in[i] = d->in[i], p->window[i] = d->window[i];
    p->stride[i] = or_one(d->stride[i]), p->dilation[i] = or_one(d->dilation[i]);
    if (d->padding == HK_PAD_EXPLICIT) p->pad_lo[i] = d->pad_lo[i], p->pad_hi[i] = d->pad_hi[i];
  }
}

hk_status hk_problem_conv(hk_problem *out, const hk_conv_desc *d) {
  hk_problem made, *p = &made; /* the caller's is written only when all is well */
  hk_conv_desc room;
  if (!(d = hk_take(d, &room, sizeof room, "desc"))) return HK_INVALID;
  hk_status s = check_desc(d, out);
  if (s) return s;
  common(p, d);
  if (d->padding != HK_PAD_EXPLICIT && (s = hk_problem_pad(p, d->padding))) return s;
  hk_geom g;
  if ((s = hk_problem_dense(p, d->layout)) || (s = hk_geom_make(&g, p, false))) return s;
  for (int i = 0; i < d->rank; i++) {
    const int c = i + 3 - d->rank;
    if (g.in[c] + g.lo[c] + g.hi[c] < g.dil[c] * (g.win[c] - 1) + 1)
      return hk_fail(HK_INVALID, "window[%d] = %lld with dilation %lld is larger than the padded input %lld", i,
                     (long long)g.win[c], (long long)g.dil[c], (long long)(g.in[c] + g.lo[c] + g.hi[c]));
  }
  *out = made;
  return HK_OK;
}

/* The transposed convolution is the input gradient of a forward one whose output is our input. */
hk_status hk_problem_conv_transpose(hk_problem *p, const hk_conv_desc *d) {
  hk_conv_desc room;
  if (!(d = hk_take(d, &room, sizeof room, "desc"))) return HK_INVALID;
  hk_status s = check_desc(d, p);
  if (s) return s;
  if (d->padding != HK_PAD_EXPLICIT && d->padding != HK_PAD_VALID)
    return hk_fail(HK_INVALID, "padding = %d must be EXPLICIT or VALID for a transposed convolution", (int)d->padding);
  hk_problem fwd;
  common(&fwd, d);
  fwd.c = d->k, fwd.k = d->c;
  fwd.x_type = d->y_type, fwd.y_type = d->x_type;
  for (int i = 0; i < d->rank; i++) {
    int64_t out, reach, far;
    const int64_t st = fwd.stride[i], extra = d->output_padding[i];
    if (d->in[i] < 0 || st < 1 || fwd.dilation[i] < 1 || fwd.window[i] < 1) {
      fwd.in[i] = d->in[i];
      return hk_problem_check(&fwd);
    }
    if (extra < 0 || (extra >= st && extra >= fwd.dilation[i]))
      return hk_fail(HK_INVALID, "output_padding[%d] = %lld must be >= 0 and below stride %lld or dilation %lld", i,
                     (long long)extra, (long long)st, (long long)fwd.dilation[i]);
    if (!hk_mul_checked(hk_max64(d->in[i], 1) - 1, st, &far) ||
        !hk_mul_checked(fwd.dilation[i], fwd.window[i] - 1, &reach) || !hk_add_checked(far, reach, &out) ||
        !hk_add_checked(out, 1 - fwd.pad_lo[i], &out) || !hk_add_checked(out, extra - fwd.pad_hi[i], &out))
      return hk_fail(HK_INVALID, "the output size of dimension %d overflows 63 bits", i);
    if (out <= 0)
      return hk_fail(HK_INVALID, "the output size %lld of dimension %d must be positive", (long long)out, i);
    fwd.in[i] = out;
    fwd.pad_hi[i] -= extra; /* so that the forward output is exactly our input */
  }
  if ((s = hk_problem_dense(&fwd, d->layout))) return s;
  return hk_problem_grad_input(&fwd, p);
}

hk_status hk_problem_output(const hk_problem *p, int64_t out[HK_MAX_RANK], int64_t *n_out) {
  hk_geom g;
  const hk_status s = sizes(p, &g);
  if (s) return s;
  for (int i = 0; out && i < p->rank; i++) out[i] = g.out[i + 3 - p->rank];
  if (n_out) *n_out = g.n;
  return HK_OK;
}

hk_status hk_geom_make_either(hk_geom *g, const hk_problem *p) {
  hk_problem room;
  if (!(p = hk_take(p, &room, sizeof room, "problem"))) return HK_INVALID;
  const hk_status s = hk_geom_make(g, p, false);
  if (!s || p->k % 2) return s;
  hk_geom gated;
  if (hk_geom_make(&gated, p, true)) return hk_geom_make(g, p, false); /* the sentence of the plain reading */
  *g = gated;
  return HK_OK;
}

hk_status hk_problem_work(const hk_problem *p, double *flops, double *bytes) {
  hk_geom g;
  const hk_status s = hk_geom_make_either(&g, p);
  if (s) return s;
  if (flops) *flops = g.flops;
  if (bytes) *bytes = g.bytes;
  return HK_OK;
}

hk_extent hk_extent_of(const hk_strides *s, int64_t groups, int64_t outer, int64_t channels, const int64_t *at) {
  const int64_t size[6] = {groups, outer, channels, at[0], at[1], at[2]};
  const int64_t step[6] = {s->group, s->outer, s->channel, s->at[0], s->at[1], s->at[2]};
  int64_t lo = s->offset, hi = s->offset;
  for (int i = 0; i < 6; i++) {
    if (size[i] == 0) return (hk_extent){0, 0};
    *(step[i] > 0 ? &hi : &lo) += (size[i] - 1) * step[i];
  }
  return (hk_extent){hi - lo + 1, -lo};
}

hk_status hk_problem_extents(const hk_problem *p, hk_extent *x, hk_extent *f, hk_extent *y) {
  hk_geom g;
  const hk_status s = hk_geom_make_either(&g, p);
  if (s) return s;
  const bool gated = g.y_channels != g.k * g.groups;
  if (x) *x = hk_extent_of(&g.x, g.groups, g.n, g.c, g.in);
  if (f) *f = hk_extent_of(&g.f, g.groups, g.k, g.c, g.win);
  if (y) *y = hk_extent_of(&g.y, gated ? 1 : g.groups, g.n, gated ? g.y_channels : g.k, g.out);
  return HK_OK;
}
