/* AMX tiles: tile numbers are literals. The compiler does not see what the instructions read and write in memory, so
 * t_fence stands before a load of what was just stored. A test puts a header of the same words, in plain C, in the
 * place of this one. */
#ifndef HK_TILES_AMX_H
#define HK_TILES_AMX_H
#include <immintrin.h>
#include <stdbool.h>
#include <stdint.h>

#define T_ZERO(t) _tile_zero(t)
#define T_LOAD(t, from, step) _tile_loadd(t, from, step)
#define T_STORE(t, to, step) _tile_stored(t, to, step)
#define T_DOT_BF16(acc, a, b) _tile_dpbf16ps(acc, a, b)
#define T_DOT_S8S8(acc, a, b) _tile_dpbssd(acc, a, b)
#define T_DOT_U8S8(acc, a, b) _tile_dpbusd(acc, a, b)

static inline void t_fence(void) { __asm__ volatile("" ::: "memory"); }
static inline void t_configure(const void *config) {
  t_fence();
  _tile_loadconfig(config);
}
static inline void t_release(void) { _tile_release(); }

/* True when rows 0..count-1, at most 16, are `step` bytes apart. */
static inline bool t_even(const char *const *rows, int64_t count, int64_t step) {
  const uint32_t pairs = (1u << (count - 1)) - 1u;
  const __mmask8 low = (__mmask8)pairs, high = (__mmask8)(pairs >> 8);
  const __m512i want = _mm512_set1_epi64(step);
  const __m512i a = _mm512_sub_epi64(_mm512_maskz_loadu_epi64(low, rows + 1), _mm512_maskz_loadu_epi64(low, rows));
  const __m512i b =
      _mm512_sub_epi64(_mm512_maskz_loadu_epi64(high, rows + 9), _mm512_maskz_loadu_epi64(high, rows + 8));
  return !(_mm512_mask_cmpneq_epi64_mask(low, a, want) | _mm512_mask_cmpneq_epi64_mask(high, b, want));
}
#endif
