/* Public structs from programs built against another hankel_nam.h, by the rule of hankel.h: a smaller size means an
 * older header, whose missing fields are zero and are not written; a larger one is refused. */
#include <string.h>

#include "nam.h"

static hk_status check_size(size_t size, size_t known, const char *name) {
  if (size > known)
    nam_fail("%s.size = %zu is larger than the %zu bytes that this library knows: the program was built against a "
             "newer hankel_nam.h",
             name, size, known);
  else if (size < 2 * sizeof(size_t) || size % sizeof(size_t))
    nam_fail("%s.size = %zu must be set to sizeof of the struct: a multiple of %zu from %zu to %zu", name, size,
             sizeof(size_t), 2 * sizeof(size_t), known);
  else return HK_OK;
  return HK_INVALID;
}

bool nam_struct_in(const void *given, void *room, size_t known, const char *name) {
  if (!given) return nam_fail("%s is NULL", name);
  size_t size;
  memcpy(&size, given, sizeof size);
  if (check_size(size, known, name)) return false;
  memset(room, 0, known);
  memcpy(room, given, size);
  memcpy(room, &known, sizeof known);
  return true;
}

hk_status nam_struct_out(void *to, const void *made, size_t known, const char *name) {
  if (!to) {
    nam_fail("%s is NULL", name);
    return HK_INVALID;
  }
  size_t size;
  memcpy(&size, to, sizeof size);
  const hk_status e = check_size(size, known, name);
  if (!e) memcpy((char *)to + sizeof size, (const char *)made + sizeof size, size - sizeof size);
  return e;
}
