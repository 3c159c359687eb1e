/* map: activations, gates, scale and shift, and sums over planar rows that are in L1. There is one loop per function,
 * so no loop contains a switch; a gate keeps act2 of CHUNK elements on the stack. Define HK_NAME, include a vocabulary,
 * then this. */
#include "cpu/ukernel.h"
#include "cpu/tmpl/common/actmath.tmpl.h"

enum { CHUNK = 64 };

/* The rational approximation of tanh that amp models are often trained with; error at most 3e-3. */
static inline v_f32 v_tanh_rational(v_f32 x) {
  const v_f32 m = v_abs(x), z = v_mul(x, x);
  const v_f32 c = v_set1(2.45550750702956f), d = v_set1(2.44506634652299f);
  const v_f32 inner = v_fma(v_set1(0.821226666969744f), m, v_set1(0.893229853513558f));
  const v_f32 top = v_mul(x, v_fma(inner, z, v_fma(c, m, c)));
  const v_f32 low = v_abs(v_fma(v_mul(v_set1(0.814642734961073f), x), m, x));
  return v_div(top, v_fma(v_add(d, z), low, d));
}

/* Outside lo..hi the function continues with another slope. */
static inline v_f32 v_hardtanh_leaky(v_f32 v, const hk_map_act *p) {
  const v_f32 lo = v_set1(p->a), hi = v_set1(p->b);
  const v_f32 below = v_fma(v_sub(v, lo), v_set1(p->slope_lo), lo);
  const v_f32 above = v_fma(v_sub(v, hi), v_set1(p->slope_hi), hi);
  return v_select(v_lt(v, lo), below, v_select(v_lt(hi, v), above, v));
}

enum { RATIONAL = 100, LEAKY_HARDTANH = 101 }; /* beyond hk_act */

static inline __attribute__((always_inline)) v_f32 one(int act, const hk_map_act *p, v_f32 v, v_f32 slope) {
  if (act == RATIONAL) return v_tanh_rational(v);
  if (act == LEAKY_HARDTANH) return v_hardtanh_leaky(v, p);
  return v_act((hk_act)act, v, p->a, p->b, slope);
}

/* y[t] = act(x[t]) for n elements, inlined with a constant act */
static inline __attribute__((always_inline)) void loop(int act, const hk_map_act *p, int64_t row, const float *x,
                                                       float *y, int64_t n) {
  const v_f32 slope = v_set1(act == HK_ACT_PRELU ? p->slopes[row] : 0.0f);
  int64_t t = 0;
  for (; t + HK_VW <= n; t += HK_VW) v_store(y + t, one(act, p, v_load(x + t), slope));
  if (t < n) {
    const v_mask m = v_tail(n - t);
    v_store_m(y + t, one(act, p, v_load_m(x + t, m), slope), m);
  }
}

static void act_row(const hk_map_act *p, int64_t row, const float *x, float *y, int64_t n) {
  int act = (int)p->act;
  if (act == HK_ACT_TANH && p->rational) act = RATIONAL;
  if (act == HK_ACT_HARDTANH && (p->slope_lo != 0.0f || p->slope_hi != 0.0f)) act = LEAKY_HARDTANH;
  switch (act) {
    case HK_ACT_RELU: loop(HK_ACT_RELU, p, row, x, y, n); return;
    case HK_ACT_CLIP: loop(HK_ACT_CLIP, p, row, x, y, n); return;
    case HK_ACT_HARDTANH: loop(HK_ACT_HARDTANH, p, row, x, y, n); return;
    case HK_ACT_LEAKY: loop(HK_ACT_LEAKY, p, row, x, y, n); return;
    case HK_ACT_PRELU: loop(HK_ACT_PRELU, p, row, x, y, n); return;
    case HK_ACT_SIGMOID: loop(HK_ACT_SIGMOID, p, row, x, y, n); return;
    case HK_ACT_SILU: loop(HK_ACT_SILU, p, row, x, y, n); return;
    case HK_ACT_TANH: loop(HK_ACT_TANH, p, row, x, y, n); return;
    case HK_ACT_GELU: loop(HK_ACT_GELU, p, row, x, y, n); return;
    case HK_ACT_GELU_TANH: loop(HK_ACT_GELU_TANH, p, row, x, y, n); return;
    case HK_ACT_HARDSWISH: loop(HK_ACT_HARDSWISH, p, row, x, y, n); return;
    case HK_ACT_SOFTSIGN: loop(HK_ACT_SOFTSIGN, p, row, x, y, n); return;
    case RATIONAL: loop(RATIONAL, p, row, x, y, n); return;
    case LEAKY_HARDTANH: loop(LEAKY_HARDTANH, p, row, x, y, n); return;
    default: loop(HK_ACT_NONE, p, row, x, y, n); return;
  }
}

static inline v_f32 get(const float *p, int64_t left) {
  return left >= HK_VW ? v_load(p) : v_load_m(p, v_tail(left));
}
static inline void put(float *p, v_f32 v, int64_t left) {
  if (left >= HK_VW) v_store(p, v);
  else v_store_m(p, v, v_tail(left));
}

/* w*act(x) + (1-w)*x is x + w*(act(x) - x) only up to rounding: written as defined. */
static void gate_row(const hk_map_args *a, int64_t row, const float *x, const float *x2, float *y, int64_t n) {
  float top[CHUNK], gate[CHUNK];
  for (int64_t s = 0; s < n; s += CHUNK) {
    const int64_t count = hk_min64(CHUNK, n - s);
    act_row(&a->act, row, x + s, top, count);
    act_row(&a->act2, row, x2 + s, gate, count);
    for (int64_t t = 0; t < count; t += HK_VW) {
      const v_f32 w = get(gate + t, count - t), u = get(top + t, count - t);
      v_f32 v = v_mul(w, u);
      if (a->op == HK_MAP_BLENDED) v = v_fma(v_sub(v_set1(1.0f), w), get(x + s + t, count - t), v);
      put(y + s + t, v, count - t);
    }
  }
}

static void scale_row(const float *x, const float *x2, const float *x3, float *y, int64_t n) {
  for (int64_t t = 0; t < n; t += HK_VW) {
    const v_f32 v = get(x + t, n - t), s = get(x2 + t, n - t);
    put(y + t, x3 ? v_fma(v, s, get(x3 + t, n - t)) : v_mul(v, s), n - t);
  }
}

static void add_row(const float *x, float beta, float *y, int64_t n) {
  const v_f32 factor = v_set1(beta);
  for (int64_t t = 0; t < n; t += HK_VW) put(y + t, v_fma(factor, get(x + t, n - t), get(y + t, n - t)), n - t);
}

void HK_NAME(const void *args) {
  const hk_map_args *a = args;
  for (int64_t r = 0; r < a->rows; r++) {
    const float *x = a->x + r * a->x_stride;
    float *y = a->y + r * a->y_stride;
    if (a->op == HK_MAP_SCALE) {
      scale_row(x, a->x2 + r * a->x2_stride, a->x3 ? a->x3 + r * a->x3_stride : NULL, y, a->n);
    } else if (a->op == HK_MAP_ACT) {
      act_row(&a->act, r, x, y, a->n);
    } else {
      gate_row(a, r, x, a->x2 + r * a->x2_stride, y, a->n);
    }
    if (a->add) add_row(a->add + r * a->add_stride, a->beta, y, a->n);
    if (a->sum) add_row(y, 1.0f, a->sum + r * a->sum_stride, a->n);
  }
}
