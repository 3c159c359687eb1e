/* Memory between guard pages: any access one byte beyond a tensor that touches its guard dies at once. Regions are
 * kept from case to case and grow when one needs more. */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "check/check.h"

enum { GUARD = 1 << 16, START = 1 << 16 };

static void region_grow(check_region *r, size_t bytes) {
  if (r->base) munmap(r->base - GUARD, r->bytes + 2 * GUARD);
  size_t want = START;
  while (want < bytes) want *= 2;
  char *all = mmap(NULL, want + 2 * GUARD, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (all == MAP_FAILED || mprotect(all + GUARD, want, PROT_READ | PROT_WRITE)) {
    cli_error("no memory for %zu bytes between guard pages", want);
    exit(CLI_FAILED);
  }
  r->base = all + GUARD;
  r->bytes = want;
}

char *check_region_place(check_region *r, size_t bytes, size_t element, check_place place) {
  size_t room = bytes + 4 * CHECK_MARGIN;
  if (r->bytes < room) region_grow(r, room);
  switch (place) {
  case PLACE_HIGH: return r->base + r->bytes - bytes;
  case PLACE_LOW: return r->base;
  default: return r->base + CHECK_MARGIN + element; /* off every boundary above the element's own */
  }
}
