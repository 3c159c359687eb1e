/* small: convolution of few channels over planar rows (time is contiguous), any taps, dilation and groups, with bias,
 * an added row, a clip or a leaky slope, and a running sum beside the result; see hk_small_args.
 *
 * Define MR (output channels of a group per tile), NVM (time vectors of the main tile), HK_NAME and, for tiles over
 * several groups, MG (groups is then a multiple of MG, y_group is MR and tiles 1); include a vocabulary, then this. The
 * packed weights of segment s of tile index = group/MG*tiles + tile are f[((index*channels + c)*MG + n)*MR + i] for its
 * n-th group; they stay in L1 while time is the inner loop. Remainders use narrower tiles and a mask for the last
 * lanes: nothing else is read or written. */
#include "cpu/ukernel.h"
#include "cpu/tmpl/common/unroll.tmpl.h"

#ifndef MG
#define MG 1
#endif
#define ROWS (MG * MR)
#define SMALL_PASTE_(a, b) a##b
#define SMALL_PASTE(a, b) SMALL_PASTE_(a, b)

#define MASKED 0
#define NV NVM
#define TILE SMALL_PASTE(HK_NAME, _main)
#include "cpu/tmpl/small/small_tile.tmpl.h"
#if NVM > 2
#define MASKED 0
#define NV 2
#define TILE SMALL_PASTE(HK_NAME, _two)
#include "cpu/tmpl/small/small_tile.tmpl.h"
#endif
#define MASKED 0
#define NV 1
#define TILE SMALL_PASTE(HK_NAME, _one)
#include "cpu/tmpl/small/small_tile.tmpl.h"
#define MASKED 1
#define NV 1
#define TILE SMALL_PASTE(HK_NAME, _tail)
#include "cpu/tmpl/small/small_tile.tmpl.h"

void HK_NAME(const void *args) {
  const hk_small_args *a = args;
  const int64_t n = a->n, groups = a->groups, tiles = a->tiles, y_group = a->y_group;
  const v_mask none = v_tail(0);
  for (int64_t g = 0; g < groups; g += MG) {
    for (int64_t j = 0; j < tiles; j++) {
      const int64_t index = g / MG * tiles + j, o = g * y_group + j * MR;
      int64_t t = 0;
      for (; t + NVM * HK_VW <= n; t += NVM * HK_VW) SMALL_PASTE(HK_NAME, _main)(a, g, index, o, t, none);
#if NVM > 2
      for (; t + 2 * HK_VW <= n; t += 2 * HK_VW) SMALL_PASTE(HK_NAME, _two)(a, g, index, o, t, none);
#endif
      for (; t + HK_VW <= n; t += HK_VW) SMALL_PASTE(HK_NAME, _one)(a, g, index, o, t, none);
      if (t < n) SMALL_PASTE(HK_NAME, _tail)(a, g, index, o, t, v_tail(n - t));
    }
  }
}
#undef SMALL_PASTE
#undef SMALL_PASTE_
#undef HK_NAME
#undef NVM
#undef MG
#undef ROWS
#undef MR
