/* Sizes of the kernel for long filters over channels-last rows (dw_turned.cuh); read by C and nvcc. Of hk_cu_dw it uses: tiles (blocks of a row),
 * channel_blocks, slots (regions of 64 pixels), taps_at and taps_bytes. */
#ifndef HK_CUDA_DW_TURNED_H
#define HK_CUDA_DW_TURNED_H

enum {
  HK_TURNED_THREADS = 256,
  HK_TURNED_CHANNELS = 16, /* of a block */
  HK_TURNED_LENGTH = 1024, /* outputs of a block */
  HK_TURNED_REGION = 2064  /* bytes from 64 pixels to the next 64 */
};
#endif
