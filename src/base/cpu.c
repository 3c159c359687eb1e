/* CPU features, caches, and how many cores this process may use. */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/base.h"

#if defined(__x86_64__)
#include <cpuid.h>
#include <sys/syscall.h>
#elif defined(__aarch64__)
#include <sys/auxv.h>
#endif

static const char *const isa_names[] = {"best", "scalar", "neon", "avx2", "avx512", "amx"};

const char *hk_isa_name(hk_isa isa) { return (unsigned)isa < (unsigned)HK_COUNT(isa_names) ? isa_names[isa] : NULL; }

bool hk_isa_parse(const char *text, hk_isa *isa) {
  for (int i = 0; i < HK_COUNT(isa_names); i++)
    if (!strcmp(text, isa_names[i])) {
      *isa = (hk_isa)i;
      return true;
    }
  return false;
}

#if defined(__aarch64__)
#define HK_MAX_ISA_WORDS "best, scalar, neon"
#else
#define HK_MAX_ISA_WORDS "best, scalar, avx2, avx512, amx"
#endif

#if defined(__x86_64__)
static uint64_t xcr0(void) {
  uint32_t a, b, c, d;
  if (!__get_cpuid(1, &a, &b, &c, &d) || !(c >> 27 & 1)) return 0;
  __asm__ volatile("xgetbv" : "=a"(a), "=d"(d) : "c"(0));
  return (uint64_t)d << 32 | a;
}

static hk_isa detect(void) {
  uint32_t a, b, c, d;
  const uint64_t state = xcr0();
  if (!__get_cpuid(1, &a, &b, &c, &d)) return HK_ISA_SCALAR;
  const bool fma = c >> 12 & 1, f16c = c >> 29 & 1;
  if (!__get_cpuid_count(7, 0, &a, &b, &c, &d)) return HK_ISA_SCALAR;
  if (!(b >> 5 & 1) || !fma || !f16c || (state & 6) != 6) return HK_ISA_SCALAR;
  const bool avx512 = (b >> 16 & 1) && (b >> 17 & 1) && (b >> 30 & 1) && (b >> 31 & 1) && (state & 0xe6) == 0xe6;
  if (!avx512) return HK_ISA_AVX2;
  const bool tile = (d >> 22 & 1) && (d >> 24 & 1) && (d >> 25 & 1) && (state & 0x60000) == 0x60000;
  /* Linux grants AMX tile data only on request (arch_prctl ARCH_REQ_XCOMP_PERM, feature 18). */
  if (!tile || syscall(SYS_arch_prctl, 0x1023, 18) != 0) return HK_ISA_AVX512;
  return HK_ISA_AMX;
}
#elif defined(__aarch64__)
static hk_isa detect(void) { return HK_ISA_NEON; }
#else
static hk_isa detect(void) { return HK_ISA_SCALAR; }
#endif

static hk_isa machine_isa(void) {
  static int cached; /* racing writers store the same value */
  int isa = __atomic_load_n(&cached, __ATOMIC_RELAXED);
  if (!isa) {
    isa = detect();
    __atomic_store_n(&cached, isa, __ATOMIC_RELAXED);
  }
  return (hk_isa)isa;
}

bool hk_cpu_has(hk_isa isa) {
  const hk_isa best = machine_isa();
  if (isa == HK_ISA_SCALAR || isa == HK_ISA_BEST) return true;
  if (isa == HK_ISA_NEON || best == HK_ISA_NEON) return isa == best;
  return isa <= best;
}

/* Reports once per variable that its value is ignored. */
static void ignored(atomic_flag *told, const char *name, const char *value, const char *accepted) {
  if (atomic_flag_test_and_set(told)) return;
  hk_log(HK_LOG_ERROR, "hankel,error,environment,%s is '%.40s' and is ignored; accepted: %s", name, value, accepted);
}

/* ---- features */
static const char *const feature_names[] = {"none", "avxvnni", "avx512vnni", "avx512bf16", "dotprod", "i8mm", "bf16"};
_Static_assert(HK_COUNT(feature_names) == HK_FEATURE_COUNT, "every feature has a name");

const char *hk_feature_name(hk_feature feature) { return feature_names[feature]; }

static uint32_t bit_of(hk_feature feature) { return 1U << feature; }

/* Bits of leaf 7 by Intel's and AMD's manuals, of HWCAP and HWCAP2 by the kernel's documentation for arm64. */
static uint32_t features_found(void) {
  uint32_t found = bit_of(HK_FEATURE_NONE);
#if defined(__x86_64__)
  uint32_t a = 0, b = 0, c = 0, d = 0;
  if (!hk_cpu_has(HK_ISA_AVX2) || !__get_cpuid_count(7, 0, &a, &b, &c, &d)) return found;
  if (hk_cpu_has(HK_ISA_AVX512) && (c >> 11 & 1)) found |= bit_of(HK_FEATURE_AVX512VNNI);
  if (a < 1 || !__get_cpuid_count(7, 1, &a, &b, &c, &d)) return found;
  if (a >> 4 & 1) found |= bit_of(HK_FEATURE_AVXVNNI);
  if (hk_cpu_has(HK_ISA_AVX512) && (a >> 5 & 1)) found |= bit_of(HK_FEATURE_AVX512BF16);
#elif defined(__aarch64__)
  if (getauxval(AT_HWCAP) >> 20 & 1) found |= bit_of(HK_FEATURE_DOTPROD);
  if (getauxval(AT_HWCAP2) >> 13 & 1) found |= bit_of(HK_FEATURE_I8MM);
  if (getauxval(AT_HWCAP2) >> 14 & 1) found |= bit_of(HK_FEATURE_BF16);
#endif
  return found;
}

/* Takes the features away that text lists ("avxvnni,avx512bf16"); false: a word of it names none. */
static bool features_without(const char *text, uint32_t *found) {
  bool known = true;
  while (*text) {
    const size_t n = strcspn(text, ",");
    bool any = false;
    for (int i = 1; i < HK_FEATURE_COUNT; i++) {
      if (strlen(feature_names[i]) != n || strncmp(text, feature_names[i], n)) continue;
      *found &= ~bit_of((hk_feature)i);
      any = true;
    }
    known &= any;
    text += n + (text[n] == ',');
  }
  return known;
}

bool hk_cpu_has_feature(hk_feature feature) {
  static atomic_flag told = ATOMIC_FLAG_INIT;
  static _Atomic uint32_t cached; /* racing writers store the same value */
  uint32_t found = cached;
  if (!found) {
    const char *without = getenv("HANKEL_WITHOUT");
    found = features_found();
    if (without && !features_without(without, &found))
      ignored(&told, "HANKEL_WITHOUT", without, "a list of avxvnni, avx512vnni, avx512bf16, dotprod, i8mm, bf16");
    cached = found;
  }
  return found & bit_of(feature);
}

/* A cap above what the CPU has is ignored silently; a cap of another architecture is reported like an unknown word. */
hk_isa hk_cpu_best_isa(void) {
  static atomic_flag told = ATOMIC_FLAG_INIT;
  const hk_isa best = machine_isa();
  const char *cap = getenv("HANKEL_MAX_ISA");
  hk_isa wanted;
  if (!cap || !*cap) return best;
  if (!hk_isa_parse(cap, &wanted) ||
      (wanted != HK_ISA_BEST && (wanted == HK_ISA_NEON) != (best == HK_ISA_NEON) && wanted != HK_ISA_SCALAR)) {
    ignored(&told, "HANKEL_MAX_ISA", cap, HK_MAX_ISA_WORDS);
    return best;
  }
  return wanted != HK_ISA_BEST && hk_cpu_has(wanted) ? wanted : best;
}

/* Returns the cgroup CPU quota in cores, rounded up; 0 if unlimited. v2: "max 100000" or "150000 100000"; v1: quota and
 * period in two files. */
static int32_t cgroup_limit(void) {
  long long quota = -1, period = 0;
  char text[64];
  FILE *f = fopen("/sys/fs/cgroup/cpu.max", "r");
  if (f) {
    if (fgets(text, sizeof text, f) && sscanf(text, "%lld %lld", &quota, &period) != 2) quota = -1;
    fclose(f);
  } else if ((f = fopen("/sys/fs/cgroup/cpu/cpu.cfs_quota_us", "r"))) {
    if (fscanf(f, "%lld", &quota) != 1) quota = -1;
    fclose(f);
    if (quota > 0 && (f = fopen("/sys/fs/cgroup/cpu/cpu.cfs_period_us", "r"))) {
      if (fscanf(f, "%lld", &period) != 1) period = 0;
      fclose(f);
    }
  }
  if (quota <= 0 || period <= 0) return 0;
  return (int32_t)((quota + period - 1) / period);
}

int32_t hk_cpu_count(void) {
  cpu_set_t set;
  int32_t n = 0;
  if (sched_getaffinity(0, sizeof set, &set) == 0) n = CPU_COUNT(&set);
  if (n < 1) n = (int32_t)sysconf(_SC_NPROCESSORS_ONLN);
  const int32_t limit = cgroup_limit();
  if (limit > 0 && limit < n) n = limit;
  return n < 1 ? 1 : n;
}

/* Returns the number at the start of text if it is 1 to 4096 and one of `ends` or the end of the text follows; else
 * 0. */
static int32_t threads_read(const char *text, const char *ends) {
  char *end;
  const long n = strtol(text, &end, 10);
  end += strspn(end, " \t");
  return n >= 1 && n <= 4096 && (!*end || strchr(ends, *end)) ? (int32_t)n : 0;
}

/* OMP_NUM_THREADS is not validated: it belongs to OpenMP and may be a list, one number per nesting level. */
int32_t hk_threads_default(void) {
  static atomic_flag told = ATOMIC_FLAG_INIT;
  const char *own = getenv("HANKEL_NUM_THREADS"), *openmp = getenv("OMP_NUM_THREADS");
  int32_t n = own && *own ? threads_read(own, "") : 0;
  if (!n && own && *own) ignored(&told, "HANKEL_NUM_THREADS", own, "a whole number from 1 to 4096");
  if (!n && openmp) n = threads_read(openmp, ",");
  return n ? n : hk_cpu_count();
}

static int64_t cache_size(int name, int64_t otherwise) {
  const long n = sysconf(name);
  return n > 0 ? n : otherwise;
}

static hk_machine named; /* its name and numbers, read once per process */

/* The numbers that tell apart machines of one name ("AMD EPYC"); on Arm implementer, part and revision. */
static int32_t *number_named(const char *name) {
  if (!strcmp(name, "cpu family") || !strcmp(name, "CPU implementer")) return &named.family;
  if (!strcmp(name, "model") || !strcmp(name, "CPU part")) return &named.model;
  if (!strcmp(name, "stepping") || !strcmp(name, "CPU revision")) return &named.stepping;
  return NULL;
}

/* /proc/cpuinfo has a line per field ("name<tabs>: value"), and an empty one after each core. */
static void read_model(void) {
  FILE *f = fopen("/proc/cpuinfo", "r");
  char line[256];
  while (f && fgets(line, sizeof line, f) && *line != '\n') {
    char *value = strchr(line, ':');
    if (!value) continue;
    line[strcspn(line, "\t:")] = 0;
    value[strcspn(value, "\n")] = 0;
    value += value[1] ? 2 : 1;
    int32_t *number = number_named(line);
    if (number) *number = (int32_t)strtol(value, NULL, 0);
    else if (!strcmp(line, "model name")) snprintf(named.cpu, sizeof named.cpu, "%.63s", value);
  }
  if (f) fclose(f);
  if (!named.cpu[0]) snprintf(named.cpu, sizeof named.cpu, "unknown");
}

void hk_cpu_describe(hk_machine *m) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  pthread_once(&once, read_model);
  memcpy(m->cpu, named.cpu, sizeof m->cpu);
  m->family = named.family, m->model = named.model, m->stepping = named.stepping;
  size_t n = 0;
  m->features[0] = 0;
  for (int i = 1; i < HK_FEATURE_COUNT; i++)
    if (hk_cpu_has_feature((hk_feature)i))
      n += (size_t)snprintf(m->features + n, sizeof m->features - n, "%s%s", n ? " " : "", feature_names[i]);
  m->best_isa = hk_cpu_best_isa();
  m->cores = hk_cpu_count();
  m->l1d_bytes = cache_size(_SC_LEVEL1_DCACHE_SIZE, 32768);
  m->l2_bytes = cache_size(_SC_LEVEL2_CACHE_SIZE, 524288);
  m->l3_bytes = cache_size(_SC_LEVEL3_CACHE_SIZE, 4 << 20);
}
