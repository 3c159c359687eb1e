/* Memory for plans: 64-byte aligned, never used by execute. */
#include <stdlib.h>
#include <string.h>

#include "base/base.h"

void *hk_alloc(size_t bytes) {
  if (bytes > SIZE_MAX - HK_ALIGN) return NULL;
  const size_t rounded = (bytes + HK_ALIGN - 1) / HK_ALIGN * HK_ALIGN;
  return aligned_alloc(HK_ALIGN, rounded ? rounded : HK_ALIGN);
}

void *hk_alloc_zero(size_t bytes) {
  void *p = hk_alloc(bytes);
  if (p) memset(p, 0, bytes);
  return p;
}

void hk_free(void *p) { free(p); }
