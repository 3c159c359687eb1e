/* Machine parameters of the cost model, in one place. They rank candidates; they need not be exact, and they must not
 * change from run to run, or plans would. So they come from what the CPU says of itself, never from a clock. */
#include <unistd.h>
#if defined(__x86_64__)
#include <cpuid.h>
#endif

#include "cost/cost.h"

/* A middling core: 3 GHz, two vector multiply-adds a cycle. Only ratios matter. */
#define CYCLES 3e9

/* AMD before Zen 5 (family 1Ah) runs a 512-bit instruction as two 256-bit halves: no more flops than AVX2 has. */
static bool ask_halves_512(void) {
#if defined(__x86_64__)
  unsigned a, b, c, d;
  if (!__get_cpuid(0, &a, &b, &c, &d) || b != signature_AMD_ebx) return false;
  __get_cpuid(1, &a, &b, &c, &d);
  return ((a >> 8) & 15) + ((a >> 20) & 255) < 0x1a;
#else
  return false;
#endif
}

/* Asked once: under a hypervisor the question takes tens of microseconds. */
static bool halves_512(void) {
  static _Atomic int known; /* 0 not yet, 1 no, 2 yes */
  if (!known) known = ask_halves_512() ? 2 : 1;
  return known == 2;
}

double hk_cost_peak(hk_isa isa) {
  switch (isa) {
  case HK_ISA_AVX512:
  case HK_ISA_AMX: return CYCLES * (halves_512() ? 32 : 64);
  case HK_ISA_AVX2: return CYCLES * 32;
  case HK_ISA_NEON: return CYCLES * 16;
  default: return CYCLES * 2;
  }
}

static int64_t cache(int name, int64_t otherwise) {
  const long v = sysconf(name);
  return v > 0 ? v : otherwise;
}

int64_t hk_cost_l1(void) {
#ifdef _SC_LEVEL1_DCACHE_SIZE
  return cache(_SC_LEVEL1_DCACHE_SIZE, 32 << 10);
#else
  return 32 << 10;
#endif
}

int64_t hk_cost_l2(void) {
#ifdef _SC_LEVEL2_CACHE_SIZE
  return cache(_SC_LEVEL2_CACHE_SIZE, 512 << 10);
#else
  return 512 << 10;
#endif
}

/* glibc gives the L3 of all core complexes of an AMD package together; a core fills only that of its own. */
int64_t hk_cost_l3(void) {
  const int64_t most = 32 << 20;
#ifdef _SC_LEVEL3_CACHE_SIZE
  return hk_min64(most, cache(_SC_LEVEL3_CACHE_SIZE, 16 << 20));
#else
  return most / 2;
#endif
}

/* Xeon (Sapphire Rapids), weights streaming from L3: 8 steps gain 6 to 15 % (2048-512 of 7 x 7, 1280-1280 of 16 x 16,
 * 960-640 of 32 x 32; bench/results/2026-11-15-cpu-xeon.md); Zen 4 brings them in itself. */
bool hk_cost_ahead(void) { return !halves_512(); }

double hk_cost_move(double bytes, double working_set) {
  /* bytes a cycle from L1, L2, L3 and memory of a Zen 3 or Zen 4 core, read and written mixed */
  const double rate = working_set <= (double)hk_cost_l1()   ? 48
                      : working_set <= (double)hk_cost_l2() ? 24
                      : working_set <= 16e6                 ? 10
                                                            : 5;
  return bytes / (rate * CYCLES);
}

double hk_cost_spread(double seconds, int64_t jobs, int32_t threads) {
  if (threads <= 1 || jobs <= 0) return seconds;
  const double wake = 3e-6;
  return seconds / (double)jobs * (double)hk_ceil_div(jobs, threads) + wake;
}
