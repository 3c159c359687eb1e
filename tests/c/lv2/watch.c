/* See watch.h. The program exports these functions, so that the dynamic linker binds the calls of loaded libraries to
 * them before libc's. */
#include "watch.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

_Thread_local bool watched;
_Thread_local long watched_allocations, watched_locks;

#if defined(__GLIBC__) && !defined(HK_SANITIZED)
#include <dlfcn.h>

void *__libc_malloc(size_t n);
void *__libc_calloc(size_t n, size_t m);
void *__libc_realloc(void *p, size_t n);
void *__libc_memalign(size_t a, size_t n);
void __libc_free(void *p);

static void count(void) { watched_allocations += watched; }

void *malloc(size_t n) { return count(), __libc_malloc(n); }
void *calloc(size_t n, size_t m) { return count(), __libc_calloc(n, m); }
void *realloc(void *p, size_t n) { return count(), __libc_realloc(p, n); }
void *aligned_alloc(size_t a, size_t n) { return count(), __libc_memalign(a, n); }
void free(void *p) { count(), __libc_free(p); }

int posix_memalign(void **p, size_t a, size_t n) {
  count();
  *p = __libc_memalign(a, n);
  return *p ? 0 : ENOMEM;
}

int pthread_mutex_lock(pthread_mutex_t *m) {
  static int (*real)(pthread_mutex_t *);
  if (!real) *(void **)&real = dlsym(RTLD_NEXT, "pthread_mutex_lock");
  watched_locks += watched;
  return real(m);
}
#endif
