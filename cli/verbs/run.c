/* `hankel run`: one convolution on .npy files. The problem is a problem string, or is read off the arrays' shapes and
 * the options (an x of rank + 2 axes, an f of rank + 2 axes in the same layout). Arrays are checked against the problem
 * before anything runs; y.npy gets the layout's shape, or is flat for strides that are no layout. */
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"
#include "io/npy.h"

static struct {
  const char *x, *f, *out, *c, *scale, *bias, *slopes, *f_zeros;
  const char *layout, *spec, *stride, *padding, *dilation, *in_dilation, *flip, *output_padding, *y_type;
  int64_t groups, batch_groups, x_zero, f_zero, y_zero;
  bool transposed;
} o = {.groups = 1, .batch_groups = 1};

static const cli_option table[] = {
    {"x", CLI_TEXT, &o.x, "FILE", "input"},
    {"f", CLI_TEXT, &o.f, "FILE", "filter"},
    {"out", CLI_TEXT, &o.out, "FILE", "where the result goes"},
    {"c", CLI_TEXT, &o.c, "FILE", "residual, in y's shape and type"},
    {"scale", CLI_TEXT, &o.scale, "FILE", "scale, one, or one per channel"},
    {"bias", CLI_TEXT, &o.bias, "FILE", "bias, one per channel"},
    {"slopes", CLI_TEXT, &o.slopes, "FILE", "slopes of prelu, one per channel"},
    {"f-zeros", CLI_TEXT, &o.f_zeros, "FILE", "zero points of f, one per channel (i4)"},
    {"layout", CLI_TEXT, &o.layout, "WORD", "last (default: n..c, k..c, n..k) or first (nc.., kc.., nk..)"},
    {"spec", CLI_TEXT, &o.spec, "X,F,Y", "axes by letters, e.g. NHWC,HWIO,NHWC, in place of --layout"},
    {"stride", CLI_TEXT, &o.stride, "N[xN..]", "stride"},
    {"padding", CLI_TEXT, &o.padding, "TEXT", "N, NxN, LO:HIxLO:HI, valid, same-upper, same-lower or causal"},
    {"dilation", CLI_TEXT, &o.dilation, "N[xN..]", "dilation of the filter"},
    {"in-dilation", CLI_TEXT, &o.in_dilation, "N[xN..]", "dilation of the input"},
    {"flip", CLI_TEXT, &o.flip, "N[xN..]", "1 where the filter is read backwards"},
    {"groups", CLI_INTEGER, &o.groups, "N", "feature groups"},
    {"batch-groups", CLI_INTEGER, &o.batch_groups, "N", "batch groups"},
    {"transposed", CLI_FLAG, &o.transposed, NULL, "transposed convolution; f is [c][k/groups].."},
    {"output-padding", CLI_TEXT, &o.output_padding, "N[xN..]", "of a transposed convolution"},
    {"y-type", CLI_TEXT, &o.y_type, "TYPE", "type of y (default: x's; s32 for int8)"},
    {"x-zero", CLI_INTEGER, &o.x_zero, "N", "zero point of x"},
    {"f-zero", CLI_INTEGER, &o.f_zero, "N", "zero point of f"},
    {"y-zero", CLI_INTEGER, &o.y_zero, "N", "zero point of y"},
    {0}};

static int file_read(cli_npy *a, const char *option, const char *path) {
  char why[CLI_NPY_WHY];
  if (!cli_npy_read(a, path, why)) return CLI_OK;
  cli_error("--%s %s: %s", option, path, why);
  return CLI_USAGE;
}

/* "3" for every dimension, or one number each; lo:hi pairs when hi is given. */
static int sizes_read(const char *option, const char *text, int rank, int64_t fill, int64_t *lo, int64_t *hi) {
  for (int d = 0; d < rank; d++) lo[d] = fill;
  if (hi) memcpy(hi, lo, sizeof *hi * (size_t)rank);
  if (!text) return CLI_OK;
  int d = 0;
  for (const char *at = text;; at++, d++) {
    char *end;
    errno = 0;
    if (d == rank) goto bad;
    lo[d] = strtoll(at, &end, 10);
    if (end == at || errno) goto bad;
    if (hi) hi[d] = lo[d];
    if (hi && *end == ':') {
      at = end + 1;
      hi[d] = strtoll(at, &end, 10);
      if (end == at || errno) goto bad;
    }
    at = end;
    if (!*at) break;
    if (*at != 'x' && *at != ',') goto bad;
  }
  if (d != 0 && d != rank - 1) goto bad;
  for (int i = 1; d == 0 && i < rank; i++) {
    lo[i] = lo[0];
    if (hi) hi[i] = hi[0];
  }
  return CLI_OK;
bad:
  cli_error("--%s: '%s' is not one number, or %d joined by x", option, text, rank);
  return CLI_USAGE;
}

static bool padding_named(const char *text, hk_padding *padding) {
  static const char *const words[] = {"valid", "same-upper", "same-lower", "causal"};
  for (int i = 0; text && i < 4; i++)
    if (!strcmp(text, words[i])) {
      *padding = (hk_padding)(HK_PAD_VALID + i);
      return true;
    }
  *padding = HK_PAD_EXPLICIT;
  return false;
}

static int desc_make(hk_conv_desc *d, const cli_npy *x, const cli_npy *f, hk_layout layout) {
  int rank = x->rank - 2, first = layout == HK_CHANNELS_LAST ? 1 : 2,
      channel = layout == HK_CHANNELS_LAST ? rank + 1 : 1;
  *d = (hk_conv_desc){.size = sizeof *d, .rank = rank, .layout = layout, .x_type = x->type, .f_type = f->type};
  d->n = x->shape[0];
  d->c = x->shape[channel];
  d->groups = o.groups;
  d->k = o.transposed ? f->shape[channel] * (o.groups ? o.groups : 1) : f->shape[0];
  for (int i = 0; i < rank; i++) {
    d->in[i] = x->shape[first + i];
    d->window[i] = f->shape[first + i];
  }
  if (sizes_read("stride", o.stride, rank, 1, d->stride, NULL) ||
      sizes_read("dilation", o.dilation, rank, 1, d->dilation, NULL) ||
      sizes_read("output-padding", o.output_padding, rank, 0, d->output_padding, NULL))
    return CLI_USAGE;
  if (!padding_named(o.padding, &d->padding)) return sizes_read("padding", o.padding, rank, 0, d->pad_lo, d->pad_hi);
  return CLI_OK;
}

static int types_make(const cli_npy *x, hk_type *y) {
  *y = x->type == HK_S8 || x->type == HK_U8 ? HK_S32 : x->type;
  if (!o.y_type || cli_type_read(o.y_type, y)) return CLI_OK;
  cli_error("--y-type: '%s' is no type", o.y_type);
  return CLI_USAGE;
}

/* The filter holds c/groups channels: anything else would be read wrongly, so it is refused here. */
static int filter_agrees(const hk_conv_desc *d, const cli_npy *f) {
  int channel = d->layout == HK_CHANNELS_LAST ? d->rank + 1 : 1;
  int64_t groups = d->groups > 1 ? d->groups : 1, want = o.transposed ? d->c : d->c / groups;
  int64_t have = f->shape[o.transposed ? 0 : channel];
  if (want == have && d->c % groups == 0) return CLI_OK;
  cli_error("f has %lld input channels where x has %lld in %lld groups", (long long)have, (long long)d->c,
            (long long)groups);
  return CLI_USAGE;
}

static int problem_plain(hk_problem *p, const hk_conv_desc *d) {
  *p = (hk_problem){.size = sizeof *p, .rank = d->rank, .x_type = d->x_type, .f_type = d->f_type, .y_type = d->y_type};
  p->n = d->n;
  p->c = d->c;
  p->k = d->k;
  p->feature_groups = d->groups ? d->groups : 1;
  p->batch_groups = o.batch_groups ? o.batch_groups : 1;
  memcpy(p->in, d->in, sizeof p->in);
  memcpy(p->window, d->window, sizeof p->window);
  memcpy(p->stride, d->stride, sizeof p->stride);
  memcpy(p->dilation, d->dilation, sizeof p->dilation);
  memcpy(p->pad_lo, d->pad_lo, sizeof p->pad_lo);
  memcpy(p->pad_hi, d->pad_hi, sizeof p->pad_hi);
  int64_t flip[HK_MAX_RANK];
  if (sizes_read("in-dilation", o.in_dilation, d->rank, 1, p->in_dilation, NULL) ||
      sizes_read("flip", o.flip, d->rank, 0, flip, NULL))
    return CLI_USAGE;
  for (int i = 0; i < d->rank; i++) {
    if (flip[i] != 0 && flip[i] != 1) {
      cli_error("--flip: %lld is neither 0 nor 1", (long long)flip[i]);
      return CLI_USAGE;
    }
    p->reverse[i] = flip[i] != 0;
  }
  hk_status s = d->padding != HK_PAD_EXPLICIT ? hk_problem_pad(p, d->padding) : HK_OK;
  if (!s) s = hk_problem_dense(p, d->layout);
  return s ? cli_refused(s, "the arrays and options") : CLI_OK;
}

static int problem_spec(hk_problem *p, const hk_conv_desc *d, const cli_npy *x, const cli_npy *f) {
  char text[64], *rest = NULL;
  int64_t pairs[2 * HK_MAX_RANK], in_dilation[HK_MAX_RANK];
  snprintf(text, sizeof text, "%s", o.spec);
  hk_xla_desc xla = {.size = sizeof xla,
                     .x_shape = x->shape,
                     .f_shape = f->shape,
                     .strides = d->stride,
                     .padding = pairs,
                     .rhs_dilation = d->dilation,
                     .lhs_dilation = in_dilation,
                     .feature_group_count = o.groups,
                     .batch_group_count = o.batch_groups,
                     .x_type = d->x_type,
                     .f_type = d->f_type,
                     .y_type = d->y_type};
  xla.x_spec = strtok_r(text, ",", &rest);
  xla.f_spec = strtok_r(NULL, ",", &rest);
  xla.y_spec = strtok_r(NULL, ",", &rest);
  size_t axes = (size_t)x->rank;
  if (!xla.y_spec || (rest && *rest) || strlen(xla.x_spec) != axes || strlen(xla.f_spec) != axes ||
      strlen(xla.y_spec) != axes) {
    cli_error("--spec: '%s' is not three words of %zu letters joined by commas", o.spec, axes);
    return CLI_USAGE;
  }
  if (sizes_read("in-dilation", o.in_dilation, d->rank, 1, in_dilation, NULL)) return CLI_USAGE;
  for (int i = 0; i < d->rank; i++) {
    pairs[2 * i] = d->pad_lo[i];
    pairs[2 * i + 1] = d->pad_hi[i];
  }
  hk_status s = hk_problem_xla(p, &xla);
  if (!s && d->padding != HK_PAD_EXPLICIT) s = hk_problem_pad(p, d->padding);
  /* The named paddings change the output's size, so the strides are derived again with the numbers. */
  if (!s && d->padding != HK_PAD_EXPLICIT) {
    for (int i = 0; i < d->rank; i++) {
      pairs[2 * i] = p->pad_lo[i];
      pairs[2 * i + 1] = p->pad_hi[i];
    }
    s = hk_problem_xla(p, &xla);
  }
  return s ? cli_refused(s, "the arrays and options") : CLI_OK;
}

/* Numbers that would be cut to another when they are stored. */
static int numbers_agree(void) {
  const struct {
    const char *name;
    int64_t value, low, high;
  } numbers[] = {{"groups", o.groups, 1, INT64_MAX},
                 {"batch-groups", o.batch_groups, 1, INT64_MAX},
                 {"x-zero", o.x_zero, INT32_MIN, INT32_MAX},
                 {"f-zero", o.f_zero, INT32_MIN, INT32_MAX},
                 {"y-zero", o.y_zero, INT32_MIN, INT32_MAX}};
  for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
    if (numbers[i].value < numbers[i].low || numbers[i].value > numbers[i].high) {
      cli_error("--%s: %lld is not between %lld and %lld", numbers[i].name, (long long)numbers[i].value,
                (long long)numbers[i].low, (long long)numbers[i].high);
      return CLI_USAGE;
    }
  return CLI_OK;
}

static int problem_from_arrays(hk_problem *p, const cli_npy *x, const cli_npy *f, hk_layout layout) {
  hk_conv_desc d;
  if (x->rank < 3 || x->rank > 2 + HK_MAX_RANK || f->rank != x->rank) {
    cli_error("x has %d axes and f has %d; both need 3 to %d", x->rank, f->rank, 2 + HK_MAX_RANK);
    return CLI_USAGE;
  }
  int code = desc_make(&d, x, f, layout);
  if (code || (code = types_make(x, &d.y_type))) return code;
  if (o.spec) code = problem_spec(p, &d, x, f);
  else if ((code = filter_agrees(&d, f))) return code;
  else if (o.transposed) {
    hk_status s = hk_problem_conv_transpose(p, &d);
    code = s ? cli_refused(s, "the arrays and options") : CLI_OK;
  } else code = problem_plain(p, &d);
  if (!code) code = numbers_agree();
  p->x_zero = (int32_t)o.x_zero;
  p->f_zero = (int32_t)o.f_zero;
  p->y_zero = (int32_t)o.y_zero;
  return code;
}

/* y's shape: the spec's letters, the layout that its dense strides are, or flat. */
static int shape_of_y(const hk_problem *p, hk_gate gate, int64_t elements, int64_t *shape) {
  int64_t out[HK_MAX_RANK], n = 0, k = gate ? p->k / 2 : p->k;
  shape[0] = elements;
  if (hk_problem_output(p, out, &n)) return 1;
  for (int layout = 0; layout < 2; layout++) {
    hk_problem dense = *p;
    if (gate ? hk_problem_dense_y(&dense, (hk_layout)layout, k) : hk_problem_dense(&dense, (hk_layout)layout)) continue;
    if (memcmp(&dense.y, &p->y, sizeof dense.y) || o.spec) continue;
    shape[0] = n;
    shape[layout == HK_CHANNELS_LAST ? p->rank + 1 : 1] = k;
    for (int d = 0; d < p->rank; d++) shape[(layout == HK_CHANNELS_LAST ? 1 : 2) + d] = out[d];
    return p->rank + 2;
  }
  const char *spec = o.spec ? strrchr(o.spec, ',') + 1 : NULL;
  for (int i = 0, space = 0; spec && spec[i]; i++) shape[i] = spec[i] == 'N' ? n : spec[i] == 'C' ? k : out[space++];
  return spec ? (int)strlen(spec) : 1;
}

typedef struct vectors {
  cli_npy c, scale, bias, slopes, f_zeros;
} vectors;

static int vector_read(cli_npy *a, const char *option, const char *path, hk_type type, int64_t count) {
  if (!path) return CLI_OK;
  int code = file_read(a, option, path);
  if (code) return code;
  if (a->type == type && a->count == count) return CLI_OK;
  cli_error("--%s %s: holds %lld elements of %s, the problem needs %lld of %s", option, path, (long long)a->count,
            hk_type_name(a->type), (long long)count, hk_type_name(type));
  return CLI_USAGE;
}

static int vectors_read(vectors *v, const hk_problem *p, const hk_epilogue *e, int64_t y_elements) {
  hk_type wide = cli_problem_is_double(p) ? HK_F64 : HK_F32, bias = cli_problem_is_int8(p) ? HK_S32 : wide;
  int code = vector_read(&v->c, "c", o.c, p->y_type, y_elements);
  if (!code) code = vector_read(&v->scale, "scale", o.scale, wide, e->scale == 1 ? 1 : p->k);
  if (!code) code = vector_read(&v->bias, "bias", o.bias, bias, p->k);
  if (!code) code = vector_read(&v->slopes, "slopes", o.slopes, wide, p->k);
  if (!code) code = vector_read(&v->f_zeros, "f-zeros", o.f_zeros, HK_S32, p->k);
  return code;
}

/* Options that come without their part of the epilogue add it, so that --bias b.npy alone means a bias. */
static int epilogue_make(hk_epilogue *e) {
  int code = cli_planning_epilogue(e);
  if (!code && o.slopes && e->act != HK_ACT_PRELU && e->act2 != HK_ACT_PRELU) {
    cli_error("--slopes does not apply to an epilogue without prelu; give --epilogue prelu");
    return CLI_USAGE;
  }
  if (o.bias) e->bias = 1;
  if (o.scale && !e->scale) e->scale = 2;
  if (o.c && !e->residual) {
    e->residual = HK_RESIDUAL_AFTER;
    e->beta = 1;
  }
  return code;
}

static int compute(const hk_problem *p, const hk_epilogue *e, const hk_options *options, const cli_npy *x,
                   const cli_npy *f, const vectors *v) {
  hk_extent ex, ef, ey;
  hk_status s = hk_problem_extents(p, &ex, &ef, &ey);
  if (s) return cli_refused(s, "the problem");
  hk_plan *plan = NULL;
  cli_operands memory = {0};
  size_t bytes = hk_type_bytes(p->y_type);
  char *y = calloc((size_t)ey.elements + 1, bytes), why[CLI_NPY_WHY];
  hk_weights w = {.size = sizeof w,
                  .f = (char *)f->data + (size_t)ef.below * hk_type_bytes(p->f_type),
                  .scale = v->scale.data,
                  .bias = v->bias.data,
                  .slopes = v->slopes.data,
                  .f_zero = v->f_zeros.data};
  int code = CLI_FAILED;
  if (!y) cli_error("no memory for %lld elements of y", (long long)ey.elements);
  else if ((s = hk_plan_create(&plan, p, e, options, &w))) code = cli_refused(s, "the problem");
  else if (cli_operands_workspace(&memory, plan)) cli_error("no memory for the workspace");
  else {
    hk_args args = {.size = sizeof args,
                    .x = (char *)x->data + (size_t)ex.below * hk_type_bytes(p->x_type),
                    .f = w.f,
                    .y = y + (size_t)ey.below * bytes,
                    .scale = w.scale,
                    .bias = w.bias,
                    .c = v->c.data ? (char *)v->c.data + (size_t)ey.below * bytes : NULL,
                    .workspace = memory.workspace,
                    .workspace_bytes = hk_plan_workspace(plan)};
    int64_t shape[HK_MAX_RANK + 2];
    int rank = shape_of_y(p, e->gate, ey.elements, shape);
    if ((s = cli_execute(options, plan, p, e, &args))) code = cli_refused(s, "execution");
    else if (cli_npy_write(o.out, p->y_type, rank, shape, y, why)) cli_error("--out %s: %s", o.out, why);
    else code = CLI_OK;
  }
  hk_plan_destroy(plan);
  cli_operands_free(&memory);
  free(y);
  return code;
}

/* A problem string does not say how the arrays are shaped, only how long and of what type they must be. */
static int arrays_agree(const hk_problem *p, const cli_npy *x, const cli_npy *f) {
  hk_extent ex, ef, ey;
  hk_status s = hk_problem_extents(p, &ex, &ef, &ey);
  if (s) return cli_refused(s, "the problem");
  const cli_npy *have[2] = {x, f};
  hk_type type[2] = {p->x_type, p->f_type};
  int64_t count[2] = {ex.elements, ef.elements};
  for (int i = 0; i < 2; i++)
    if (have[i]->type != type[i] || have[i]->count != count[i]) {
      cli_error("%s holds %lld elements of %s, the problem needs %lld of %s", i ? "f" : "x", (long long)have[i]->count,
                hk_type_name(have[i]->type), (long long)count[i], hk_type_name(type[i]));
      return CLI_USAGE;
    }
  return CLI_OK;
}

/* What a problem string states itself, what --spec leaves no room for, and what only one kind of problem has. */
static int options_agree(const char *text) {
  static const char *const of_arrays[] = {
      "layout",       "spec",       "stride",         "padding", "dilation", "in-dilation", "flip",   "groups",
      "batch-groups", "transposed", "output-padding", "y-type",  "x-zero",   "f-zero",      "y-zero", NULL};
  static const char *const not_spec[] = {"layout", "flip", "transposed", "output-padding", NULL};
  static const char *const not_transposed[] = {"in-dilation", "flip", "batch-groups", NULL};
  static const char *const of_transposed[] = {"output-padding", NULL};
  if (text) return cli_options_refuse(of_arrays, "a PROBLEM given as text, which states it itself");
  static const char *const of_text[] = {"grad", NULL};
  const int code = cli_options_refuse(of_text, "arrays alone; it needs a PROBLEM given as text");
  if (code) return code;
  if (o.spec) return cli_options_refuse(not_spec, "--spec");
  if (o.transposed) return cli_options_refuse(not_transposed, "--transposed");
  return cli_options_refuse(of_transposed, "a convolution without --transposed");
}

static int run_on(const char *text, const hk_epilogue *e, const hk_options *options, const cli_npy *x,
                  const cli_npy *f) {
  cli_item item = {0};
  hk_layout layout;
  int code = cli_layout_read(o.layout, &layout);
  if (code) return code;
  if (text) {
    hk_status s = cli_item_parse(&item, text, false);
    code = s ? cli_refused(s, text) : CLI_OK;
  } else code = problem_from_arrays(&item.problem, x, f, layout);
  int64_t k = item.problem.k;
  if (!code && e->gate && !text) {
    hk_status s = hk_problem_dense_y(&item.problem, layout, k / 2);
    code = s ? cli_refused(s, "the gate") : CLI_OK;
  }
  if (!code) code = arrays_agree(&item.problem, x, f);
  hk_extent ex, ef, ey;
  if (!code && hk_problem_extents(&item.problem, &ex, &ef, &ey)) code = CLI_USAGE;
  vectors v = {0};
  if (!code) code = vectors_read(&v, &item.problem, e, ey.elements);
  if (!code) code = compute(&item.problem, e, options, x, f, &v);
  cli_npy *all[] = {&v.c, &v.scale, &v.bias, &v.slopes, &v.f_zeros};
  for (int i = 0; i < 5; i++) cli_npy_free(all[i]);
  return code;
}

int cli_run(const cli_verb *verb, int argc, char **argv) {
  const cli_option *const tables[] = {table, cli_plan_table, NULL};
  const char *word[1] = {NULL};
  int words = 1, code;
  hk_options options;
  hk_epilogue e;
  if (!cli_options_read(verb, tables, argc, argv, word, &words, &code)) return code;
  if (!o.x || !o.f || !o.out) {
    cli_error("--x, --f and --out are needed; usage: hankel %s", verb->usage);
    return CLI_USAGE;
  }
  if ((code = options_agree(words ? word[0] : NULL))) return code;
  if ((code = cli_planning_options(&options)) || (code = epilogue_make(&e))) return code;
  cli_npy x = {0}, f = {0};
  code = file_read(&x, "x", o.x);
  if (!code) code = file_read(&f, "f", o.f);
  if (!code) code = run_on(words ? word[0] : NULL, &e, &options, &x, &f);
  cli_npy_free(&x);
  cli_npy_free(&f);
  return code;
}
