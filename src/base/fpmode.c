/* The floating-point mode of a call: flush-to-zero and denormals-are-zero on or off, restored on return. */
#include "base/base.h"

/* The mode was the wanted one: nothing to restore, and a small call is spared the time to ask again. */
#define SAME UINT64_MAX

#if defined(__x86_64__)
#include <immintrin.h>
uint64_t hk_fp_set(bool flush) {
  const uint32_t saved = _mm_getcsr();
  const uint32_t bits = 0x8040u; /* FTZ, DAZ */
  const uint32_t wanted = flush ? saved | bits : saved & ~bits;
  if (wanted == saved) return SAME;
  _mm_setcsr(wanted);
  return saved;
}
void hk_fp_restore(uint64_t mode) {
  if (mode != SAME) _mm_setcsr((uint32_t)mode);
}
#elif defined(__aarch64__)
uint64_t hk_fp_set(bool flush) {
  uint64_t saved;
  __asm__ volatile("mrs %0, fpcr" : "=r"(saved));
  const uint64_t bit = 1ull << 24;
  const uint64_t wanted = flush ? saved | bit : saved & ~bit;
  if (wanted == saved) return SAME;
  __asm__ volatile("msr fpcr, %0" ::"r"(wanted));
  return saved;
}
void hk_fp_restore(uint64_t mode) {
  if (mode != SAME) __asm__ volatile("msr fpcr, %0" ::"r"(mode));
}
#else
uint64_t hk_fp_set(bool flush) { (void)flush; return SAME; }
void hk_fp_restore(uint64_t mode) { (void)mode; }
#endif
