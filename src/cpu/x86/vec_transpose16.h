/* Transpose for the vocabulary of 16 lanes. */
#ifndef HK_VEC_TRANSPOSE16_H
#define HK_VEC_TRANSPOSE16_H
/* Swaps v[i][j] and v[j][i]. */
static inline __attribute__((always_inline)) void v_transpose(v_f32 v[16]) {
  __m512 a[16], b[16];
  for (int i = 0; i < 8; i++) {
    a[2 * i] = _mm512_unpacklo_ps(v[2 * i], v[2 * i + 1]);
    a[2 * i + 1] = _mm512_unpackhi_ps(v[2 * i], v[2 * i + 1]);
  }
  for (int i = 0; i < 4; i++) {
    b[4 * i] = _mm512_shuffle_ps(a[4 * i], a[4 * i + 2], 0x44);
    b[4 * i + 1] = _mm512_shuffle_ps(a[4 * i], a[4 * i + 2], 0xee);
    b[4 * i + 2] = _mm512_shuffle_ps(a[4 * i + 1], a[4 * i + 3], 0x44);
    b[4 * i + 3] = _mm512_shuffle_ps(a[4 * i + 1], a[4 * i + 3], 0xee);
  }
  /* b[4q + r]: quarter s holds column 4s + r of rows 4q..4q+3 */
  for (int r = 0; r < 4; r++) {
    const __m512 c = _mm512_shuffle_f32x4(b[r], b[4 + r], 0x88), d = _mm512_shuffle_f32x4(b[r], b[4 + r], 0xdd);
    const __m512 e = _mm512_shuffle_f32x4(b[8 + r], b[12 + r], 0x88);
    const __m512 f = _mm512_shuffle_f32x4(b[8 + r], b[12 + r], 0xdd);
    v[r] = _mm512_shuffle_f32x4(c, e, 0x88);
    v[4 + r] = _mm512_shuffle_f32x4(d, f, 0x88);
    v[8 + r] = _mm512_shuffle_f32x4(c, e, 0xdd);
    v[12 + r] = _mm512_shuffle_f32x4(d, f, 0xdd);
  }
}
#endif
