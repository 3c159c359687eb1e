/* point: windows of one tap over few channels per group, in five ways; see hk_point_args.
 *
 * Define MR (most inputs) and HK_NAME, include a vocabulary, then this. The registers hold a set known at compile time:
 * the weights of a group (LINES), the weights of all phases and the lane indices (WOVEN), a vector of each input
 * (PLANES), or both (SQUARES); the rest is one broadcast or one permutation and one product per input. Outputs are
 * independent sums, so out-of-order execution overlaps them (Zen 4: 16 x 16 channels of 64 frames take 287 ns, 277 ns
 * at the FMA peak). */
#include "cpu/tmpl/common/unroll.tmpl.h"
#include "cpu/tmpl/depthwise/dwfuse.tmpl.h"

#define POINT_UNROLL 4 /* outputs per iteration */

typedef struct point_to {
  v_f32 lo, hi, bias;
} point_to;

HK_INLINE v_f32 point_clamp(const bool fused, v_f32 v, const point_to *to) {
  return fused ? v_min(to->hi, v_max(to->lo, v)) : v;
}

/* Returns the sum over inputs of v[i] * s[i]. */
HK_INLINE v_f32 point_dot(const int inputs, const bool fused, const v_f32 *v, const float *s, const point_to *to) {
  v_f32 sum = fused ? v_fma(v_bcast(s), v[0], to->bias) : v_mul(v_bcast(s), v[0]);
  HK_UNROLL for (int i = 1; i < inputs; i++) sum = v_fma(v_bcast(s + i), v[i], sum);
  return point_clamp(fused, sum, to);
}

/* ---- LINES */

HK_INLINE void lines_group(const int inputs, const bool fused, const hk_point_args *a, int64_t g) {
  const hk_point_shape *h = a->shape;
  const int64_t x_step = h->x_step, y_step = h->y_step, lanes = h->outputs;
  const float *x = a->x + g * inputs, *f = h->f + g * inputs * HK_VW;
  float *y = a->y + g * lanes;
  const v_mask m = v_tail(lanes);
  const point_to to = {v_set1(h->lo), v_set1(h->hi), fused && a->bias ? v_load_m(a->bias + g * lanes, m) : v_zero()};
  v_f32 w[MR];
  HK_UNROLL for (int i = 0; i < inputs; i++) {
    w[i] = v_load(f + i * HK_VW);
    HK_HOLD(w[i]);
  }
  /* Where masked stores are slow, store whole vectors and let the next pixel overwrite the excess lanes. */
  int64_t left = a->count, parts = 0;
  if (!HK_MASKS_FREE && lanes < HK_VW)
    parts = h->groups == 1 && y_step == lanes ? hk_ceil_div(HK_VW - lanes, lanes) : left;
  for (; left >= POINT_UNROLL + parts; left -= POINT_UNROLL) {
    HK_UNROLL for (int u = 0; u < POINT_UNROLL; u++, x += x_step, y += y_step) {
      HK_OPAQUE(x);
      const v_f32 v = point_dot(inputs, fused, w, x, &to);
      if (HK_MASKS_FREE) v_store_m(y, v, m);
      else v_store(y, v);
    }
  }
  HK_ROLLED for (; left > 0; left--, x += x_step, y += y_step) v_store_n(y, point_dot(inputs, fused, w, x, &to), lanes);
}

HK_INLINE void lines(const int inputs, const bool fused, const hk_point_args *a) {
  for (int64_t g = 0; g < a->shape->groups; g++) lines_group(inputs, fused, a, g);
}

/* ---- WOVEN */

typedef struct woven_set {
  v_f32 w[HK_POINT_WEIGHTS(HK_VREGS)];
  v_i32 index[HK_POINT_WOVEN_INPUTS];
  point_to to[HK_POINT_PHASES];
} woven_set;

/* own: one input and one output per group, so every lane reads itself. */
HK_INLINE v_f32 woven_block(const int inputs, const bool own, const bool fused, const woven_set *s, const int phase,
                            v_f32 x) {
  const v_f32 first = own ? x : v_permute(x, s->index[0]), *w = s->w + phase * inputs;
  v_f32 sum = fused ? v_fma(first, w[0], s->to[phase].bias) : v_mul(first, w[0]);
  HK_UNROLL for (int i = 1; i < inputs; i++) sum = v_fma(v_permute(x, s->index[i]), w[i], sum);
  return point_clamp(fused, sum, &s->to[0]);
}

HK_INLINE void woven_all(const int inputs, const int phases, const bool own, const bool fused, const hk_point_args *a) {
  const hk_point_shape *h = a->shape;
  const int64_t block = h->block, outputs = h->outputs, x_block = block * inputs, y_block = block * outputs;
  const int unroll = phases == 1 ? POINT_UNROLL : phases;
  const float *x = a->x;
  float *y = a->y;
  woven_set s;
  HK_UNROLL for (int i = 0; i < phases * inputs; i++) s.w[i] = v_load(h->f + i * HK_VW);
  HK_UNROLL for (int i = 0; i < inputs; i++) s.index[i] = v_load_i32(h->index + i * HK_VW);
  HK_UNROLL for (int i = 0; i < phases; i++)
    s.to[i] = (point_to){v_set1(h->lo), v_set1(h->hi), fused && a->bias ? v_load(a->bias + i * HK_VW) : v_zero()};
  /* Whole vectors are read and stored while they end inside x and y; the next block overwrites the excess. */
  const int64_t need = (unroll - 1) * block + h->vector_groups;
  int64_t left = a->count;
  for (; left >= need; left -= unroll * block) {
    HK_UNROLL for (int t = 0; t < unroll; t++, x += x_block, y += y_block) {
      HK_OPAQUE(x);
      v_store(y, woven_block(inputs, own, fused, &s, t % phases, v_load(x)));
    }
  }
  HK_ROLLED while (left > 0) {
    HK_UNROLL for (int t = 0; t < phases; t++, left -= block, x += x_block, y += y_block) {
      const int64_t groups = hk_min64(left, block);
      if (groups > 0)
        v_store_n(y, woven_block(inputs, own, fused, &s, t, v_load_n(x, groups * inputs)), groups * outputs);
    }
  }
}

HK_INLINE void woven_phases(const int inputs, const int phases, const bool fused, const hk_point_args *a) {
  if (phases * inputs > HK_POINT_WEIGHTS(HK_VREGS)) return; /* no plan uses it */
  if (inputs == 1 && a->shape->outputs == 1 && !fused) woven_all(1, phases, true, false, a);
  else woven_all(inputs, phases, false, fused, a);
}

HK_INLINE void woven(const int inputs, const bool fused, const hk_point_args *a) {
  switch (a->shape->phases) {
    case 1: woven_phases(inputs, 1, fused, a); return;
    case 2: woven_phases(inputs, 2, fused, a); return;
    case 3: woven_phases(inputs, 3, fused, a); return;
    default: woven_phases(inputs, 4, fused, a); return;
  }
}

/* ---- ROUNDS */

HK_INLINE void rounds(const int inputs, const bool fused, const hk_point_args *a) {
  if (inputs > HK_POINT_ROUND(HK_VREGS)) return; /* no plan uses it */
  const hk_point_shape h = *a->shape;
  woven_set s;
  HK_UNROLL for (int i = 0; i < inputs; i++) s.index[i] = v_load_i32(h.index + i * HK_VW);
  for (int64_t at = 0; at < h.x_step; at += HK_VW) {
    const float *x = a->x + at, *f = h.f + at * inputs;
    float *y = a->y + at;
    HK_UNROLL for (int i = 0; i < inputs; i++) {
      s.w[i] = v_load(f + i * HK_VW);
      HK_HOLD(s.w[i]);
    }
    s.to[0] = (point_to){v_set1(h.lo), v_set1(h.hi), fused && a->bias ? v_load(a->bias + at) : v_zero()};
    int64_t left = a->count;
    for (; left >= POINT_UNROLL; left -= POINT_UNROLL) {
      HK_UNROLL for (int t = 0; t < POINT_UNROLL; t++, x += h.x_step, y += h.x_step)
        v_store(y, woven_block(inputs, false, fused, &s, 0, v_load(x)));
    }
    HK_ROLLED for (; left > 0; left--, x += h.x_step, y += h.x_step)
      v_store(y, woven_block(inputs, false, fused, &s, 0, v_load(x)));
  }
}

/* ---- PLANES */

/* One vector of positions of a group; whole: it has all its lanes. */
HK_INLINE void planes_vector(const int inputs, const bool fused, const bool whole, const hk_point_shape *h,
                             const float *x, const float *f, const float *bias, float *y, int64_t lanes) {
  point_to to = {v_set1(h->lo), v_set1(h->hi), v_zero()};
  v_f32 v[MR];
  HK_UNROLL for (int i = 0; i < inputs; i++, x += h->x_step) {
    HK_OPAQUE(x);
    v[i] = whole ? v_load(x) : v_load_n(x, lanes);
    HK_HOLD(v[i]);
  }
  const float *end = f + inputs * h->outputs;
  do {
    if (fused && bias) to.bias = v_bcast(bias++);
    const v_f32 sum = point_dot(inputs, fused, v, f, &to);
    if (whole) v_store(y, sum);
    else v_store_n(y, sum, lanes);
    f += inputs;
    y += h->y_step;
  } while (f < end);
}

HK_INLINE void planes(const int inputs, const bool fused, const hk_point_args *a) {
  const hk_point_shape h =
      *a->shape; /* a copy, since the compiler must assume that the stores below alias the original */
  const int64_t x_group = inputs * h.x_step, y_group = h.outputs * h.y_step, count = a->count;
  const float *x = a->x, *f = h.f, *bias = a->bias;
  float *y = a->y;
  for (int64_t g = h.groups; g > 0; g--, x += x_group, y += y_group, f += inputs * h.outputs) {
    int64_t t = 0;
    for (; t + HK_VW <= count; t += HK_VW) planes_vector(inputs, fused, true, &h, x + t, f, bias, y + t, HK_VW);
    if (t < count) planes_vector(inputs, fused, false, &h, x + t, f, bias, y + t, count - t);
    if (fused && bias) bias += h.outputs;
  }
}

/* ---- SQUARES */

/* One vector of positions, with all of a group's weights in registers. */
HK_INLINE void square_vector(const int size, const bool whole, const hk_point_shape *h, const v_f32 *w, const float *x,
                             float *y, int64_t lanes) {
  v_f32 v[4];
  HK_UNROLL for (int i = 0; i < size; i++)
    v[i] = whole ? v_load(x + i * h->x_step) : v_load_n(x + i * h->x_step, lanes);
  HK_UNROLL for (int k = 0; k < size; k++) {
    v_f32 sum = v_mul(v[0], w[k * size]);
    HK_UNROLL for (int i = 1; i < size; i++) sum = v_fma(v[i], w[k * size + i], sum);
    if (whole) v_store(y + k * h->y_step, sum);
    else v_store_n(y + k * h->y_step, sum, lanes);
  }
}

/* The fewer channels, the more vectors per iteration: one or two products per store do not hide the loop overhead. */
HK_INLINE void squares(const int size, const hk_point_args *a) {
  if (size > HK_POINT_SQUARE(HK_VREGS)) return; /* no plan uses it */
  const hk_point_shape h = *a->shape;
  const int unroll = size == 1 ? 4 : size == 2 ? 2 : 1;
  const float *x = a->x, *f = h.f;
  float *y = a->y;
  for (int64_t g = h.groups; g > 0; g--, x += size * h.x_step, y += size * h.y_step, f += size * size) {
    v_f32 w[16];
    HK_UNROLL for (int i = 0; i < size * size; i++) {
      w[i] = v_bcast(f + i);
      HK_HOLD(w[i]);
    }
    int64_t t = 0;
    HK_ROLLED for (; t + unroll * HK_VW <= a->count; t += unroll * HK_VW)
      HK_UNROLL for (int u = 0; u < unroll; u++)
        square_vector(size, true, &h, w, x + t + u * HK_VW, y + t + u * HK_VW, HK_VW);
    for (; unroll > 1 && t + HK_VW <= a->count; t += HK_VW) square_vector(size, true, &h, w, x + t, y + t, HK_VW);
    if (t < a->count) square_vector(size, false, &h, w, x + t, y + t, a->count - t);
  }
}

/* Separate functions, so that no way pays for the prologue of another. */
#define POINT_INPUTS(n)                                                                                     \
  static __attribute__((noinline)) void lines_##n(const hk_point_args *a) { lines(n, false, a); }           \
  static __attribute__((noinline)) void lines_fused_##n(const hk_point_args *a) { lines(n, true, a); }      \
  static __attribute__((noinline)) void planes_##n(const hk_point_args *a) { planes(n, false, a); }         \
  static __attribute__((noinline)) void planes_fused_##n(const hk_point_args *a) { planes(n, true, a); }
#define POINT_WOVEN(n)                                                                                      \
  static __attribute__((noinline)) void woven_##n(const hk_point_args *a) { woven(n, false, a); }           \
  static __attribute__((noinline)) void woven_fused_##n(const hk_point_args *a) { woven(n, true, a); }       \
  static __attribute__((noinline)) void rounds_##n(const hk_point_args *a) { rounds(n, false, a); }         \
  static __attribute__((noinline)) void rounds_fused_##n(const hk_point_args *a) { rounds(n, true, a); }
#define POINT_SQUARES(n) static __attribute__((noinline)) void squares_##n(const hk_point_args *a) { squares(n, a); }
POINT_SQUARES(1)
POINT_SQUARES(2) POINT_SQUARES(3) POINT_SQUARES(4) POINT_INPUTS(1) POINT_INPUTS(2) POINT_INPUTS(3) POINT_INPUTS(4)
    POINT_INPUTS(5) POINT_INPUTS(6) POINT_INPUTS(7) POINT_INPUTS(8) POINT_WOVEN(1) POINT_WOVEN(2) POINT_WOVEN(3)
        POINT_WOVEN(4) POINT_WOVEN(5) POINT_WOVEN(6) POINT_WOVEN(7) POINT_WOVEN(8)
#if MR > 8
            POINT_INPUTS(9) POINT_INPUTS(10)
#endif
#if MR > 10
                POINT_INPUTS(11) POINT_INPUTS(12) POINT_INPUTS(13) POINT_INPUTS(14) POINT_INPUTS(15) POINT_INPUTS(16)
#endif

#if MR > 10
#define POINT_ALL(way)                                                                                                 \
  {                                                                                                                    \
    way##1, way##2, way##3, way##4, way##5, way##6, way##7, way##8, way##9, way##10, way##11, way##12, way##13,        \
        way##14, way##15, way##16                                                                                      \
  }
#elif MR > 8
#define POINT_ALL(way) {way##1, way##2, way##3, way##4, way##5, way##6, way##7, way##8, way##9, way##10}
#else
#define POINT_ALL(way) {way##1, way##2, way##3, way##4, way##5, way##6, way##7, way##8}
#endif

                    void HK_NAME(const void *args) {
  static void (*const table[][MR])(const hk_point_args *) = {
      [HK_POINT_LINES * 2] = POINT_ALL(lines_),
      [HK_POINT_LINES * 2 + 1] = POINT_ALL(lines_fused_),
      [HK_POINT_WOVEN * 2] = {woven_1, woven_2, woven_3, woven_4, woven_5, woven_6, woven_7, woven_8},
      [HK_POINT_WOVEN * 2 + 1] = {woven_fused_1, woven_fused_2, woven_fused_3, woven_fused_4, woven_fused_5,
                                  woven_fused_6, woven_fused_7, woven_fused_8},
      [HK_POINT_PLANES * 2] = POINT_ALL(planes_),
      [HK_POINT_PLANES * 2 + 1] = POINT_ALL(planes_fused_),
      [HK_POINT_SQUARES * 2] = {squares_1, squares_2, squares_3, squares_4},
      [HK_POINT_ROUNDS * 2] = {rounds_1, rounds_2, rounds_3, rounds_4, rounds_5, rounds_6, rounds_7, rounds_8},
      [HK_POINT_ROUNDS * 2 + 1] = {rounds_fused_1, rounds_fused_2, rounds_fused_3, rounds_fused_4, rounds_fused_5,
                                   rounds_fused_6, rounds_fused_7, rounds_fused_8}};
  const hk_point_args *a = args;
  table[a->shape->way * 2 + a->shape->fused][a->shape->inputs - 1](a);
}
