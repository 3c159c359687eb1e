/* Buffers between guard pages: an access one element beyond a buffer that touches its guard faults. */
#ifndef TEST_GUARD_H
#define TEST_GUARD_H
#include <stddef.h>

typedef struct guarded {
  void *map;
  size_t map_bytes;
  float *at; /* the first element */
} guarded;

/* Allocates count floats that end (high) or begin (not high) at an inaccessible page; aborts when memory is
 * exhausted. */
guarded guarded_make(size_t count, int high);
void guarded_free(guarded *g);
#endif
