/* Device memory that plans own. */
#include "cuda/cuda.h"

hk_status hk_cu_buffer_make(hk_cu_buffer *b, const void *from, size_t bytes) {
  const hk_cu_driver *cu = hk_cu();
  hk_cu_ptr p = 0;
  b->data = NULL;
  b->bytes = 0;
  if (!cu) return HK_DEVICE;
  if (cu->alloc(&p, bytes ? bytes : 1))
    return hk_fail(HK_NO_MEMORY, "device memory: %zu bytes could not be allocated", bytes);
  b->data = (void *)(uintptr_t)p;
  b->bytes = bytes;
  if (!from || !bytes) return HK_OK;
  const hk_status s = hk_cu_check(cu->copy(p, (hk_cu_ptr)(uintptr_t)from, bytes), "copying weights to the device");
  if (s) hk_cu_buffer_free(b);
  return s;
}

void hk_cu_buffer_free(hk_cu_buffer *b) {
  const hk_cu_driver *cu = b->data ? hk_cu() : NULL;
  if (cu) cu->free((hk_cu_ptr)(uintptr_t)b->data);
  b->data = NULL;
}

hk_status hk_cu_copy(void *to, const void *from, size_t bytes) {
  const hk_cu_driver *cu = hk_cu();
  if (!cu) return HK_DEVICE;
  return hk_cu_check(cu->copy((hk_cu_ptr)(uintptr_t)to, (hk_cu_ptr)(uintptr_t)from, bytes), "copying memory");
}

hk_status hk_cu_filters_make(hk_cu_buffer *b, const hk_geom *g, const void *f, int64_t *shift) {
  const int64_t size[6] = {g->groups, g->k, g->c, g->win[0], g->win[1], g->win[2]};
  const int64_t step[6] = {g->f.group, g->f.outer, g->f.channel, g->f.at[0], g->f.at[1], g->f.at[2]};
  const int64_t bytes = (int64_t)hk_type_bytes(g->f_type);
  int64_t lo = 0, hi = 0;
  *shift = 0;
  for (int i = 0; i < 6; ++i) {
    if (!size[i]) return hk_cu_buffer_make(b, NULL, 0);
    *(step[i] > 0 ? &hi : &lo) += (size[i] - 1) * step[i];
  }
  *shift = -lo;
  return hk_cu_buffer_make(b, (const char *)f + lo * bytes, (size_t)((hi - lo + 1) * bytes));
}

void hk_cu_weights_free(void *weights) {
  hk_cu_weights *w = weights;
  if (!w) return;
  hk_cu_buffer *all[] = {&w->f, &w->scale, &w->bias, &w->slopes, &w->f_zero, &w->raw};
  for (int i = 0; i < HK_COUNT(all); ++i) hk_cu_buffer_free(all[i]);
  hk_free(w);
}
