/* Buffers between guard pages; see guard.h. */
#include "support/guard.h"

#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

guarded guarded_make(size_t count, int high) {
  const size_t page = (size_t)sysconf(_SC_PAGESIZE), bytes = count * sizeof(float);
  const size_t inner = (bytes + page - 1) / page * page + (bytes == 0 ? page : 0);
  guarded g = {.map_bytes = inner + 2 * page};
  g.map = mmap(NULL, g.map_bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (g.map == MAP_FAILED) abort();
  char *first = (char *)g.map + page;
  if (mprotect(first, inner, PROT_READ | PROT_WRITE)) abort();
  g.at = (float *)(void *)(high ? first + inner - bytes : first);
  return g;
}

void guarded_free(guarded *g) { munmap(g->map, g->map_bytes); }
