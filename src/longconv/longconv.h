/* The long causal convolution: what hk_longconv_create makes and the passes over it. A thread takes a group of
 * channels, moves its sequences into rows of f32 (rows.c), and convolves row after row by the longfft kernels, in one
 * block or, where the filter is shorter than the sequence, by overlap-save (run.c, gradient.c). */
#ifndef HK_LONGCONV_H
#define HK_LONGCONV_H
#include "core/core.h"
#include "cpu/longfft.h"
#include "cuda/longconv/longconv.h"

#define HK_LONGCONV_MOST ((int64_t)1 << 21) /* tokens, taps */
#define HK_LONGCONV_GROUP 16                /* channels of a group where channels are adjacent: a cache line of f32 */
#define HK_LONGCONV_CHUNK 1024              /* values that pass through the stack on the way into rows */

/* How a sequence of `length` and filters of `taps` are cut: blocks of 2*n1*n2 positions, `step` new outputs each; one
 * block holds everything where `blocks` is 1. */
typedef struct hk_longconv_shape {
  int64_t n1, n2, points, taps, step, blocks;
} hk_longconv_shape;

struct hk_longconv {
  hk_longconv_desc d;  /* defaults filled in */
  hk_causal_desc like; /* the same tensors: their rules are those of hk_causal */
  hk_options o;
  int32_t threads;
  const hk_kernel *kernel, *spread, *transpose;
  hk_longconv_shape shape;
  int64_t group, kept;     /* channels of a group; spectra that a slot keeps: those of a group, or 1 */
  bool direct_x, direct_y; /* rows of x and y are used in place */
  int64_t parts; /* of the sequences, where there are fewer groups than threads; each transforms the filters again */
  int64_t slots, slot_floats;
  float *tables;
  hk_longfft_args fft; /* sizes and tables */
  float *spectra;      /* of filters given at creation, one per channel; NULL: args have them */
  hk_cu_longconv cuda; /* with o.device = HK_CUDA, in place of the above */
};

/* A tensor as one call sees it: element (s, c, t) is at `at`, s*outer + c*channel + t*time. */
typedef struct hk_longconv_view {
  void *at; /* NULL: left out, counts as ones */
  hk_type type;
  hk_causal_strides strides;
} hk_longconv_view;

/* Part of a slot's workspace: rows of `length` floats for each channel of a group, and spectra. */
typedef struct hk_longconv_slot {
  float *buffer, *filter; /* columns of a block; taps of a group */
  float *u, *v, *w, *o;   /* rows: input; output; with the gradient dy and dx */
  float *z, *g, *h, *sum; /* spectra */
} hk_longconv_slot;

/* check.c */
hk_status hk_longconv_check(hk_longconv_desc *d, hk_causal_desc *like);
hk_status hk_longconv_check_args(const hk_longconv *k, const hk_longconv_args *a);
hk_status hk_longconv_check_grads(const hk_longconv *k, const hk_longconv_args *a, hk_longconv_grads *g);
/* shape.c: vw is the number of lanes. */
hk_longconv_shape hk_longconv_cut(int64_t length, int64_t window, int64_t vw);
/* rows.c: rows[i][t] = a * b of channels c..c+count-1 of sequence s; and out = rows * b. */
typedef struct hk_longconv_part {
  const hk_longconv *k;
  int64_t s, c, count;
  int64_t first, last; /* sequences of this part */
} hk_longconv_part;
void hk_longconv_load(const hk_longconv_part *p, const hk_longconv_view *a, const hk_longconv_view *b, float *rows,
                      int64_t length);
void hk_longconv_store(const hk_longconv_part *p, const float *rows, const hk_longconv_view *b,
                       const hk_longconv_view *out);
/* run.c: the workspace of a slot; the kernel's arguments; spectra of the filters of a group into slot->h. */
int64_t hk_longconv_lay(const hk_longconv *k, float *workspace, hk_longconv_slot *slot);
hk_longfft_args hk_longconv_kernel(const hk_longconv *k, const hk_longconv_slot *slot, int32_t op);
void hk_longconv_filters(const hk_longconv_part *p, const void *f, const void *skip, const hk_longconv_slot *slot);
const float *hk_longconv_spectrum(const hk_longconv *k, const hk_longconv_part *p, const hk_longconv_slot *slot,
                                  int64_t i);
/* One row x to y by blocks; scratch z and buffer of slot. */
void hk_longconv_row(const hk_longconv *k, const hk_longconv_slot *slot, const float *h, float *x, float *y);
/* body for every group of channels, and every part of their sequences if there are several, on the threads of k. */
typedef void (*hk_longconv_body)(const void *context, const hk_longconv_slot *slot, hk_longconv_part p);
void hk_longconv_each(const hk_longconv *k, void *workspace, int64_t parts, hk_longconv_body body, const void *context);
#endif
