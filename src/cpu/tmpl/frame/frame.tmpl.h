/* frame: convolution of few channels over interleaved frames, any taps, dilation and groups, with bias and a clip or a
 * leaky slope; see hk_frame_args. A vector holds the outputs of whole frames, of whole groups of a frame, or of a part
 * of a group, so that few channels still fill the lanes and nothing is transposed.
 *
 * Define NVM (vectors of the main tile) and HK_NAME; include a vocabulary, then this. The packed weights are
 * f[(s*inputs + m)*HK_VW + lane] and the indices index[m*HK_VW + lane]; both serve all vectors of a tile. Registers:
 * NVM accumulators, NVM inputs (none for BROADCAST), one weight, one index, one permuted input. Every sum is bias
 * first, then taps and inputs in order, whatever the tile: the bits do not depend on the length of a block. */
#include "cpu/ukernel.h"
#include "cpu/tmpl/common/unroll.tmpl.h"

/* The values of HK_FRAME_PLAIN and the others, as the preprocessor can compare them. */
#define PLAIN 0
#define PERMUTE 1
#define BROADCAST 2
#define QUADS 3
_Static_assert(HK_FRAME_PLAIN == PLAIN && HK_FRAME_PERMUTE == PERMUTE && HK_FRAME_BROADCAST == BROADCAST &&
                   HK_FRAME_QUADS == QUADS,
               "modes");

#define FRAME_PASTE_(a, b) a##b
#define FRAME_PASTE(a, b) FRAME_PASTE_(a, b)

#define MODE PLAIN
#define NAME(tile) FRAME_PASTE(HK_NAME, _plain##tile)
#include "cpu/tmpl/frame/frame_mode.tmpl.h"
#define MODE PERMUTE
#define NAME(tile) FRAME_PASTE(HK_NAME, _permute##tile)
#include "cpu/tmpl/frame/frame_mode.tmpl.h"
#define MODE QUADS
#define NAME(tile) FRAME_PASTE(HK_NAME, _quads##tile)
#include "cpu/tmpl/frame/frame_mode.tmpl.h"
#define MODE BROADCAST
#define NAME(tile) FRAME_PASTE(HK_NAME, _broadcast##tile)
#include "cpu/tmpl/frame/frame_mode.tmpl.h"

void HK_NAME(const void *args) {
  const hk_frame_args *a = args;
  for (int32_t j = 0; j < a->tiles; j++) {
    const hk_frame_tile *q = a->tile + j;
    switch (q->mode) {
    case HK_FRAME_PLAIN: FRAME_PASTE(HK_NAME, _plain_run)(a, q); break;
    case HK_FRAME_PERMUTE: FRAME_PASTE(HK_NAME, _permute_run)(a, q); break;
    case HK_FRAME_QUADS: FRAME_PASTE(HK_NAME, _quads_run)(a, q); break;
    default: FRAME_PASTE(HK_NAME, _broadcast_run)(a, q); break;
    }
  }
}
#undef FRAME_PASTE
#undef FRAME_PASTE_
#undef HK_NAME
#undef NVM
#undef PLAIN
#undef PERMUTE
#undef BROADCAST
#undef QUADS
