/* How output channels are cut into tiles of the small family: shared by plans and streams. */
#ifndef HK_SMALL_H
#define HK_SMALL_H
#include "cpu/ukernel.h"

/* Channels a tile at most: up to 6 leave room for four vectors of time, which beat 8 x 2 (Zen 4, AVX-512, hankel-nam
 * bench wavenet_a1_standard.nam --block 64: 31.2 against 32.4 ms). */
enum { HK_SMALL_TILE = 6, HK_SMALL_PARTS = 2 };

/* One kernel over all groups: tiles*mr channels of each group from `first` on; mg groups share a tile. */
typedef struct hk_small_part {
  const hk_kernel *kernel;
  int64_t mr, mg, tiles, first;
} hk_small_part;

/* kg channels in each of so many groups, cut into one or two parts whose tiles differ by one channel, so that no shape pays
 * for a ragged end: 13 channels are 5 + 4 + 4. Returns how many parts. */
int hk_small_split(hk_isa isa, int64_t kg, int64_t groups, hk_small_part part[HK_SMALL_PARTS]);
#endif
