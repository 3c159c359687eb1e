/* `hankel compare OLD.json NEW.json`: what got slower beyond noise, from two outputs of `hankel bench --json` (or any in
 * google-benchmark's shape with medians). Noise is the larger of --threshold and the quartile distances of both runs.
 * Exit 1 when anything is slower. Reading JSON needs jansson; without it the verb is unsupported. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"

static double threshold = 5;
static bool all;
static const cli_option table[] = {{"threshold", CLI_REAL, &threshold, "PERCENT", "differences below this are noise (default 5)"},
                                   {"all", CLI_FLAG, &all, NULL, "list the problems that did not change, too"},
                                   {0}};

#ifdef HK_HAVE_JANSSON
#include <jansson.h>

static json_t *load(const char *path) {
  json_error_t error;
  json_t *root = json_load_file(path, JSON_REJECT_DUPLICATES, &error);
  json_t *list = root ? json_object_get(root, "benchmarks") : NULL;
  if (json_is_array(list)) return root;
  cli_error("%s: %s", path, root ? "has no array \"benchmarks\"" : error.text);
  json_decref(root);
  return NULL;
}

static const char *text_of(const json_t *item, const char *key) {
  const char *s = json_string_value(json_object_get(item, key));
  return s ? s : "";
}

/* real_time of a run's aggregate, in us; 0 when it is not there */
static double time_of(const json_t *list, const char *run, const char *aggregate) {
  size_t i;
  json_t *item;
  json_array_foreach(list, i, item) {
    if (strcmp(text_of(item, "run_name"), run) || strcmp(text_of(item, "aggregate_name"), aggregate)) continue;
    const json_t *time = json_object_get(item, "real_time");
    const char *unit = text_of(item, "time_unit");
    const double scale = !strcmp(unit, "ns") ? 1e-3 : !strcmp(unit, "ms") ? 1e3 : !strcmp(unit, "s") ? 1e6 : 1;
    const double v = json_is_number(time) ? json_number_value(time) * scale : 0;
    return isfinite(v) && v > 0 ? v : 0;
  }
  return 0;
}

static int compare(const json_t *old_list, const json_t *new_list) {
  static const char *const head[] = {"problem", "old us", "new us", "new/old", "noise %", ""};
  cli_table t = {.columns = 6};
  size_t i;
  json_t *item;
  int slower = 0, faster = 0, same = 0, missing = 0;
  double sum = 0;
  for (int c = 0; c < 6; c++) cli_table_add(&t, c, strdup(head[c]));
  json_array_foreach(new_list, i, item) {
    const char *run = text_of(item, "run_name");
    if (strcmp(text_of(item, "aggregate_name"), "median") || !*run) continue;
    const double now = time_of(new_list, run, "median"), then = time_of(old_list, run, "median");
    if (now <= 0 || then <= 0) {
      missing++;
      continue;
    }
    const double noise = fmax(threshold, 100 * (time_of(new_list, run, "iqr") + time_of(old_list, run, "iqr")) / then);
    const double change = 100 * (now / then - 1);
    const char *word = change > noise ? "slower" : change < -noise ? "faster" : "";
    slower += change > noise, faster += change < -noise, same += !*word;
    sum += log(now / then);
    if (!*word && !all) continue;
    cli_table_add(&t, 0, strdup(run));
    cli_table_add(&t, 1, cli_text("%.2f", then));
    cli_table_add(&t, 2, cli_text("%.2f", now));
    cli_table_add(&t, 3, cli_text("%.3f", now / then));
    cli_table_add(&t, 4, cli_text("%.1f", noise));
    cli_table_add(&t, 5, strdup(word));
  }
  if (t.rows > 1) cli_table_print(&t, stdout);
  cli_table_free(&t);
  const int count = slower + faster + same;
  printf("%d slower, %d faster, %d the same, %d not in both", slower, faster, same, missing);
  if (count) printf("; new/old in geometric mean %.3f", exp(sum / count));
  putchar('\n');
  if (!count) {
    cli_error("the files have no problem in common");
    return CLI_USAGE;
  }
  return slower ? CLI_FAILED : CLI_OK;
}

static int files_compare(const char *old_path, const char *new_path) {
  json_t *a = load(old_path), *b = load(new_path);
  const int code = a && b ? compare(json_object_get(a, "benchmarks"), json_object_get(b, "benchmarks")) : CLI_USAGE;
  json_decref(a);
  json_decref(b);
  return code;
}
#else
static int files_compare(const char *old_path, const char *new_path) {
  (void)old_path, (void)new_path;
  cli_error("compare reads JSON, and this build was made without jansson");
  return CLI_UNSUPPORTED;
}
#endif

int cli_compare(const cli_verb *verb, int argc, char **argv) {
  const cli_option *const tables[] = {table, NULL};
  const char *word[2];
  int words = 2, code;
  if (!cli_options_read(verb, tables, argc, argv, word, &words, &code)) return code;
  if (words != 2 || !(threshold >= 0)) {
    cli_error("two files are needed and a threshold of 0 or more; usage: hankel %s", verb->usage);
    return CLI_USAGE;
  }
  return files_compare(word[0], word[1]);
}
