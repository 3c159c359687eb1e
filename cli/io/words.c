/* Words for people: errors, notes, colour, the progress bar, and texts of the library as whole strings. All of it goes
 * to stderr except what a caller prints itself. */
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "cli.h"

static bool progress_shown;

bool cli_color(FILE *file) {
  const char *no = getenv("NO_COLOR"), *term = getenv("TERM");
  return isatty(fileno(file)) && !(no && *no) && !(term && !strcmp(term, "dumb"));
}

const char *cli_paint(FILE *file, const char *code) { return cli_color(file) ? code : ""; }

static void words(const char *label, const char *code, const char *format, va_list list) {
  cli_progress_end();
  fprintf(stderr, "%shankel:%s ", cli_paint(stderr, code), cli_paint(stderr, "\033[0m"));
  if (*label) fprintf(stderr, "%s: ", label);
  vfprintf(stderr, format, list);
  fputc('\n', stderr);
}

void cli_error(const char *format, ...) {
  va_list list;
  va_start(list, format);
  words("error", "\033[1;31m", format, list);
  va_end(list);
}

void cli_note(const char *format, ...) {
  va_list list;
  va_start(list, format);
  words("", "\033[1m", format, list);
  va_end(list);
}

int cli_exit_code(hk_status status) {
  switch (status) {
  case HK_OK: return CLI_OK;
  case HK_INVALID:
  case HK_SYNTAX: return CLI_USAGE;
  case HK_UNSUPPORTED:
  case HK_NO_WISDOM:
  case HK_FALLBACK:
  case HK_DEVICE: return CLI_UNSUPPORTED;
  default: return CLI_FAILED;
  }
}

int cli_refused(hk_status status, const char *what) {
  cli_error("%s: %s (%s)", what, hk_last_error(), hk_status_name(status));
  return cli_exit_code(status);
}

void cli_progress(int64_t done, int64_t total, const char *what) {
  static double last;
  double now = cli_now();
  if (!isatty(fileno(stderr)) || (done < total && now - last < 0.1)) return;
  last = now;
  struct winsize size = {0};
  int width = ioctl(fileno(stderr), TIOCGWINSZ, &size) || size.ws_col < 40 ? 80 : size.ws_col;
  int bar = 24, full = total > 0 ? (int)(bar * done / total) : bar;
  char line[24 + 1];
  for (int i = 0; i < bar; i++) line[i] = i < full ? '#' : '-';
  line[bar] = 0;
  fprintf(stderr, "\r\033[K[%s] %lld/%lld %.*s", line, (long long)done, (long long)total, width - bar - 26, what);
  fflush(stderr);
  progress_shown = true;
}

void cli_progress_end(void) {
  if (progress_shown) fputs("\r\033[K", stderr);
  progress_shown = false;
}

char *cli_text(const char *format, ...) {
  char *text = NULL;
  va_list list;
  va_start(list, format);
  if (vasprintf(&text, format, list) < 0) text = NULL;
  va_end(list);
  return text;
}

typedef hk_status (*print_fn)(const void *, char *, size_t, size_t *);

static char *text_of(print_fn print, const void *what) {
  size_t length = 0;
  char probe[256];
  if (print(what, probe, sizeof probe, &length) && !length) return NULL;
  char *text = malloc(length + 1);
  if (text && print(what, text, length + 1, NULL)) {
    free(text);
    text = NULL;
  }
  return text;
}

static hk_status problem_print(const void *p, char *b, size_t s, size_t *l) { return hk_problem_print(p, b, s, l); }
static hk_status epilogue_print(const void *e, char *b, size_t s, size_t *l) { return hk_epilogue_print(e, b, s, l); }
static hk_status decision_print(const void *p, char *b, size_t s, size_t *l) { return hk_plan_decision(p, b, s, l); }
static hk_status story_print(const void *p, char *b, size_t s, size_t *l) { return hk_plan_print(p, b, s, l); }
char *cli_problem_text(const hk_problem *p) { return text_of(problem_print, p); }
char *cli_epilogue_text(const hk_epilogue *e) { return text_of(epilogue_print, e); }
char *cli_decision_text(const hk_plan *plan) { return text_of(decision_print, plan); }
char *cli_story_text(const hk_plan *plan) { return text_of(story_print, plan); }
