/* Instantiates HK_TILE for HK_NV vectors and 1..HK_ROWS rows, and the table of these functions. HK_KIND_2 and HK_KIND_3
 * (optional) are the prefixes of further functions of type HK_ROW_FN that the template defines, HK_TABLE_2 and
 * HK_TABLE_3 those of their tables. */
#if HK_ROWS > 12
#error "a tile has at most 12 rows: the lists below and in tile_table.tmpl.h end there"
#endif
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
#define HK_FN tile_fn
#define HK_KIND tile_
#define HK_TABLE tiles_
#include "cpu/tmpl/common/tile_table.tmpl.h"
#undef HK_TABLE
#undef HK_KIND
#undef HK_FN
#ifdef HK_KIND_2
#define HK_FN HK_ROW_FN
#define HK_KIND HK_KIND_2
#define HK_TABLE HK_TABLE_2
#include "cpu/tmpl/common/tile_table.tmpl.h"
#undef HK_TABLE
#undef HK_KIND
#ifdef HK_KIND_3
#define HK_KIND HK_KIND_3
#define HK_TABLE HK_TABLE_3
#include "cpu/tmpl/common/tile_table.tmpl.h"
#undef HK_TABLE
#undef HK_KIND
#endif
#undef HK_FN
#endif
