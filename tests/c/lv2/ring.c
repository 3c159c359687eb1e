/* See ring.h. Each message is its length and its bytes. */
#include "ring.h"

static void copy_in(ring *r, unsigned at, const void *from, uint32_t bytes) {
  for (uint32_t i = 0; i < bytes; i++) r->bytes[(at + i) % RING_BYTES] = ((const char *)from)[i];
}

static void copy_out(const ring *r, unsigned at, void *to, uint32_t bytes) {
  for (uint32_t i = 0; i < bytes; i++) ((char *)to)[i] = r->bytes[(at + i) % RING_BYTES];
}

bool ring_put(ring *r, uint32_t bytes, const void *data) {
  const unsigned at = atomic_load_explicit(&r->written, memory_order_relaxed);
  const unsigned used = at - atomic_load_explicit(&r->read, memory_order_acquire);
  if (bytes + sizeof bytes > RING_BYTES - used) return false;
  copy_in(r, at, &bytes, sizeof bytes);
  copy_in(r, at + (unsigned)sizeof bytes, data, bytes);
  atomic_store_explicit(&r->written, at + (unsigned)sizeof bytes + bytes, memory_order_release);
  return true;
}

bool ring_take(ring *r, uint32_t *bytes, void *data) {
  const unsigned at = atomic_load_explicit(&r->read, memory_order_relaxed);
  if (at == atomic_load_explicit(&r->written, memory_order_acquire)) return false;
  copy_out(r, at, bytes, sizeof *bytes);
  copy_out(r, at + (unsigned)sizeof *bytes, data, *bytes);
  atomic_store_explicit(&r->read, at + (unsigned)sizeof *bytes + *bytes, memory_order_release);
  return true;
}
