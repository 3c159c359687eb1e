/* Allocations of a program linked with --wrap for each of malloc's kin: counted, weighed, and failing on demand (one,
 * or one and all after it). Included by one file of a program. */
#ifndef HK_TESTS_ALLOCS_H
#define HK_TESTS_ALLOCS_H
#include <malloc.h>
#include <stdlib.h>

void *__real_malloc(size_t n);
void *__real_calloc(size_t n, size_t m);
void *__real_realloc(void *p, size_t n);
void *__real_aligned_alloc(size_t a, size_t n);
void __real_free(void *p);
void *__wrap_malloc(size_t n);
void *__wrap_calloc(size_t n, size_t m);
void *__wrap_realloc(void *p, size_t n);
void *__wrap_aligned_alloc(size_t a, size_t n);
void __wrap_free(void *p);

static long live, made, refused;
static long fail_at;           /* counts down to the allocation that fails; 0 means never */
static int fail_rest;          /* nonzero: all that follow fail too, until fail_at is set to 0 */
static size_t held, held_most; /* bytes of what is live, and the most there ever were */

static int refuse(void) {
  made++;
  if (fail_at <= 0 || --fail_at > 0) return 0;
  refused++;
  fail_at = fail_rest ? 1 : 0;
  return 1;
}
static void *hold(void *p) {
  held += p ? malloc_usable_size(p) : 0;
  if (held > held_most) held_most = held;
  return p;
}
void *__wrap_malloc(size_t n) { return refuse() ? NULL : (live++, hold(__real_malloc(n))); }
void *__wrap_calloc(size_t n, size_t m) { return refuse() ? NULL : (live++, hold(__real_calloc(n, m))); }
void *__wrap_realloc(void *p, size_t n) {
  if (refuse()) return NULL;
  live += !p;
  held -= p ? malloc_usable_size(p) : 0;
  return hold(__real_realloc(p, n));
}
void *__wrap_aligned_alloc(size_t a, size_t n) { return refuse() ? NULL : (live++, hold(__real_aligned_alloc(a, n))); }
void __wrap_free(void *p) {
  live -= p != NULL;
  held -= p ? malloc_usable_size(p) : 0;
  __real_free(p);
}
#endif
