/* Reads the output of `hankel bench --json`, or any in google-benchmark's shape with medians: one entry a run, its
 * median and the quartile distance where there is one. Nothing in a file is trusted: types, signs and sizes are
 * checked. Reading JSON needs jansson; without it the reader says that it is unsupported. */
#include "bench/read.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void bench_times_free(bench_times *t) {
  for (int64_t i = 0; i < t->count; i++) free(t->at[i].run);
  free(t->at);
  *t = (bench_times){0};
}

#ifdef HK_HAVE_JANSSON
#include <jansson.h>

static const char *text_of(const json_t *item, const char *key) {
  const char *s = json_string_value(json_object_get(item, key));
  return s ? s : "";
}

/* real_time in us; 0 when it is not a positive number */
static double time_of(const json_t *item) {
  const json_t *time = json_object_get(item, "real_time");
  const char *unit = text_of(item, "time_unit");
  const double scale = !strcmp(unit, "ns") ? 1e-3 : !strcmp(unit, "ms") ? 1e3 : !strcmp(unit, "s") ? 1e6 : 1;
  const double v = json_is_number(time) ? json_number_value(time) * scale : 0;
  return isfinite(v) && v > 0 ? v : 0;
}

static bench_time *entry(bench_times *t, const char *run) {
  for (int64_t i = 0; i < t->count; i++)
    if (!strcmp(t->at[i].run, run)) return &t->at[i];
  return NULL;
}

static void collect(bench_times *t, const json_t *list) {
  size_t i;
  json_t *item;
  json_array_foreach(list, i, item) {
    const char *run = text_of(item, "run_name");
    const double v = time_of(item);
    if (strcmp(text_of(item, "aggregate_name"), "median") || !*run || v <= 0 || entry(t, run)) continue;
    t->at[t->count] = (bench_time){.run = strdup(run), .median = v};
    t->count += t->at[t->count].run != NULL;
  }
  json_array_foreach(list, i, item) {
    bench_time *e = strcmp(text_of(item, "aggregate_name"), "iqr") ? NULL : entry(t, text_of(item, "run_name"));
    if (e) e->iqr = time_of(item);
  }
}

int bench_times_read(bench_times *t, const char *text, size_t length, char *why) {
  json_error_t error;
  *t = (bench_times){0};
  json_t *root = json_loadb(text, length, JSON_REJECT_DUPLICATES, &error),
         *list = root ? json_object_get(root, "benchmarks") : NULL;
  int code = 0;
  if (!json_is_array(list)) {
    snprintf(why, 200, "%s", root ? "has no array \"benchmarks\"" : error.text);
    code = 2;
  } else if (!(t->at = calloc(json_array_size(list) + 1, sizeof *t->at))) {
    snprintf(why, 200, "there is no memory for it");
    code = 1;
  } else {
    collect(t, list);
  }
  json_decref(root);
  return code;
}
#else
int bench_times_read(bench_times *t, const char *text, size_t length, char *why) {
  (void)text, (void)length;
  *t = (bench_times){0};
  snprintf(why, 200, "reading JSON needs jansson, and this build was made without it");
  return 3;
}
#endif
