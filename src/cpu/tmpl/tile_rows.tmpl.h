/* Tiles of HK_NV vectors and 1..HK_ROWS rows, and their table; HK_TILE is the template of one. */
#if HK_ROWS >= 1
#define HK_MR 1
#include HK_TILE
#undef HK_MR
#endif
#if HK_ROWS >= 2
#define HK_MR 2
#include HK_TILE
#undef HK_MR
#endif
#if HK_ROWS >= 3
#define HK_MR 3
#include HK_TILE
#undef HK_MR
#endif
#if HK_ROWS >= 4
#define HK_MR 4
#include HK_TILE
#undef HK_MR
#endif
#if HK_ROWS >= 5
#define HK_MR 5
#include HK_TILE
#undef HK_MR
#endif
#if HK_ROWS >= 6
#define HK_MR 6
#include HK_TILE
#undef HK_MR
#endif
#if HK_ROWS >= 7
#define HK_MR 7
#include HK_TILE
#undef HK_MR
#endif
#if HK_ROWS >= 8
#define HK_MR 8
#include HK_TILE
#undef HK_MR
#endif
#if HK_ROWS >= 9
#define HK_MR 9
#include HK_TILE
#undef HK_MR
#endif
#if HK_ROWS >= 10
#define HK_MR 10
#include HK_TILE
#undef HK_MR
#endif
#if HK_ROWS >= 11
#define HK_MR 11
#include HK_TILE
#undef HK_MR
#endif
#if HK_ROWS >= 12
#define HK_MR 12
#include HK_TILE
#undef HK_MR
#endif
static const tile_fn HK_PASTE4(tiles_, HK_NV, _, rows)[] = {
#if HK_ROWS >= 1
  HK_PASTE4(tile_, 1, x, HK_NV),
#endif
#if HK_ROWS >= 2
  HK_PASTE4(tile_, 2, x, HK_NV),
#endif
#if HK_ROWS >= 3
  HK_PASTE4(tile_, 3, x, HK_NV),
#endif
#if HK_ROWS >= 4
  HK_PASTE4(tile_, 4, x, HK_NV),
#endif
#if HK_ROWS >= 5
  HK_PASTE4(tile_, 5, x, HK_NV),
#endif
#if HK_ROWS >= 6
  HK_PASTE4(tile_, 6, x, HK_NV),
#endif
#if HK_ROWS >= 7
  HK_PASTE4(tile_, 7, x, HK_NV),
#endif
#if HK_ROWS >= 8
  HK_PASTE4(tile_, 8, x, HK_NV),
#endif
#if HK_ROWS >= 9
  HK_PASTE4(tile_, 9, x, HK_NV),
#endif
#if HK_ROWS >= 10
  HK_PASTE4(tile_, 10, x, HK_NV),
#endif
#if HK_ROWS >= 11
  HK_PASTE4(tile_, 11, x, HK_NV),
#endif
#if HK_ROWS >= 12
  HK_PASTE4(tile_, 12, x, HK_NV),
#endif
};
