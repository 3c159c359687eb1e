/* Text building in a caller's buffer: what does not fit is counted, not written. */
#include <stdarg.h>
#include <stdio.h>
#include <time.h>

#include "base/base.h"

void hk_text_add(hk_text *t, const char *format, ...) {
  va_list ap;
  va_start(ap, format);
  const size_t room = t->buffer && t->length < t->size ? t->size - t->length : 0;
  const int n = vsnprintf(room ? t->buffer + t->length : NULL, room, format, ap);
  va_end(ap);
  if (n > 0) t->length += (size_t)n;
}

double hk_clock(void) {
  struct timespec ts;
  clock_gettime(CLOCK_MONOTONIC, &ts);
  return (double)ts.tv_sec + 1e-9 * (double)ts.tv_nsec;
}
