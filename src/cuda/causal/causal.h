/* The causal depthwise Conv1D on CUDA: which kernel a description gets, and its launches. See README.md. */
#ifndef HK_CUDA_CAUSAL_H
#define HK_CUDA_CAUSAL_H
#include "cuda/causal/params.h"
#include "cuda/cuda.h"

typedef enum hk_cu_causal_kind {
  HK_CU_CAUSAL_GENERAL, /* any window, dilation and strides */
  HK_CU_CAUSAL_LAST,    /* 2 to 4 taps, channels contiguous */
  HK_CU_CAUSAL_FIRST,   /* 2 to 4 taps, time contiguous */
  HK_CU_CAUSAL_STEP     /* 2 to 4 taps, a few tokens per sequence */
} hk_cu_causal_kind;

enum { HK_CU_CAUSAL_WIDTHS = 4 }; /* 1, 2, 4 and 8 channels per thread */

/* The chosen kernels and launch numbers; no device memory. */
typedef struct hk_cu_causal {
  hk_cu_causal_kind kind;
  hk_cu_kernel kernel[HK_CU_CAUSAL_WIDTHS]; /* by log2 of the channels per thread; FIRST: by segment length */
  int widths;                               /* how many of them there are */
  int processors;
  char name[48];
  hk_cu_causal_call call;                   /* what does not change from call to call */
} hk_cu_causal;

/* d is checked and has its defaults filled in. */
hk_status hk_cu_causal_make(hk_cu_causal *k, const hk_causal_desc *d);
/* Computes y and the new states: one launch on a->stream. */
hk_status hk_cu_causal_run(const hk_cu_causal *k, const hk_causal_desc *d, const hk_causal_args *a);
hk_status hk_cu_causal_grad(const hk_cu_causal *k, const hk_causal_desc *d, const hk_causal_args *a,
                            const hk_causal_grads *g);
/* Bytes that hk_cu_causal_grad needs. */
size_t hk_cu_causal_workspace(const hk_cu_causal *k);
void hk_cu_causal_print(const hk_cu_causal *k, char *buffer, size_t size);
#endif
