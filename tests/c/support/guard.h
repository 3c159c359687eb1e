/* Buffers between guard pages: one element too far in either direction is a fault. */
#ifndef TEST_GUARD_H
#define TEST_GUARD_H
#include <stddef.h>

typedef struct guarded {
  void *map;
  size_t map_bytes;
  float *at; /* the first element */
} guarded;

/* count floats that end (high) or begin (not high) at a page that may not be touched. */
guarded guarded_make(size_t count, int high);
void guarded_free(guarded *g);
#endif
