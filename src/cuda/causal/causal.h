/* The causal depthwise Conv1D on CUDA: which kernel a description gets, and its launches. See README.md. */
#ifndef HK_CUDA_CAUSAL_H
#define HK_CUDA_CAUSAL_H
#include "cuda/causal/params.h"
#include "cuda/cuda.h"

typedef enum hk_cu_causal_kind {
  HK_CU_CAUSAL_GENERAL, /* any dilation, packing by ids, and few tokens of more than 4 taps */
  HK_CU_CAUSAL_WIDE,    /* dilation 1: any window and strides */
  HK_CU_CAUSAL_LAST,    /* 2 to 8 taps, channels contiguous */
  HK_CU_CAUSAL_FIRST,   /* 2 to 8 taps, time contiguous */
  HK_CU_CAUSAL_STEP     /* 2 to 4 taps, a few tokens per sequence */
} hk_cu_causal_kind;

enum { HK_CU_CAUSAL_WIDTHS = 4 }; /* 1, 2, 4 and 8 channels per thread */

/* The chosen kernels and launch numbers; no device memory. */
typedef struct hk_cu_causal {
  hk_cu_causal_kind kind;
  hk_cu_kernel kernel[HK_CU_CAUSAL_WIDTHS]; /* by log2 of the channels per thread; FIRST: by segment length */
  int widths;                               /* how many of them there are */
  int processors;
  hk_cu_kernel back, sum;                 /* of the gradient */
  int back_rows;                          /* tokens of a block of `back` */
  hk_cu_kernel grad[HK_CU_CAUSAL_WIDTHS]; /* in registers: 1, 2, 4 channels per thread, then time contiguous */
  int grad_tokens;                        /* of a thread of the former */
  char name[80];
  hk_cu_causal_call call; /* what does not change from call to call */
} hk_cu_causal;

/* d is checked and has its defaults filled in. */
hk_status hk_cu_causal_make(hk_cu_causal *k, const hk_causal_desc *d);
/* Computes y and the new states: one launch on a->stream. */
hk_status hk_cu_causal_run(const hk_cu_causal *k, const hk_causal_desc *d, const hk_causal_args *a);
hk_status hk_cu_causal_grad(const hk_cu_causal *k, const hk_causal_desc *d, const hk_causal_args *a,
                            const hk_causal_grads *g);
/* Bytes that hk_cu_causal_grad needs. */
size_t hk_cu_causal_workspace(const hk_cu_causal *k, const hk_causal_desc *d);
void hk_cu_causal_print(const hk_cu_causal *k, char *buffer, size_t size);

/* Within this folder: finds hk_causal_<family>_<type>_<variant>; a description's strides as kernels want them; pointers
 * of a call; units of `chunk` tokens of sequences of at most `tokens`; whether an address and strides fit vectors of
 * `width` elements; launches `threads` threads. */
hk_status hk_cu_causal_find(const char *family, hk_type type, const char *variant, int shared_bytes,
                            hk_cu_kernel *kernel);
hk_cu_causal_view hk_cu_causal_view_of(hk_causal_strides s, const hk_causal_desc *d, bool state);
void hk_cu_causal_set_args(const hk_causal_desc *d, const hk_causal_args *a, hk_cu_causal_call *c);
void hk_cu_causal_set_units(hk_cu_causal_call *c, int64_t chunk, int64_t tokens, int spare);
/* tile.c: the kernels on tiles, forward and gradient. */
hk_status hk_cu_causal_find_wide(hk_cu_causal *k, const hk_causal_desc *d);
hk_status hk_cu_causal_run_wide(const hk_cu_causal *k, const hk_causal_desc *d, void *stream, hk_cu_causal_call *c);
hk_status hk_cu_causal_find_back(hk_cu_causal *k, const hk_causal_desc *d);
#endif
