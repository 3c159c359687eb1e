/* How output channels are split into tiles of the small family; shared by plans and streams. */
#ifndef HK_SMALL_H
#define HK_SMALL_H
#include "cpu/ukernel.h"

/* Most channels per tile: up to 6 leave room for four vectors of time, which beat 8 x 2 (Zen 4, AVX-512, hankel-nam
 * bench wavenet_a1_standard.nam --block 64: 31.2 ms and 32.4 ms). */
enum { HK_SMALL_TILE = 6, HK_SMALL_PARTS = 2 };

/* One kernel over all groups: tiles*mr channels of each group from `first` on; mg groups share a tile. */
typedef struct hk_small_part {
  const hk_kernel *kernel;
  int64_t mr, mg, tiles, first;
} hk_small_part;

/* Splits kg channels of each of so many groups into one or two parts whose tiles differ by one channel, so that no tile
 * is nearly empty: 13 channels are 5 + 4 + 4. Returns the number of parts. */
int hk_small_split(hk_isa isa, int64_t kg, int64_t groups, hk_small_part part[HK_SMALL_PARTS]);
#endif
