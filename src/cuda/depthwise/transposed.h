/* Sizes of the kernel for long filters over channels-last rows (transposed.cuh); read by C and nvcc. */
#ifndef HK_CUDA_DW_TRANSPOSED_H
#define HK_CUDA_DW_TRANSPOSED_H

enum {
  HK_TRANSPOSED_THREADS = 256,
  HK_TRANSPOSED_CHANNELS = 16, /* per block */
  HK_TRANSPOSED_LENGTH = 1024, /* outputs per block */
  HK_TRANSPOSED_REGION = 2064  /* bytes between regions of 64 pixels */
};
#endif
