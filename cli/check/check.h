/* The parts of `hankel check`: cases, their data between guard pages, the formula evaluated straight from the
 * specification, and the comparison of every decision with the reference. */
#ifndef CLI_CHECK_H
#define CLI_CHECK_H
#include "cli.h"

/* What a problem string and an epilogue text do not say. */
enum {
  WITH_LATE = 1,        /* weights, scale and bias come at execute */
  WITH_STATE = 2,       /* a stateful plan */
  WITH_USER = 4,        /* the activation is a user function */
  WITH_USER2 = 8,       /* a user function as the last step */
  WITH_STORE = 16,      /* a user store */
  WITH_C_STRIDES = 32,  /* the residual lies otherwise than y */
  WITH_IN_PLACE = 64,   /* the residual is y */
  WITH_F_ZEROS = 128,   /* a zero point per channel */
  WITH_NONFINITE = 256, /* some weights are Inf or NaN (floats only) */
  WITH_FLUSH = 512,     /* denormals are flushed during execute */
  WITH_LIKE = 1024,     /* hk_plan_create_like to another batch, size, padding and strides, and back */
  WITH_WISDOM = 2048,   /* the decision goes through wisdom */
  WITH_HOSTILE = 4096,  /* knobs out of range: refused, or right */
  WITH_ALIVE = 8192,    /* the plans stay alive and run again from several threads */
  WITH_WORDS = 14
};

typedef struct check_case {
  hk_problem p;
  hk_epilogue e;
  unsigned with;
  uint64_t seed;
  double reduce; /* as of --reduce: GFLOP, 0 never */
} check_case;
#define CHECK_REDUCE 0.02 /* without --reduce */

/* ---- check/shape.c: sizes by the specification's formulas, not by the library's */
typedef struct check_axes { /* of one tensor: group, outer, channel, three dimensions */
  int64_t size[6], stride[6], offset;
  int64_t elements, below; /* extent */
} check_axes;
typedef struct check_shape {
  int64_t groups, n, c, k, channels; /* channels of y: all k, or half under a gate */
  bool batch_grouped;
  int64_t in[3], span[3], window[3], out[3], stride[3], lo[3], dilation[3], in_dilation[3];
  bool reverse[3];
  int64_t gk, pixels, outputs, sums; /* outputs = n*channels*pixels; sums = n*k*groups*pixels */
  int64_t past;                      /* length of the state */
  check_axes x, f, y, residual;
} check_shape;
void check_shape_make(check_shape *s, const check_case *t);
/* Coordinates of the index-th output in the order [n][channel][p]. */
void check_output_at(const check_shape *s, int64_t index, int64_t *n, int64_t *channel, int64_t p[3]);
int64_t check_offset(const check_axes *a, int64_t group, int64_t outer, int64_t channel, const int64_t at[3]);
/* Where y's or the residual's element lies; channel counts over all groups. */
int64_t check_y_offset(const check_shape *s, const check_axes *a, int64_t n, int64_t channel, const int64_t at[3]);

/* Elements of x and of all sums, and products, as doubles: a draft may be of any size. */
void check_shape_size(const check_case *t, double *elements, double *products);

/* ---- check/memory.c */
typedef enum check_place { PLACE_HIGH, PLACE_LOW, PLACE_MIDDLE, PLACES } check_place;
enum { CHECK_MARGIN = 256 };
typedef struct check_region { /* writable bytes between two guards */
  char *base;
  size_t bytes;
} check_region;
/* `bytes` bytes whose end (HIGH) or start (LOW) touches a guard, or neither (MIDDLE, off any 16-byte boundary). */
char *check_region_place(check_region *r, size_t bytes, size_t element, check_place place);

/* ---- check/data.c */
typedef enum check_kind { KIND_INTEGERS, KIND_FLOATS } check_kind;
typedef struct check_vector { /* a tensor as bytes of its type and as doubles, extent only */
  hk_type type;
  int64_t elements;
  char *bytes;
  double *value;
} check_vector;
enum { V_X, V_F, V_C, V_SCALE, V_BIAS, V_SLOPES, V_F_ZERO, V_STATE, V_COUNT };
typedef struct check_data {
  check_kind kind;
  check_vector v[V_COUNT];
  char *owned; /* one byte per element of y's extent: 1 where the problem writes */
  bool x_has_nonfinite;
} check_data;
bool check_data_make(check_data *d, const check_case *t, const check_shape *s, check_kind kind);
void check_data_free(check_data *d);
double check_decode(hk_type type, const void *bytes, int64_t index);

/* ---- check/direct.c */
typedef struct check_sums {        /* of the outputs that are compared: all, or a sample of a large problem's */
  int64_t count, *sample;          /* sample NULL: all, in order */
  double *sum, *absolute, *square; /* [output][0], and [1] for the channel a gate pairs with it */
} check_sums;
/* At most `products` multiplications (0: no limit) unless one output takes more. */
bool check_sums_make(check_sums *u, const check_case *t, const check_shape *s, const check_data *d, double products);
void check_sums_free(check_sums *u);

/* ---- check/epilogue.c */
typedef struct check_value { /* a value and how far another evaluation may be from it */
  double v, error;
} check_value;
typedef struct check_output { /* which element of y */
  int64_t n, channel, at[3];
} check_output;
/* The stored value of one output element before conversion. error_of_sum[0..1]: of the sum(s) it is made of. */
check_value check_epilogue_eval(const check_case *t, const check_shape *s, const check_data *d, const double sum[2],
                                const double error_of_sum[2], double eps, const check_output *o);
bool check_epilogue_is_exact(const check_case *t);
double check_rounding(hk_type type, double magnitude); /* distance of neighbouring values there */
double check_eps(const hk_problem *p);                 /* of the accumulation type; 0 for int8 */
void check_user(void *user, const hk_at *at, int64_t count, void *values);
void check_user2(void *user, const hk_at *at, int64_t count, void *values);
void check_store(void *user, const hk_at *at, int64_t count, const void *values);
typedef struct check_sink { /* what user functions get: where a user store writes */
  const check_shape *shape;
  int rank;
  bool is_double;
  int64_t outside;      /* values stored at coordinates that y does not have */
  double *value;        /* [n][channel][p] */
  unsigned char *times; /* how often each was written */
} check_sink;

/* ---- check/case.c */
typedef enum check_verdict { CHECK_PASSED, CHECK_FAILED, CHECK_SKIPPED } check_verdict;
typedef struct check_report {
  double products;   /* a problem with more is compared on a sample of its outputs; 0: never */
  double work;       /* of a larger problem only some decisions run, so that they take about so many products; 0: all */
  int64_t decisions; /* executed */
  bool sampled;
  bool device_lost; /* a fault on the device ends its context: the process is of no more use */
  char reason[240]; /* of a skip */
  /* called once per failing decision, with a line that reproduces it */
  void (*failure)(void *context, const char *line);
  void *context;
  /* called before anything runs, so that a crash can be told */
  void (*before)(void *context, const char *line);
} check_report;
check_verdict check_run(const check_case *t, const hk_options *options, check_report *report);
/* Makes user functions, residual strides and so on agree with t->with. */
void check_case_settle(check_case *t);
/* Leaves out what a device does not take or promise: functions of the command, Inf and NaN weights beside padding. */
void check_case_leave_out(check_case *t);
char *check_line(const check_case *t, const hk_options *options, const char *decision);
bool check_with_read(const char *text, unsigned *with);

/* ---- check/random.c: a case and options from one state of random numbers, which alone decides all of it.
 * depthwise: only grouped and depthwise ones, mostly f32; small: at most 12,000 elements; gradient: those of the filter
 * or the input of a float problem; transposed: with input dilation. options: its device and ISA
 * cap are obeyed. */
typedef enum check_drawn {
  DRAW_ANY,
  DRAW_DEPTHWISE,
  DRAW_SMALL,
  DRAW_GRADIENT,
  DRAW_TRANSPOSED,
  DRAW_NARROW,
  DRAW_KINDS
} check_drawn;
void check_draw(check_case *t, hk_options *options, check_drawn kind, uint64_t *r);
void check_random(check_case *t, hk_options *options, check_drawn kind, uint64_t seed);
static inline int64_t check_between(uint64_t *r, int64_t a, int64_t b) { return a + cli_random_below(r, b - a + 1); }
static inline bool check_chance(uint64_t *r, int percent) { return cli_random_below(r, 100) < percent; }

/* ---- check/sizes.c: spatial sizes and channels, alone, coupled, and around the block edges of decisions */
typedef struct check_budget { /* how large a problem may be */
  double products, elements;
  int factor; /* on the sizes drawn first */
} check_budget;
check_budget check_budget_small(void);
check_budget check_budget_draw(uint64_t *r);
typedef enum check_family { FAMILY_ANY, FAMILY_DEPTHWISE, FAMILY_RECIPE, FAMILY_TRANSPOSED } check_family;
void check_sizes_draw(check_case *t, const check_budget *b, check_family family, uint64_t *r);
void check_recipe_draw(hk_problem *p, uint64_t *r); /* check/recipes.c; may change the rank and the types */
/* Redraws sizes around the knobs and tiles of a candidate decision; the strides of t->p are dense afterwards. */
void check_edges_draw(check_case *t, const hk_options *options, const check_budget *b, uint64_t *r);
bool check_sizes_fit(const check_case *t, const check_budget *b);

/* ---- check/strides.c */
void check_strides_draw(check_case *t, const check_budget *b, int percent, uint64_t *r); /* percent: not dense */
/* Other strides of x, of y, or of both; those of x or y that stay must fit t's sizes. */
void check_strides_redraw(check_case *t, uint64_t *r);

/* ---- check/options.c: options of random cases, as words of a line, and what they promise */
void check_options_draw(check_case *t, hk_options *options, uint64_t *r);
/* A limit of 0, or one below what the default plan reports. */
void check_workspace_draw(const check_case *t, hk_options *options, uint64_t *r);
/* The words of the command that set these options, each after a blank. */
char *check_options_text(const hk_options *options, bool forced);

/* ---- check/stats.c */
enum { CHECK_TRAITS = 192 };
void check_stats_note(int64_t counts[CHECK_TRAITS], const check_case *t, const hk_options *options);
void check_stats_print(const int64_t counts[CHECK_TRAITS], int64_t total, FILE *file);
#endif
