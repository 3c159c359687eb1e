/* Status names and the per-thread sentence of the last failure. */
#include <stdarg.h>
#include <stdio.h>

#include "core/core.h"

static _Thread_local char sentence[512];

static const char *const names[] = {"HK_OK",     "HK_INVALID",   "HK_UNSUPPORTED", "HK_NO_MEMORY", "HK_WORKSPACE",
                                    "HK_SYNTAX", "HK_NO_WISDOM", "HK_FALLBACK",    "HK_DEVICE",    "HK_IO"};

hk_status hk_fail(hk_status status, const char *format, ...) {
  va_list ap;
  va_start(ap, format);
  vsnprintf(sentence, sizeof sentence, format, ap);
  va_end(ap);
  hk_log(HK_LOG_CHECK, "hankel,check,%s,%s", hk_status_name(status), sentence);
  return status;
}

const char *hk_last_error(void) { return sentence; }
const char *hk_version(void) { return HK_VERSION_TEXT; }
const char *hk_status_name(hk_status status) {
  return (unsigned)status < (unsigned)HK_COUNT(names) ? names[status] : "HK_?";
}
