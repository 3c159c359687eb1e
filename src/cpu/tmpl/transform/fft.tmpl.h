/* fft: circular correlation of `points` complex values by fast Fourier transforms, lanes are channels; see hk_fft_args.
 *
 * Define HK_NAME, include a vocabulary, then this. Value i of z is a vector of real parts and one of imaginary parts. A
 * transform is radix-4, decimation in frequency; the product with h follows, and the inverse runs the same steps in
 * reverse, so no bit reversal is needed: h is packed in the order that the forward steps leave. The recursion is depth
 * first: after two steps a part of z fits in L1 and is transformed, multiplied and transformed back before the next
 * part. Twiddles of a step of n points: for n/4 values of j, w^j, w^2j and w^3j as pairs, w = exp(-2 pi i / n); then
 * those of n/4 points. */
#include "cpu/tmpl/depthwise/dwfuse.tmpl.h"
#include "cpu/tmpl/transform/radix4.tmpl.h"

HK_INLINE cpx times(cpx a, const float *h, int64_t i) {
  const cpx f = c_load(h, i);
  return c_mul(a, f.re, f.im);
}

/* Four values: forward, times h, and back. */
HK_INLINE void convolve_radix4(cpx *z, const float *h) {
  cpx s = c_add(z[0], z[2]), t = c_sub(z[0], z[2]), u = c_add(z[1], z[3]), v = c_sub(z[1], z[3]);
  const cpx a = times(c_add(s, u), h, 0), b = times(c_sub_i(t, v), h, 1), c = times(c_sub(s, u), h, 2),
            d = times(c_add_i(t, v), h, 3);
  s = c_add(a, c), t = c_sub(a, c), u = c_add(b, d), v = c_sub(b, d);
  z[0] = c_add(s, u);
  z[1] = c_add_i(t, v);
  z[2] = c_sub(s, u);
  z[3] = c_sub_i(t, v);
}

static void convolve_4(float *z, const float *h) {
  cpx v[4];
  HK_UNROLL for (int i = 0; i < 4; i++) v[i] = c_load(z, i);
  convolve_radix4(v, h);
  HK_UNROLL for (int i = 0; i < 4; i++) c_store(z, i, v[i]);
}

/* w: 1, and exp(-2 pi i j / 8) for j = 1, 2, 3. */
static void convolve_8(float *z, const float *h, const float *w) {
  cpx lo[4], hi[4];
  HK_UNROLL for (int i = 0; i < 4; i++) {
    const cpx a = c_load(z, i), b = c_load(z, i + 4);
    lo[i] = c_add(a, b);
    hi[i] = c_mul(c_sub(a, b), v_bcast(w + 2 * i), v_bcast(w + 2 * i + 1));
  }
  convolve_radix4(lo, h);
  convolve_radix4(hi, h + 4 * 2 * HK_VW);
  HK_UNROLL for (int i = 0; i < 4; i++) {
    const cpx b = c_mul_conj(hi[i], v_bcast(w + 2 * i), v_bcast(w + 2 * i + 1));
    c_store(z, i, c_add(lo[i], b));
    c_store(z, i + 4, c_sub(lo[i], b));
  }
}

static void convolve(float *z, const float *h, const float *w, int64_t n) {
  if (n == 4) {
    convolve_4(z, h);
  } else if (n == 8) {
    convolve_8(z, h, w);
  } else {
    const int64_t m = n / 4;
    down(z, w, m);
    for (int64_t i = 0; i < 4; i++) convolve(z + i * m * 2 * HK_VW, h + i * m * 2 * HK_VW, w + 6 * m, m);
    back(z, w, m);
  }
}

/* Copies x into the real or imaginary parts; positions outside x become zero. */
static void gather(const hk_fft_args *a) {
  const v_mask m = v_tail(a->lanes);
  const float *x = a->x;
  for (int64_t i = 0; i < a->points; i++, x += a->x_step) {
    const bool in = i >= a->first && i < a->last;
    v_store(a->z + i * 2 * HK_VW, !in ? v_zero() : a->lanes == HK_VW ? v_load(x) : v_load_m(x, m));
  }
}

static void scatter(const hk_fft_args *a) {
  const v_mask m = v_tail(a->lanes);
  const v_f32 scale = !a->scale ? v_set1(1.0f) : a->scale_one ? v_bcast(a->scale) : v_load_m(a->scale, m);
  const v_f32 bias = a->bias ? v_load_m(a->bias, m) : v_zero();
  for (int64_t i = 0; i < a->points; i++) {
    v_f32 v = v_load(a->z + i * 2 * HK_VW), r = v_zero();
    if (a->fuse.flags & (HK_DW_BEFORE | HK_DW_AFTER)) r = v_load_m(a->c + i * a->c_step, m);
    if (a->fuse.flags) v = fuse_vector(&a->fuse, v, scale, bias, r);
    if (a->lanes == HK_VW) v_store(a->y + i * a->y_step, v);
    else v_store_n(a->y + i * a->y_step, v, a->lanes);
  }
}

void HK_NAME(const void *args) {
  const hk_fft_args *a = args;
  if (a->op == HK_FFT_GATHER) gather(a);
  else if (a->op == HK_FFT_SCATTER) scatter(a);
  else convolve(a->z, a->h, a->twiddle, a->points);
}
