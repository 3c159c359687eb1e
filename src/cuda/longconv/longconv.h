/* The long causal convolution on CUDA: how a description is cut, and its launches. See README.md. */
#ifndef HK_CUDA_LONGCONV_H
#define HK_CUDA_LONGCONV_H
#include "cuda/cuda.h"
#include "cuda/longconv/params.h"

enum { HK_CU_LONG_KERNELS = 5 };

/* The chosen kernels and launch numbers; no device memory. */
typedef struct hk_cu_longconv {
  hk_cu_kernel kernel[HK_CU_LONG_KERNELS]; /* NULL: not of this way */
  hk_cu_long_call call;
  int n1, n2;   /* logarithms of points; n1 = 0: a block of threads holds a whole transform */
  int channels; /* of a chunk: spectra of so many are in the workspace at a time */
  size_t bytes; /* of the workspace */
} hk_cu_longconv;

/* d is checked and has its defaults filled in. */
hk_status hk_cu_longconv_make(hk_cu_longconv *k, const hk_longconv_desc *d);
hk_status hk_cu_longconv_run(const hk_cu_longconv *k, const hk_longconv_desc *d, const hk_longconv_args *a);
hk_status hk_cu_longconv_grad(const hk_cu_longconv *k, const hk_longconv_desc *d, const hk_longconv_args *a,
                              const hk_longconv_grads *g);
size_t hk_cu_longconv_workspace(const hk_cu_longconv *k);
void hk_cu_longconv_print(const hk_cu_longconv *k, char *buffer, size_t size);
#endif
