/* Public structs from programs built against another hankel.h. A struct grows at its end only, so a smaller size means
 * an older header, whose missing fields are zero; a larger one means a newer header, whose fields nothing here obeys.
 */
#include <string.h>

#include "core/core.h"

/* The library fills these in memory whose size nobody states (hk_problem_conv, hk_epilogue_parse and others), so a
 * program built against the first header must find no byte more written. */
_Static_assert(sizeof(void *) != 8 || sizeof(hk_problem) == 424, "hk_problem must keep the size of hankel 0.1");
_Static_assert(sizeof(void *) != 8 || sizeof(hk_epilogue) == 160, "hk_epilogue must keep the size of hankel 0.1");

static hk_status check_size(size_t size, size_t known, const char *name) {
  if (size > known)
    return hk_fail(HK_INVALID,
                   "%s.size = %zu is larger than the %zu bytes that hankel %s knows: the program was built "
                   "against a newer hankel.h",
                   name, size, known, HK_VERSION_TEXT);
  if (size < 2 * sizeof(size_t) || size % sizeof(size_t))
    return hk_fail(HK_INVALID, "%s.size = %zu must be set to sizeof of the struct: a multiple of %zu from %zu to %zu",
                   name, size, sizeof(size_t), 2 * sizeof(size_t), known);
  return HK_OK;
}

static size_t size_of(const void *given) {
  size_t size;
  memcpy(&size, given, sizeof size);
  return size;
}

const void *hk_take(const void *given, void *room, size_t known, const char *name) {
  if (!given) return hk_fail(HK_INVALID, "%s is NULL", name), NULL;
  const size_t size = size_of(given);
  if (size == known) return given;
  if (check_size(size, known, name)) return NULL;
  memset(room, 0, known);
  memcpy(room, given, size);
  memcpy(room, &known, sizeof known);
  return room;
}

hk_status hk_give(void *to, const void *made, size_t known, const char *name) {
  if (!to) return hk_fail(HK_INVALID, "%s is NULL", name);
  const size_t size = size_of(to);
  const hk_status s = check_size(size, known, name);
  if (s) return s;
  memcpy((char *)to + sizeof size, (const char *)made + sizeof size, size - sizeof size);
  return HK_OK;
}
