/* What the verbs of the command share: exit codes, option tables, words, tables, JSON, time. The command includes
 * hankel.h and nothing else of the library. Data goes to stdout, words to stderr. */
#ifndef CLI_H
#define CLI_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "hankel.h"

enum { CLI_OK = 0, CLI_FAILED = 1, CLI_USAGE = 2, CLI_UNSUPPORTED = 3 };

/* ---- verbs: one file each; main.c holds the table */
typedef struct cli_verb {
  const char *name, *usage, *summary;
  int (*main)(const struct cli_verb *verb, int argc, char **argv);
} cli_verb;
int cli_info(const cli_verb *verb, int argc, char **argv);
int cli_plan(const cli_verb *verb, int argc, char **argv);
int cli_run(const cli_verb *verb, int argc, char **argv);
int cli_check(const cli_verb *verb, int argc, char **argv);
int cli_bench(const cli_verb *verb, int argc, char **argv);
int cli_tune(const cli_verb *verb, int argc, char **argv);
int cli_compare(const cli_verb *verb, int argc, char **argv);
int cli_wisdom(const cli_verb *verb, int argc, char **argv);
int cli_demo(const cli_verb *verb, int argc, char **argv);

int cli_picture(const hk_problem *p, const hk_plan *plan, const char *path); /* picture.c: an SVG */

/* ---- option.c: one table per group of options; --help is printed from the same table */
typedef enum cli_option_kind { CLI_FLAG, CLI_TEXT, CLI_INTEGER, CLI_REAL, CLI_LIST } cli_option_kind;
typedef struct cli_texts { /* a repeatable text option */
  int count;
  const char *at[16];
} cli_texts;
typedef struct cli_option {
  const char *name; /* without the dashes; NULL ends a table */
  cli_option_kind kind;
  void *value; /* bool, const char *, int64_t, double or cli_texts */
  const char *argument, *help;
} cli_option;
/* Reads argv[1..]; tables ends with NULL. Keeps at most *words words that are not options in word and sets *words to
 * how many there were. Returns false to stop with *code (0 after --help). */
bool cli_options_read(const cli_verb *verb, const cli_option *const *tables, int argc, char **argv, const char **word,
                      int *words, int *code);
/* Refuses the first of names (NULL ends them) that cli_options_read met: prints "--NAME does not apply to WHERE" and
 * returns CLI_USAGE; CLI_OK when none was given. */
int cli_options_refuse(const char *const *names, const char *where);

/* The options every planning verb takes, and what they become. */
typedef struct cli_planning {
  int64_t threads, workspace;
  const char *isa, *device, *rigor, *math, *decision, *epilogue, *grad;
  double time_limit;
  bool batch_invariant, forbid_fallback, wisdom_only, flush_denormals, exact_denormals, unaligned, stateful;
} cli_planning;
extern cli_planning cli_plan_options;
extern const cli_option cli_plan_table[];
/* Both print the reason and return CLI_USAGE when a value is not understood. */
int cli_planning_options(hk_options *options);
int cli_planning_epilogue(hk_epilogue *epilogue);
/* Replaces a problem by that of the gradient that --grad names, if any. */
hk_status cli_planning_gradient(hk_problem *p);

/* ---- words.c */
void cli_error(const char *format, ...) __attribute__((format(printf, 1, 2)));
void cli_note(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* Prints hk_last_error() after `what` and gives the exit code that a status means. */
int cli_refused(hk_status status, const char *what);
int cli_exit_code(hk_status status);
bool cli_color(FILE *file); /* a terminal, and neither NO_COLOR nor TERM=dumb */
const char *cli_paint(FILE *file, const char *code);
void cli_progress(int64_t done, int64_t total, const char *what);
void cli_progress_end(void);
/* Returns a text that the library prints, in full; the caller frees it. NULL when the library refuses or memory is
 * exhausted. */
char *cli_problem_text(const hk_problem *p);
char *cli_epilogue_text(const hk_epilogue *e);
char *cli_decision_text(const hk_plan *plan);
char *cli_story_text(const hk_plan *plan);
char *cli_text(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* ---- table.c: rows of text, aligned; the first row is the head. Columns that hold numbers go right. */
typedef struct cli_table {
  int columns, rows, room;
  char **cell;
} cli_table;
void cli_table_add(cli_table *t, int column, char *owned); /* column 0 starts a row; takes the text */
void cli_table_print(const cli_table *t, FILE *file);
void cli_table_free(cli_table *t);

/* ---- json.c: a writer; keys are NULL inside arrays */
typedef struct cli_json {
  FILE *file;
  int depth;
  bool started[16];
} cli_json;
void cli_json_open(cli_json *j, const char *key, char bracket); /* '{' or '[' */
void cli_json_close(cli_json *j, char bracket);
void cli_json_text(cli_json *j, const char *key, const char *value); /* NULL prints null */
void cli_json_number(cli_json *j, const char *key, double value);
void cli_json_integer(cli_json *j, const char *key, int64_t value);
void cli_json_bool(cli_json *j, const char *key, bool value);

/* ---- clock.c */
double cli_now(void); /* seconds, monotonic */
extern bool cli_own_time;
double cli_tick(void); /* for timing: the same, or the thread's own time under --own-time */
typedef struct cli_spread {
  double median, low, high; /* low and high: the quartiles */
} cli_spread;
cli_spread cli_spread_of(double *samples, int count); /* sorts them */

/* ---- random.c: one generator for data and problems, so that a seed means the same everywhere */
uint64_t cli_random(uint64_t *state);
int64_t cli_random_below(uint64_t *state, int64_t n);
double cli_random_normal(uint64_t *state);
uint64_t cli_random_mix(uint64_t a, uint64_t b);
/* Makes this thread's generators draw from these bytes, and from their states once the bytes are used up; NULL: from
 * their states at once. Returns how many bytes of the former source were left. */
size_t cli_random_from(const void *bytes, size_t count);

/* ---- batch.c: problems from one text or a file */
typedef struct cli_item {
  hk_problem problem;
  char name[64];
  char types[64]; /* the type column of a .tsv; "" without one */
} cli_item;
typedef struct cli_items {
  int64_t count, room;
  cli_item *at;
} cli_items;
/* One problem as the command reads it: an optional --strides=X:W:Y, then a problem string; under --grad the problem of
 * its gradient. */
hk_status cli_item_parse(cli_item *item, const char *text, bool deconv);
/* Reads a file with one problem per line, or a .tsv in `layout`. Prints what is wrong and returns an exit code. */
int cli_items_read(cli_items *items, const char *path, bool deconv, hk_layout layout, const char *types);
int cli_layout_read(const char *text, hk_layout *layout); /* 0 when understood */
void cli_items_free(cli_items *items);
/* Prints which names there are and returns CLI_USAGE when no item's name holds text (--only); text may be NULL. */
int cli_items_only(const cli_items *items, const char *text);

/* ---- tensor.c: memory of a problem's operands */
typedef struct cli_operands {
  void *x, *f, *y, *c, *scale, *bias, *slopes, *workspace; /* pointers as hk_args wants them; NULL where not needed */
  void *block[8];
  hk_extent extent[3];
} cli_operands;
/* Allocates (64-byte aligned) and fills with N(0,1) values of a seed; workspace of the given size. */
hk_status cli_operands_make(cli_operands *o, const hk_problem *p, const hk_epilogue *e, uint64_t seed);
hk_status cli_operands_workspace(cli_operands *o, const hk_plan *plan);
void cli_operands_free(cli_operands *o);
hk_args cli_operands_args(const cli_operands *o, const hk_plan *plan);
hk_weights cli_operands_weights(const cli_operands *o);
/* device.c: executes on the options' device from tensors in host memory. */
hk_status cli_execute(const hk_options *o, const hk_plan *plan, const hk_problem *p, const hk_epilogue *e,
                      const hk_args *host);
/* Tensors that stay on the device they are timed on: `sets` copies of host's (0: more than the L2 holds). */
enum { CLI_SITE_SETS = 12 };
typedef struct cli_site {
  hk_device device;
  int sets, blocks;
  hk_args args[CLI_SITE_SETS];
  void *block[3 * CLI_SITE_SETS + 6];
  size_t bytes[3 * CLI_SITE_SETS + 6];
} cli_site;
hk_status cli_site_make(cli_site *s, hk_device device, int sets, const hk_problem *p, const hk_epilogue *e,
                        const hk_args *host);
void cli_site_free(cli_site *s);
/* The device's rate for a problem's types by its clocks and units, in flop/s; 0 where not known. */
double cli_gpu_peak(const hk_problem *p, uint32_t math);
double cli_site_time(const cli_site *s, const hk_plan *plan, int calls); /* mean seconds; infinite when it fails */
bool cli_problem_is_double(const hk_problem *p);                         /* scale, bias and user values are double */
bool cli_problem_is_int8(const hk_problem *p);
bool cli_type_read(const char *text, hk_type *type);
#endif
