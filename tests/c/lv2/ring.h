/* A ring of messages between two threads, one writing and one reading, as hosts have between run and work: as large as
 * the one of jalv, without a lock. */
#ifndef LV2_TEST_RING_H
#define LV2_TEST_RING_H
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum { RING_BYTES = 4096 };
typedef struct ring {
  atomic_uint written, read;
  char bytes[RING_BYTES];
} ring;

bool ring_put(ring *r, uint32_t bytes, const void *data); /* false: no room */
bool ring_take(ring *r, uint32_t *bytes, void *data);     /* false: empty; data: RING_BYTES */
#endif
