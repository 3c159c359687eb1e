/* What a launch of the long convolution passes to its kernels. Sizes and strides count elements. */
#ifndef HK_CUDA_LONGCONV_PARAMS_H
#define HK_CUDA_LONGCONV_PARAMS_H
#include "cuda/params.h"

/* Element (s, c, t) is at s*outer + c*channel + t*time; at NULL: left out. */
typedef struct hk_cu_long_tensor {
  void *at;
  hk_cu_i64 outer, channel, time;
  int type;
} hk_cu_long_tensor;

/* Real rows: loaded as a * b; stored to a as row * b. */
typedef struct hk_cu_long_rows {
  hk_cu_long_tensor a, b;
} hk_cu_long_rows;

/* op; ONCE: a filter serves one sequence, and its rows are transformed with that one's */
enum { HK_CU_LONG_FILTER, HK_CU_LONG_CONVOLVE, HK_CU_LONG_ONCE };
enum { HK_CU_LONG_VALUES = 16 }; /* complex values per thread */
/* Logarithms: columns of a tile of 2^n1 points each (0: none), rows of one of 2^n2 points; a tile has 2^12 points or,
 * so that eight columns lie side by side, 2^13. */
#define HK_CU_LONG_COLUMNS(n1) ((n1) == 0 ? 0 : (n1) > 9 ? 3 : 12 - (n1))
#define HK_CU_LONG_ROWS(n2) (12 - (n2))

/* Channels first..first+channels-1 of n sequences. Spectra are pairs of floats: h and sum [channel][points], z
 * [sequence][channel][points], g [sequence][channel][block][points]. */
typedef struct hk_cu_long_call {
  hk_cu_long_rows in, out, out2; /* x or a filter; y; of the gradient dx and dpre */
  hk_cu_long_rows dy, dpost;     /* of the gradient */
  hk_cu_long_tensor skip;        /* added to value 0 of `in` */
  float *h, *z, *g, *sum;
  float *df, *dskip;
  int op, first, channels, n;
  int length; /* of the rows: tokens, or taps of filters */
  int taps, window;
  int blocks, step, before; /* overlap-save, as hk_longconv_shape */
} hk_cu_long_call;
#endif
