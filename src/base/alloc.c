/* Memory for plans: 64-byte aligned, never used by execute. Large blocks (packed weights) ask for huge pages: with 4
 * KiB pages a panel of weights spans dozens of pages whose physical addresses collide in L2 sets. */
#include <stdlib.h>
#include <string.h>
#ifdef __linux__
#include <sys/mman.h>
#endif

#include "base/base.h"

#define HUGE_PAGE ((size_t)2 << 20)

static void *alloc_huge(size_t bytes) {
  const size_t rounded = (bytes + HUGE_PAGE - 1) / HUGE_PAGE * HUGE_PAGE;
  void *p = aligned_alloc(HUGE_PAGE, rounded);
#ifdef MADV_HUGEPAGE
  if (p) (void)madvise(p, rounded, MADV_HUGEPAGE); /* if refused, 4 KiB pages serve */
#endif
  return p;
}

void *hk_alloc(size_t bytes) {
  if (bytes > SIZE_MAX - HUGE_PAGE) return NULL;
  if (bytes >= HUGE_PAGE / 2) return alloc_huge(bytes);
  const size_t rounded = (bytes + HK_ALIGN - 1) / HK_ALIGN * HK_ALIGN;
  return aligned_alloc(HK_ALIGN, rounded ? rounded : HK_ALIGN);
}

void *hk_alloc_zero(size_t bytes) {
  void *p = hk_alloc(bytes);
  if (p) memset(p, 0, bytes);
  return p;
}

void hk_free(void *p) { free(p); }
