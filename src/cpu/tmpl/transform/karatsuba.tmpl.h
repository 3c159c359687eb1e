/* karatsuba: depthwise windows along a row, stride 1, lanes are channels; see hk_karatsuba_args.
 *
 * Define MR (quads per tile) and HK_NAME, include a vocabulary, then this. Four outputs and four taps are the product
 * of a 4 x 4 Hankel matrix [A B; B C] of 2 x 2 Hankel matrices by a vector [f; g]:
 *   [A B; B C] [f; g] = [(A-B) f + B (f+g); B (f+g) + (C-B) g]
 * This takes three products of half the size instead of four, and once more inside: nine instead of sixteen. The sums
 * of inputs form nine planes of one vector per quad; each plane is convolved with its sums of weights, and terms that
 * two outputs share are added once. Registers: MR accumulators, four weights, one input. */
#include "cpu/tmpl/depthwise/dwfuse.tmpl.h"

#define PLANES 9

/* Returns column i of x, counted from the first tap of the first output; zero outside first..last-1. */
HK_INLINE v_f32 column(const hk_karatsuba_args *a, v_mask mask, int64_t i) {
  if (i < a->first || i >= a->last) return v_zero();
  return a->lanes == HK_VW ? v_load(a->x + i * a->x_step) : v_load_m(a->x + i * a->x_step, mask);
}

/* Quads [j, last) of all planes, from seven columns each; inside: all of them are whole vectors of x. */
HK_INLINE void make_planes(const hk_karatsuba_args *a, const bool inside, int64_t j, int64_t last) {
  const v_mask mask = v_tail(a->lanes);
  const int64_t plane = a->entries * HK_VW;
#define COLUMN(i) (inside ? v_load(a->x + (4 * j + (i)) * a->x_step) : column(a, mask, 4 * j + (i)))
  if (j >= last) return;
  v_f32 x0 = COLUMN(0), x1 = COLUMN(1), x2 = COLUMN(2);
  float *to = a->planes + j * HK_VW;
  for (; j < last; j++, to += HK_VW) {
    const v_f32 x3 = COLUMN(3), x4 = COLUMN(4), x5 = COLUMN(5), x6 = COLUMN(6);
    const v_f32 d0 = v_sub(x0, x2), d1 = v_sub(x1, x3), d2 = v_sub(x2, x4), e0 = v_sub(x4, x2), e1 = v_sub(x5, x3),
                e2 = v_sub(x6, x4);
    v_store(to, v_sub(d0, d1));
    v_store(to + plane, d1);
    v_store(to + 2 * plane, v_sub(d2, d1));
    v_store(to + 3 * plane, v_sub(x2, x3));
    v_store(to + 4 * plane, x3);
    v_store(to + 5 * plane, v_sub(x4, x3));
    v_store(to + 6 * plane, v_sub(e0, e1));
    v_store(to + 7 * plane, e1);
    v_store(to + 8 * plane, v_sub(e2, e1));
    x0 = x4;
    x1 = x5;
    x2 = x6;
  }
#undef COLUMN
}

HK_INLINE void plane_run(const int taps, const float *x, const float *f, v_f32 *acc) {
  v_f32 w[4];
  HK_OPAQUE(x); /* gcc would also keep what the next iteration reads, and spill it */
  HK_UNROLL for (int t = 0; t < taps; t++) w[t] = v_load(f + t * HK_VW);
  HK_UNROLL for (int m = 0; m < MR + taps - 1; m++) {
    v_f32 v = v_load(x + m * HK_VW);
    if (taps > 1) HK_HOLD(v);
    HK_UNROLL for (int t = 0; t < taps; t++) {
      if (m - t >= 0 && m - t < MR) acc[m - t] = v_fma(v, w[t], acc[m - t]);
    }
  }
}

/* acc += the convolution of one plane. */
HK_INLINE void plane_sum(const hk_karatsuba_args *a, int64_t j, int plane, v_f32 *acc) {
  const float *x = a->planes + (plane * a->entries + j) * HK_VW, *f = a->f + plane * a->fours * HK_VW;
  int64_t fours = a->fours;
  for (; fours >= 4; fours -= 4, x += 4 * HK_VW, f += 4 * HK_VW) plane_run(4, x, f, acc);
  if (fours == 3) plane_run(3, x, f, acc);
  else if (fours == 2) plane_run(2, x, f, acc);
  else if (fours == 1) plane_run(1, x, f, acc);
}

/* Outputs phase, phase + 4, ... of the tile that starts at output q. */
HK_INLINE void put(const hk_karatsuba_args *a, int64_t q, int phase, v_f32 *acc) {
  const v_mask m = v_tail(a->lanes);
  const v_f32 scale = !a->scale ? v_set1(1.0f) : a->scale_one ? v_bcast(a->scale) : v_load_m(a->scale, m);
  const v_f32 bias = a->bias ? v_load_m(a->bias, m) : v_zero();
  q += phase;
  if (!a->fuse.flags && a->lanes == HK_VW && q + 4 * (MR - 1) < a->outputs) {
    float *y = a->y + q * a->y_step;
    HK_UNROLL for (int i = 0; i < MR; i++, y += 4 * a->y_step) v_store(y, acc[i]);
    return;
  }
  HK_UNROLL for (int i = 0; i < MR; i++, q += 4) {
    if (q >= a->outputs) continue;
    v_f32 r = v_zero(), v = acc[i];
    if (a->fuse.flags & (HK_DW_BEFORE | HK_DW_AFTER)) r = v_load_m(a->c + q * a->c_step, m);
    if (a->fuse.flags) v = fuse_vector(&a->fuse, v, scale, bias, r);
    if (a->lanes == HK_VW) v_store(a->y + q * a->y_step, v);
    else v_store_n(a->y + q * a->y_step, v, a->lanes);
  }
}

#define EACH HK_UNROLL for (int i = 0; i < MR; i++)
#define KEEP(to) EACH v_store((to) + i * HK_VW, acc[i])
#define KEPT(from) v_load((from) + i * HK_VW)

/* MR quads from quad j on. */
static void tile(const hk_karatsuba_args *a, int64_t j) {
  _Alignas(HK_ALIGN) float middle[MR * HK_VW], upper[MR * HK_VW], lower[MR * HK_VW];
  v_f32 acc[MR];
  EACH acc[i] = v_zero();
  plane_sum(a, j, 4, acc);
  KEEP(middle);
  plane_sum(a, j, 3, acc);
  KEEP(upper);
  EACH acc[i] = KEPT(middle);
  plane_sum(a, j, 5, acc);
  KEEP(lower);
  for (int half = 0; half < 2; half++) { /* outputs 0 and 1, then 2 and 3 */
    EACH acc[i] = v_zero();
    plane_sum(a, j, 1 + 6 * half, acc);
    KEEP(middle);
    EACH acc[i] = v_add(acc[i], KEPT(upper));
    plane_sum(a, j, 6 * half, acc);
    put(a, 4 * j, 2 * half, acc);
    EACH acc[i] = v_add(KEPT(middle), KEPT(lower));
    plane_sum(a, j, 2 + 6 * half, acc);
    put(a, 4 * j, 2 * half + 1, acc);
  }
}

void HK_NAME(const void *args) {
  const hk_karatsuba_args *a = args;
  /* Quads whose columns all lie inside x. */
  int64_t from = a->lanes == HK_VW ? (a->first + 3) / 4 : a->entries, to = a->last >= 7 ? (a->last - 7) / 4 + 1 : 0;
  if (from > a->entries) from = a->entries;
  if (to > a->entries) to = a->entries;
  if (to < from) to = from;
  make_planes(a, false, 0, from);
  make_planes(a, true, from, to);
  make_planes(a, false, to, a->entries);
  for (int64_t j = 0; 4 * j < a->outputs; j += MR) tile(a, j);
}
