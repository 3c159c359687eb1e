/* Sizes of the kernel for long filters over channels-last rows (dw_transposed.cuh); read by C and nvcc. Of hk_cu_dw it uses: tiles (blocks of a row),
 * channel_blocks, slots (regions of 64 pixels), taps_at and taps_bytes. */
#ifndef HK_CUDA_DW_TRANSPOSED_H
#define HK_CUDA_DW_TRANSPOSED_H

enum {
  HK_TRANSPOSED_THREADS = 256,
  HK_TRANSPOSED_CHANNELS = 16, /* of a block */
  HK_TRANSPOSED_LENGTH = 1024, /* outputs of a block */
  HK_TRANSPOSED_REGION = 2064  /* bytes from 64 pixels to the next 64 */
};
#endif
