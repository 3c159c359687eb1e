/* transpose8 and transpose16 for x86: see hk_transpose_narrow_args. Squares of 8 x 8 elements are transposed in
 * registers, the remainder goes element by element. Define HK_NAME and HK_BYTES (1 or 2). */
#include <immintrin.h>
#include <string.h>

#include "cpu/ukernel.h"
#include "cpu/tmpl/common/unroll.tmpl.h"

/* What a and b hold in turn, from their low and from their high halves, in pieces of so many bits. */
#define PAIRS(bits, a, b, low, high)                                                                                   \
  do {                                                                                                                 \
    const __m128i first = a, second = b;                                                                               \
    low = _mm_unpacklo_epi##bits(first, second);                                                                       \
    high = _mm_unpackhi_epi##bits(first, second);                                                                      \
  } while (0)

static inline void square(const char *from, int64_t from_step, char *to, int64_t to_step) {
  __m128i v[8], u[8];
#if HK_BYTES == 2
  HK_UNROLL for (int i = 0; i < 8; i++) v[i] = _mm_loadu_si128((const __m128i *)(const void *)(from + i * from_step));
  HK_UNROLL for (int i = 0; i < 4; i++) PAIRS(16, v[2 * i], v[2 * i + 1], u[i], u[i + 4]);
  HK_UNROLL for (int i = 0; i < 4; i++) PAIRS(32, u[2 * i], u[2 * i + 1], v[2 * i], v[2 * i + 1]);
  HK_UNROLL for (int i = 0; i < 2; i++) {
    PAIRS(64, v[i * 4], v[i * 4 + 2], u[i * 4], u[i * 4 + 1]);
    PAIRS(64, v[i * 4 + 1], v[i * 4 + 3], u[i * 4 + 2], u[i * 4 + 3]);
  }
  HK_UNROLL for (int i = 0; i < 8; i++) _mm_storeu_si128((__m128i *)(void *)(to + i * to_step), u[i]);
#else
  HK_UNROLL for (int i = 0; i < 8; i++) v[i] = _mm_loadl_epi64((const __m128i *)(const void *)(from + i * from_step));
  HK_UNROLL for (int i = 0; i < 4; i++) u[i] = _mm_unpacklo_epi8(v[2 * i], v[2 * i + 1]);
  HK_UNROLL for (int i = 0; i < 2; i++) PAIRS(16, u[2 * i], u[2 * i + 1], v[i], v[i + 2]);
  HK_UNROLL for (int i = 0; i < 2; i++) PAIRS(32, v[2 * i], v[2 * i + 1], u[2 * i], u[2 * i + 1]);
  HK_UNROLL for (int i = 0; i < 4; i++) {
    _mm_storel_epi64((__m128i *)(void *)(to + 2 * i * to_step), u[i]);
    _mm_storel_epi64((__m128i *)(void *)(to + (2 * i + 1) * to_step), _mm_unpackhi_epi64(u[i], u[i]));
  }
#endif
}

static void edge(const hk_transpose_narrow_args *a, int64_t r0, int64_t r1, int64_t c0, int64_t c1) {
  for (int64_t c = c0; c < c1; c++)
    for (int64_t r = r0; r < r1; r++)
      memcpy((char *)a->to + (c * a->to_step + r) * HK_BYTES, (const char *)a->from + (r * a->from_step + c) * HK_BYTES,
             HK_BYTES);
}

void HK_NAME(const void *args) {
  const hk_transpose_narrow_args *a = args;
  const int64_t rows = a->rows - a->rows % 8, columns = a->columns - a->columns % 8;
  for (int64_t c = 0; c < columns; c += 8)
    for (int64_t r = 0; r < rows; r += 8)
      square((const char *)a->from + (r * a->from_step + c) * HK_BYTES, a->from_step * HK_BYTES,
             (char *)a->to + (c * a->to_step + r) * HK_BYTES, a->to_step * HK_BYTES);
  edge(a, rows, a->rows, 0, columns);
  edge(a, 0, a->rows, columns, a->columns);
}
