/* Log lines: HANKEL_VERBOSE holds oneDNN's words (none, error, warn, check, dispatch, profile_create, profile_exec,
 * all, or 0, 1, 2) and trace, joined by commas. Lines go to a callback, HANKEL_LOGFILE, or stderr. */
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"

static const struct {
  const char *word;
  uint32_t bits;
} words[] = {{"none", 0},
             {"0", 0},
             {"error", HK_LOG_ERROR},
             {"warn", HK_LOG_WARN},
             {"check", HK_LOG_CHECK},
             {"dispatch", HK_LOG_DISPATCH},
             {"profile_create", HK_LOG_CREATE},
             {"profile_exec", HK_LOG_EXEC},
             {"trace", HK_LOG_TRACE},
             {"profile", HK_LOG_CREATE | HK_LOG_EXEC},
             {"1", HK_LOG_EXEC | HK_LOG_ERROR},
             {"2", HK_LOG_EXEC | HK_LOG_ERROR | HK_LOG_CREATE},
             {"all", 127}};

_Atomic uint32_t hk_log_mask;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static hk_log_fn sink;
static void *sink_context;
static FILE *file;

/* Adds the bits of the word s[0..n); returns false if it is unknown. */
static bool word_add(const char *s, size_t n, uint32_t *bits) {
  for (int i = 0; i < HK_COUNT(words); i++)
    if (strlen(words[i].word) == n && !strncmp(words[i].word, s, n)) {
      *bits |= words[i].bits;
      return true;
    }
  return n == 0;
}

/* Reports the first unknown word in one line, whatever the other words select. */
uint32_t hk_log_words(void) {
  static atomic_flag told = ATOMIC_FLAG_INIT;
  const char *text = getenv("HANKEL_VERBOSE"), *s = text, *unknown = NULL;
  uint32_t bits = s && *s ? 0 : HK_LOG_ERROR;
  while (s && *s) {
    const size_t n = strcspn(s, ",");
    if (!word_add(s, n, &bits) && !unknown) unknown = s;
    s += n + (s[n] == ',');
  }
  if (unknown) bits |= HK_LOG_ERROR;
  atomic_store_explicit(&hk_log_mask, bits | 0x80000000u, memory_order_relaxed);
  if (unknown && !atomic_flag_test_and_set(&told))
    hk_log(HK_LOG_ERROR,
           "hankel,error,environment,HANKEL_VERBOSE is '%.80s': '%.*s' is ignored; the words are none, error, warn,"
           " check, dispatch, profile_create, profile_exec, profile, trace, all, 0, 1 and 2, joined by commas",
           text, (int)(strcspn(unknown, ",") < 40 ? strcspn(unknown, ",") : 40), unknown);
  return bits;
}

void hk_log(uint32_t word, const char *format, ...) {
  char line[4096]; /* a problem, its decision, and both again in a command */
  if (!hk_log_on(word)) return;
  va_list ap;
  va_start(ap, format);
  vsnprintf(line, sizeof line, format, ap);
  va_end(ap);
  pthread_mutex_lock(&lock);
  if (sink) {
    sink(sink_context, line);
  } else {
    if (!file) {
      const char *path = getenv("HANKEL_LOGFILE");
      file = path && *path ? fopen(path, "a") : NULL;
      if (!file) {
        file = stderr;
        if (path && *path)
          fprintf(file,
                  "hankel,error,environment,HANKEL_LOGFILE is '%.400s', which cannot be opened; accepted: a file "
                  "that can be appended to; log lines go to stderr\n",
                  path);
      }
    }
    fprintf(file, "%s\n", line);
    fflush(file);
  }
  pthread_mutex_unlock(&lock);
}

void hk_log_set(hk_log_fn fn, void *context) {
  pthread_mutex_lock(&lock);
  sink = fn;
  sink_context = context;
  pthread_mutex_unlock(&lock);
}
