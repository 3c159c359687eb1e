/* Transposes for the vocabularies of 8 lanes, which include this after they define v_f32 (__m256). */
#ifndef HK_VEC_TRANSPOSE8_H
#define HK_VEC_TRANSPOSE8_H
/* Swaps v[i][j] and v[j][i]. */
static inline __attribute__((always_inline)) void v_transpose(v_f32 v[8]) {
  __m256 a[8], b[8];
  for (int i = 0; i < 4; i++) {
    a[2 * i] = _mm256_unpacklo_ps(v[2 * i], v[2 * i + 1]);
    a[2 * i + 1] = _mm256_unpackhi_ps(v[2 * i], v[2 * i + 1]);
  }
  for (int i = 0; i < 2; i++) {
    b[4 * i] = _mm256_shuffle_ps(a[4 * i], a[4 * i + 2], 0x44);
    b[4 * i + 1] = _mm256_shuffle_ps(a[4 * i], a[4 * i + 2], 0xee);
    b[4 * i + 2] = _mm256_shuffle_ps(a[4 * i + 1], a[4 * i + 3], 0x44);
    b[4 * i + 3] = _mm256_shuffle_ps(a[4 * i + 1], a[4 * i + 3], 0xee);
  }
  for (int i = 0; i < 4; i++) {
    v[i] = _mm256_permute2f128_ps(b[i], b[i + 4], 0x20);
    v[i + 4] = _mm256_permute2f128_ps(b[i], b[i + 4], 0x31);
  }
}
/* v[c][r] = x[r*step + c] for c < 8; reads eight floats per r. */
static inline __attribute__((always_inline)) void v_deinterleave(const float *x, int64_t step, v_f32 v[8]) {
  for (int r = 0; r < 8; r++) v[r] = _mm256_loadu_ps(x + r * step);
  v_transpose(v);
}
/* v[c][r] = x[r*3 + c] for c < 3; reads nothing else. */
static inline __attribute__((always_inline)) void v_deinterleave3(const float *x, v_f32 v[3]) {
  __m256 m[3]; /* m[i]: floats 4i..4i+3 of each half of the columns */
  for (int i = 0; i < 3; i++)
    m[i] = _mm256_insertf128_ps(_mm256_castps128_ps256(_mm_loadu_ps(x + 4 * i)), _mm_loadu_ps(x + 12 + 4 * i), 1);
  const __m256 xy = _mm256_shuffle_ps(m[1], m[2], _MM_SHUFFLE(2, 1, 3, 2)),
               yz = _mm256_shuffle_ps(m[0], m[1], _MM_SHUFFLE(1, 0, 2, 1));
  v[0] = _mm256_shuffle_ps(m[0], xy, _MM_SHUFFLE(2, 0, 3, 0));
  v[1] = _mm256_shuffle_ps(yz, xy, _MM_SHUFFLE(3, 1, 2, 0));
  v[2] = _mm256_shuffle_ps(yz, m[2], _MM_SHUFFLE(3, 0, 3, 1));
}
#endif
