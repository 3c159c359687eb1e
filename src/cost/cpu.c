/* Which machine this is, its caches, and what counts cost on it. Parameters rank candidates; they need not be exact,
 * and they must not change from run to run, or plans would. So they come from what the CPU says of itself and from
 * machines/, never from a clock. */
#include <string.h>
#include <unistd.h>
#if defined(__x86_64__)
#include <cpuid.h>
#endif

#include "cost/cost.h"
#include "cost/machines/generic.inc"

static const hk_cost_machine machines[] = {
    {.name = "generic", HK_COST_GENERIC, .avx512 = 64, .prefetches = true},
    /* AMD before Zen 5 runs a 512-bit instruction as two 256-bit halves */
    {.name = "halves", HK_COST_GENERIC, .avx512 = 32},
#include "cost/machines/zen4.inc"
#include "cost/machines/emr.inc"
};
enum { GENERIC, HALVES, ZEN4, EMR };

typedef struct cpu_id {
  bool amd, intel;
  uint32_t family, model;
} cpu_id;

static cpu_id ask(void) {
  cpu_id id = {false, false, 0, 0};
#if defined(__x86_64__)
  unsigned a, b, c, d;
  if (!__get_cpuid(0, &a, &b, &c, &d)) return id;
  id.amd = b == signature_AMD_ebx;
  id.intel = b == signature_INTEL_ebx;
  __get_cpuid(1, &a, &b, &c, &d);
  id.family = ((a >> 8) & 15) + ((a >> 20) & 255);
  id.model = ((a >> 4) & 15) + ((a >> 12) & 240);
#endif
  return id;
}

/* Zen 4 is family 19h from model 10h on, but for the models of Zen 3 between. Sapphire Rapids (8fh) has the cores of
 * Emerald Rapids (cfh). */
static int find(void) {
  const cpu_id id = ask();
  const bool zen4 = id.family == 0x19 && ((id.model >= 0x10 && id.model < 0x20) ||
                                          (id.model >= 0x60 && id.model < 0x80) || id.model >= 0xa0);
  if (id.amd && zen4) return ZEN4;
  if (id.intel && id.family == 6 && (id.model == 0x8f || id.model == 0xcf)) return EMR;
  return id.amd && id.family < 0x1a ? HALVES : GENERIC;
}

static const hk_cost_machine *used; /* in place of this machine's */

/* Asked once: under a hypervisor the question takes tens of microseconds. */
const hk_cost_machine *hk_cost_here(void) {
  static _Atomic int known; /* 0: not yet, else 1 + its place in machines */
  if (used) return used;
  if (!known) known = 1 + find();
  return &machines[known - 1];
}

const hk_cost_machine *hk_cost_find(const char *name) {
  for (int i = 0; i < HK_COUNT(machines); i++)
    if (!strcmp(machines[i].name, name)) return &machines[i];
  return NULL;
}

void hk_cost_use(const hk_cost_machine *m) { used = m; }

double hk_cost_clock(void) { return hk_cost_here()->clock; }

double hk_cost_flops(hk_isa isa) {
  const hk_cost_machine *m = hk_cost_here();
  switch (isa) {
  case HK_ISA_AVX512:
  case HK_ISA_AMX: return m->avx512;
  case HK_ISA_AVX2: return m->avx2;
  case HK_ISA_NEON: return m->neon;
  default: return m->scalar;
  }
}

double hk_cost_peak(hk_isa isa) { return hk_cost_clock() * hk_cost_flops(isa); }

double hk_cost_rate(const hk_geom *g, hk_isa isa) {
  const bool wide = isa >= HK_ISA_AVX512;
  const bool tiles = isa == HK_ISA_AMX && hk_cpu_has(HK_ISA_AMX);
  if (g->x_type == HK_BF16 && g->f_type == HK_BF16)
    return tiles ? 32 : wide && hk_cpu_has_feature(HK_FEATURE_AVX512BF16) ? 2 : 1;
  if (g->acc_type != HK_S32) return 1;
  if (tiles) return 64;
  if (hk_cpu_has_feature(wide ? HK_FEATURE_AVX512VNNI : HK_FEATURE_AVXVNNI)) return 4;
  return 1;
}

static int64_t cache(int name, int64_t otherwise) {
  const long v = sysconf(name);
  return v > 0 ? v : otherwise;
}

int64_t hk_cost_l1(void) {
  if (used && used->l1_bytes) return used->l1_bytes;
#ifdef _SC_LEVEL1_DCACHE_SIZE
  return cache(_SC_LEVEL1_DCACHE_SIZE, 32 << 10);
#else
  return 32 << 10;
#endif
}

int64_t hk_cost_l2(void) {
  if (used && used->l2_bytes) return used->l2_bytes;
#ifdef _SC_LEVEL2_CACHE_SIZE
  return cache(_SC_LEVEL2_CACHE_SIZE, 512 << 10);
#else
  return 512 << 10;
#endif
}

/* glibc gives the L3 of all core complexes of an AMD package together; a core fills only that of its own. */
int64_t hk_cost_l3(void) {
  const int64_t most = 32 << 20;
  if (used && used->l3_bytes) return used->l3_bytes;
#ifdef _SC_LEVEL3_CACHE_SIZE
  return hk_min64(most, cache(_SC_LEVEL3_CACHE_SIZE, 16 << 20));
#else
  return most / 2;
#endif
}

/* Xeon (Sapphire Rapids), weights streaming from L3: 8 steps gain 6 to 15 % (2048-512 of 7 x 7, 1280-1280 of 16 x 16,
 * 960-640 of 32 x 32; bench/results/2026-11-15-cpu-xeon.md); Zen 4 brings them in itself. */
bool hk_cost_ahead(void) { return hk_cost_here()->prefetches; }

double hk_cost_move(double bytes, double working_set) {
  const hk_cost_machine *m = hk_cost_here();
  const double rate = working_set <= (double)hk_cost_l1()   ? m->l1
                      : working_set <= (double)hk_cost_l2() ? m->l2
                      : working_set <= 16e6                 ? m->l3
                                                            : m->memory;
  return bytes / (rate * m->clock);
}

double hk_cost_spread(double seconds, int64_t jobs, int32_t threads) {
  if (threads <= 1 || jobs <= 0) return seconds;
  return seconds / (double)jobs * (double)hk_ceil_div(jobs, threads) + hk_cost_here()->wake;
}

double hk_cost_seconds(const hk_cost_family *f, const hk_work *w, int64_t jobs, int32_t threads) {
  const hk_cost_machine *m = hk_cost_here();
  const double cycles = f->cycle * w->cycles + m->row * w->rows + m->value * w->values;
  return f->call +
         hk_cost_spread(f->product * w->products + cycles / m->clock + f->wait * w->moved + w->seconds, jobs, threads);
}
