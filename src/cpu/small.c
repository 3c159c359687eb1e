/* Tiles of the small family: which kernels cover a number of output channels. */
#include "cpu/small.h"

static const hk_kernel *row(hk_isa isa, int64_t mr, int64_t mg) {
  const hk_family family = mg == 4 ? HK_FAMILY_SMALL4 : mg == 2 ? HK_FAMILY_SMALL2 : HK_FAMILY_SMALL;
  const hk_kernel *best = NULL;
  for (int32_t i = 0; i < hk_kernel_count; i++) {
    const hk_kernel *k = &hk_kernels[i];
    if (k->family != family || k->mr != mr || !hk_kernel_runs(k, isa)) continue;
    if (!best || k->isa > best->isa) best = k;
  }
  return best;
}

/* Takes the fewest tiles, or one more where that makes all of them equal and still wide enough to hide the FMA
 * latency. */
static int64_t tile_count(int64_t channels, int64_t largest) {
  const int64_t count = hk_ceil_div(channels, largest);
  if (channels % count && channels % (count + 1) == 0 && channels / (count + 1) >= 4) return count + 1;
  return count;
}

int hk_small_split(hk_isa isa, int64_t kg, int64_t groups, hk_small_part part[HK_SMALL_PARTS]) {
  const hk_isa top = row(isa, 1, 1)->isa;
  int64_t largest = 1;
  for (int64_t mr = 2; mr <= HK_SMALL_TILE; mr++) {
    const hk_kernel *k = row(isa, mr, 1);
    if (k && k->isa == top) largest = mr;
  }
  const int64_t tiles = tile_count(kg, largest), small = kg / tiles,
                wide = kg % tiles; /* so many tiles have one channel more */
  int parts = 0;
  if (wide) part[parts++] = (hk_small_part){row(isa, small + 1, 1), small + 1, 1, wide, 0};
  part[parts] = (hk_small_part){row(isa, small, 1), small, 1, tiles - wide, wide * (small + 1)};
  for (int64_t mg = 4; tiles == 1 && mg > 1; mg /= 2) { /* groups too small to fill a tile share one */
    const hk_kernel *k = groups % mg ? NULL : row(isa, kg, mg);
    if (!k || k->isa != top) continue;
    part[parts].kernel = k;
    part[parts].mg = mg;
    break;
  }
  return parts + 1;
}
