/* The steps of radix 4 over complex vectors, decimation in frequency, and their inverse. Twiddles of a step of n
 * points: for m = n/4 values of j, w^j, w^2j and w^3j as pairs, w = exp(-2 pi i / n). Include a vocabulary, then this.
 */
#include "cpu/tmpl/transform/cpx.tmpl.h"

static void down(float *z, const float *w, int64_t m) {
  for (int64_t j = 0; j < m; j++, w += 6) {
    const cpx a = c_load(z, j), b = c_load(z, j + m), c = c_load(z, j + 2 * m), d = c_load(z, j + 3 * m);
    const cpx s = c_add(a, c), t = c_sub(a, c), u = c_add(b, d), v = c_sub(b, d);
    c_store(z, j, c_add(s, u));
    c_store(z, j + m, c_mul(c_sub_i(t, v), v_bcast(w), v_bcast(w + 1)));
    c_store(z, j + 2 * m, c_mul(c_sub(s, u), v_bcast(w + 2), v_bcast(w + 3)));
    c_store(z, j + 3 * m, c_mul(c_add_i(t, v), v_bcast(w + 4), v_bcast(w + 5)));
  }
}

static void back(float *z, const float *w, int64_t m) {
  for (int64_t j = 0; j < m; j++, w += 6) {
    const cpx a = c_load(z, j), b = c_mul_conj(c_load(z, j + m), v_bcast(w), v_bcast(w + 1));
    const cpx c = c_mul_conj(c_load(z, j + 2 * m), v_bcast(w + 2), v_bcast(w + 3));
    const cpx d = c_mul_conj(c_load(z, j + 3 * m), v_bcast(w + 4), v_bcast(w + 5));
    const cpx s = c_add(a, c), t = c_sub(a, c), u = c_add(b, d), v = c_sub(b, d);
    c_store(z, j, c_add(s, u));
    c_store(z, j + m, c_add_i(t, v));
    c_store(z, j + 2 * m, c_sub(s, u));
    c_store(z, j + 3 * m, c_sub_i(t, v));
  }
}
