/* What the library needs from the machine: memory, CPU features, threads, floating-point mode, log. Independent of
 * convolution. */
#ifndef HK_BASE_H
#define HK_BASE_H
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/fpmode.h"
#include "hankel.h"

#define HK_ALIGN 64
#define HK_HIDDEN __attribute__((visibility("hidden")))
#define HK_COUNT(array) ((int)(sizeof(array) / sizeof((array)[0])))

static inline int64_t hk_min64(int64_t a, int64_t b) { return a < b ? a : b; }
static inline int64_t hk_max64(int64_t a, int64_t b) { return a > b ? a : b; }
/* ceil(a / b) and floor(a / b) for b > 0 and any a; neither overflows. */
static inline int64_t hk_ceil_div(int64_t a, int64_t b) { return a / b + (a % b > 0); }
static inline int64_t hk_floor_div(int64_t a, int64_t b) { return a / b - (a % b < 0); }
/* Returns a rounded up to a multiple of b, for a >= 0 and b > 0. */
static inline int64_t hk_round_up(int64_t a, int64_t b) { return hk_ceil_div(a, b) * b; }

/* alloc.c: 64-byte aligned; returns NULL when memory is exhausted; hk_alloc(0) returns a valid pointer. */
void *hk_alloc(size_t bytes);
void *hk_alloc_zero(size_t bytes);
void hk_free(void *p);

/* cpu.c */
hk_isa hk_cpu_best_isa(void);       /* of this machine, capped by HANKEL_MAX_ISA */
bool hk_cpu_has(hk_isa isa);
/* Instructions that machines of one ISA have or lack; a kernel's row names the one it needs (cpu/kernels.inc). */
typedef enum hk_feature {
  HK_FEATURE_NONE = 0,
  HK_FEATURE_AVXVNNI,    /* VPDPBUSD of 256 bits without AVX-512 */
  HK_FEATURE_AVX512VNNI, /* VPDPBUSD, VPDPWSSD */
  HK_FEATURE_AVX512BF16, /* VDPBF16PS, VCVTNEPS2BF16 */
  HK_FEATURE_DOTPROD,    /* NEON SDOT, UDOT */
  HK_FEATURE_I8MM,       /* NEON SMMLA, USMMLA, USDOT */
  HK_FEATURE_BF16,       /* NEON BFMMLA, BFDOT, BFMLAL */
  HK_FEATURE_COUNT
} hk_feature;
bool hk_cpu_has_feature(hk_feature feature); /* this machine has it and HANKEL_WITHOUT does not name it */
const char *hk_feature_name(hk_feature feature);
int32_t hk_cpu_count(void);         /* cores this process may use: affinity and cgroup quota */
int32_t hk_threads_default(void);   /* HANKEL_NUM_THREADS, OMP_NUM_THREADS, else hk_cpu_count */
bool hk_isa_parse(const char *text, hk_isa *isa);
void hk_cpu_describe(hk_machine *m); /* fills every field but size */

/* threads.c: runs body(context, i) for i < count on at most `threads` threads of the process-wide pool, including the
 * caller's. When the pool is busy or cannot start, the caller's thread does all the work. */
typedef void (*hk_body)(void *context, int64_t i);
void hk_pool_run(int32_t threads, int64_t count, hk_body body, void *context);

/* log.c: the words of HANKEL_VERBOSE */
enum {
  HK_LOG_ERROR = 1,
  HK_LOG_WARN = 2,
  HK_LOG_CHECK = 4,
  HK_LOG_DISPATCH = 8,
  HK_LOG_CREATE = 16,
  HK_LOG_EXEC = 32,
  HK_LOG_TRACE = 64 /* what build made of a decision: kernels and loops */
};
extern HK_HIDDEN _Atomic uint32_t hk_log_mask; /* read it through hk_log_on */
uint32_t hk_log_words(void);                   /* reads the environment once */
static inline uint32_t hk_log_bits(void) { return atomic_load_explicit(&hk_log_mask, memory_order_relaxed); }
static inline bool hk_log_on(uint32_t word) {
  const uint32_t bits = hk_log_bits();
  return (bits & 0x80000000u ? bits : hk_log_words()) & word;
}
/* Returns nonzero if the word is on or the environment has not been read yet. */
static inline uint32_t hk_log_maybe(uint32_t word) { return (hk_log_bits() ^ 0x80000000u) & (0x80000000u | word); }
void hk_log(uint32_t word, const char *format, ...) __attribute__((format(printf, 2, 3)));
double hk_clock(void);                 /* seconds, monotonic */

/* text.c: appends to a caller's buffer; length counts the whole text even when it is truncated, as snprintf does. */
typedef struct hk_text {
  char *buffer;
  size_t size, length; /* length: of the whole text */
} hk_text;
void hk_text_add(hk_text *t, const char *format, ...) __attribute__((format(printf, 2, 3)));
#endif
