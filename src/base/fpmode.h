/* The floating-point mode of a call: sets flush-to-zero and denormals-are-zero, and restores them on return. Inline,
 * because every call reads the mode. */
#ifndef HK_FPMODE_H
#define HK_FPMODE_H
#include <stdbool.h>
#include <stdint.h>

/* The mode was already the wanted one: nothing to restore, and a small call saves reading the register again. */
#define HK_FP_SAME UINT64_MAX

#if defined(__x86_64__)
#include <xmmintrin.h>
#define HK_FP_FLUSH 0x8040u /* FTZ, DAZ */
static inline uint64_t hk_fp_get(void) { return _mm_getcsr(); }
static inline void hk_fp_put(uint64_t mode) { _mm_setcsr((uint32_t)mode); }
#elif defined(__aarch64__)
#define HK_FP_FLUSH (1u << 24)
static inline uint64_t hk_fp_get(void) {
  uint64_t mode;
  __asm__ volatile("mrs %0, fpcr" : "=r"(mode));
  return mode;
}
static inline void hk_fp_put(uint64_t mode) { __asm__ volatile("msr fpcr, %0" ::"r"(mode)); }
#else /* no control over denormals */
#define HK_FP_FLUSH 0u
static inline uint64_t hk_fp_get(void) { return 0; }
static inline void hk_fp_put(uint64_t mode) { (void)mode; }
#endif

/* Returns whether the mode is already the wanted one. */
static inline bool hk_fp_is(bool flush) { return (hk_fp_get() & HK_FP_FLUSH) == (flush ? HK_FP_FLUSH : 0); }

/* Returns the mode to restore; flush selects flush-to-zero and denormals-are-zero. */
static inline uint64_t hk_fp_set(bool flush) {
  const uint64_t saved = hk_fp_get(), wanted = flush ? saved | HK_FP_FLUSH : saved & ~(uint64_t)HK_FP_FLUSH;
  if (wanted == saved) return HK_FP_SAME;
  hk_fp_put(wanted);
  return saved;
}
static inline void hk_fp_restore(uint64_t mode) {
  if (mode != HK_FP_SAME) hk_fp_put(mode);
}
#endif
