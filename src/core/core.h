/* What a convolution is: status sentences, element types, canonical geometry, canonical epilogue. */
#ifndef HK_CORE_H
#define HK_CORE_H
#include "base/base.h"

/* status.c: keeps the sentence for hk_last_error and returns status */
hk_status hk_fail(hk_status status, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* take.c: public structs of the size that the caller's header gives them. hk_take returns `given` itself, or a copy in
 * `room` (of `known` bytes) whose missing fields are zero, or NULL with a sentence. hk_give copies as much of `made` as
 * the caller has room for and leaves its size. */
const void *hk_take(const void *given, void *room, size_t known, const char *name);
hk_status hk_give(void *to, const void *made, size_t known, const char *name);

/* convert.c: one element at a time, the meaning of every type */
bool hk_type_valid(hk_type t);
bool hk_type_is_int8(hk_type t);
double hk_load_element(hk_type t, const void *base, int64_t index);
void hk_store_element(hk_type t, void *base, int64_t index, double value); /* rounds half to even, saturates */
float hk_f16_to_f32(uint16_t h);
uint16_t hk_f32_to_f16(float f);
uint16_t hk_f64_to_f16(double d);
float hk_bf16_to_f32(uint16_t h);
uint16_t hk_f32_to_bf16(float f);
uint16_t hk_f64_to_bf16(double d);
float hk_f8_to_f32(uint8_t b);
uint8_t hk_f64_to_f8(double d);

/* geom.c: every derived size, once. Always three spatial dimensions (leading ones of size 1), sizes per group,
 * filter reversal folded into f's strides and offset. */
typedef struct hk_geom {
  int32_t rank;
  hk_type x_type, f_type, y_type;
  hk_type acc_type; /* HK_F32, HK_F64 or HK_S32 */
  int64_t groups;   /* of either kind */
  bool batch_grouped;
  int64_t n, c, k;           /* per group: output batch, input channels, output channels */
  int64_t in[3], in_span[3]; /* in_span: with input dilation, in_dil*(in-1)+1, or 0 */
  int64_t win[3], out[3], stride[3], lo[3], hi[3], dil[3], in_dil[3];
  int32_t x_zero, f_zero, y_zero;
  hk_strides x, f, y; /* offset already counts reversal; add it to the pointers once */
  int64_t y_channels; /* k*groups, or half of it under a gate: then y's channel j lies at y.channel*j */
  int64_t taps;       /* win[0]*win[1]*win[2] */
  int64_t pixels;     /* out[0]*out[1]*out[2] */
  int64_t gm, gn, gk; /* n*pixels, k, c*taps: the GEMM of one group */
  double flops, bytes;
  /* > 0, of a view of y for algorithms that fold: channel k lies at k / fold * fold_step + k % fold */
  int64_t fold, fold_step;
} hk_geom;
/* Checks everything; the caller's problem is untrusted. y_channels 0 means k. */
hk_status hk_geom_make(hk_geom *g, const hk_problem *p, bool gated);
/* Plain, or gated when y's strides fit only that: for questions asked without an epilogue. */
hk_status hk_geom_make_either(hk_geom *g, const hk_problem *p);
/* Range of output positions p in [*lo, *hi) for which tap s of dimension d reads inside x (input dilation 1 only). */
void hk_geom_valid(const hk_geom *g, int d, int64_t s, int64_t *lo, int64_t *hi);
/* True when some output finds a tap of dimension d outside x, or between the elements of a dilated x. */
bool hk_geom_leaves(const hk_geom *g, int d);
/* The share of a window's taps that lie inside x, over all outputs (input dilation 1 only); of long windows a sample.
 */
double hk_geom_inside(const hk_geom *g);
/* Offset of channel k (over all groups) in y or in a residual laid out as s. */
static inline int64_t hk_geom_y_channel(const hk_geom *g, const hk_strides *s, int64_t k) {
  if (g->y_channels != g->k * g->groups) return s->channel * k;
  return s->group * (k / g->k) + s->channel * (k % g->k);
}
/* Where tap s of output p lies along dimension d of x, input dilation counted: the one place of this formula. Negative,
 * or in_span[d] and more, in the padding. */
static inline int64_t hk_geom_source(const hk_geom *g, int d, int64_t p, int64_t s) {
  return p * g->stride[d] + s * g->dil[d] - g->lo[d];
}
/* geom_view.c: geometries made from another in place, all derived fields counted again. */
void hk_geom_set_layout(hk_geom *g, const hk_strides *x, const hk_strides *y); /* NULL: as it is */
void hk_geom_set_types(hk_geom *g, hk_type x, hk_type f, hk_type y);           /* acc_type stays */
/* All k channels of every group at these strides, though g has a gate. */
void hk_geom_set_ungated(hk_geom *g, const hk_strides *y);
/* The last dimension's padding before x becomes elements of x. */
void hk_geom_set_joined(hk_geom *g, const hk_strides *x);
/* Some images and groups, and of dimension d >= 0 so many output rows and what they read, without padding. Needs no
 * input dilation there, and no gate. */
void hk_geom_set_slice(hk_geom *g, int64_t images, int64_t groups, int d, int64_t rows);
/* One phase of a dimension of a dilated x: the outputs first, first + every, ... read only the taps tap, tap + step,
 * ... of the window, and find there an x without dilation. */
typedef struct hk_polyphase {
  int64_t first, every, out; /* of y; how many */
  int64_t tap, step, win;    /* of the window; how many, 0: the outputs read nothing */
  int64_t stride, dil, lo;   /* of the dense convolution */
} hk_polyphase;
/* How many phases dimension d has, 1 without input dilation; and the one that starts at output `first`. */
int64_t hk_geom_phases(const hk_geom *g, int d);
hk_polyphase hk_geom_phase(const hk_geom *g, int d, int64_t first);
/* One phase per dimension; x stays, f and y become strided views, which start at tap[] of f and first[] of y. */
void hk_geom_set_polyphase(hk_geom *g, const hk_polyphase phase[3]);
/* All phases of a dilated x as channels of one convolution by the window that covers the taps of all: output channel
 * (phase of dimension 1, phase of dimension 2, k) at out / every positions. The filter is dense, [channel][window][c].
 * Needs rank 1 or 2, one group, phases without dilation, out a multiple of every, adjacent channels of y, and if there
 * are several phases of dimension 2, no gap between its pixels. */
void hk_geom_set_subpixel(hk_geom *g, const hk_polyphase merged[3]);
/* Those phases of dimension d as one: the window that covers the taps of all. */
hk_polyphase hk_geom_merged(const hk_geom *g, int d);
/* One dimension dilated by d as `rows` interleaved rows without dilation, `in` of x and `out` of y in each. Needs
 * stride 1 and lo[2] % d == 0. */
void hk_geom_set_phase(hk_geom *g, int64_t rows, int64_t in, int64_t out);
/* What a tensor of these strides touches, its offset counted. */
hk_extent hk_extent_of(const hk_strides *s, int64_t groups, int64_t outer, int64_t channels, const int64_t *at);
/* Gives strides that are multiplied by 0 alone harmless values, so that neither they nor an empty tensor's can overflow
 * later, and a single channel or column counts as contiguous. */
void hk_strides_settle(hk_strides *s, int64_t groups, int64_t outer, int64_t channels, const int64_t *at);
/* Refuses pointers that are not aligned to their elements. */
hk_status hk_weights_check(const hk_geom *g, const hk_weights *w);
/* The strides of a problem in the form in which all that address the same elements are equal: those that are multiplied
 * by 0 alone as hk_strides_settle gives them, those beyond the rank 0. Problems whose sizes are wrong stay. */
void hk_problem_settle(hk_problem *p);
/* True when a settled problem's strides are those of hk_problem_dense. */
bool hk_problem_is_dense(const hk_problem *settled, hk_layout layout);
/* True when two problems differ in batch, input size, padding and the strides of x and y alone. */
bool hk_problem_alike(const hk_problem *a, const hk_problem *b);
/* derive.c: makes the geometry of a forward problem, or says why it has no gradients; the type of its dy. */
hk_status hk_grad_check(const hk_problem *forward, hk_geom *g);
hk_type hk_grad_type(const hk_problem *forward);
bool hk_add_checked(int64_t a, int64_t b, int64_t *r);
bool hk_mul_checked(int64_t a, int64_t b, int64_t *r);

/* epilogue.c */
typedef struct hk_epi {
  hk_epilogue e; /* zeros where the caller gave none */
  hk_strides c;  /* of the residual */
  bool any;      /* anything at all to do beyond conversion */
  bool simple;   /* only scale, bias, relu or clip, residual: what kernels fuse in registers */
  bool transcendental;
} hk_epi;
hk_status hk_epi_make(hk_epi *epi, const hk_epilogue *e, const hk_problem *p);
/* act(v) in double, the definition; slope is PRELU's */
double hk_act_eval(hk_act act, double a, double b, double slope, double v);
const char *hk_act_name(hk_act act);
#endif
