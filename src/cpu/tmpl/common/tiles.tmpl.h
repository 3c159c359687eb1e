/* All tiles of 1..4 vectors (those whose HK_ROWS_<vectors> is above 0): tables tiles_<vectors>_rows of tile functions.
 * Define HK_TILE and HK_ROWS_1..4, and tile_fn, before. */

/* How a tile's sums begin: what a * b onto +0 gives, by two operations of two operands each. While a core of Zen 4 stores vectors of 64
 * bytes (those of the tile before) it starts no multiply-adds, since the store reads by their third port; products it does start. */
static inline v_f32 first_product(v_f32 a, v_f32 b) { return v_add(v_mul(a, b), v_zero()); }

#if HK_ROWS_1 > 0
#define HK_NV 1
#define HK_ROWS HK_ROWS_1
#include "cpu/tmpl/common/tile_rows.tmpl.h"
#undef HK_NV
#undef HK_ROWS
#endif
#if HK_ROWS_2 > 0
#define HK_NV 2
#define HK_ROWS HK_ROWS_2
#include "cpu/tmpl/common/tile_rows.tmpl.h"
#undef HK_NV
#undef HK_ROWS
#endif
#if HK_ROWS_3 > 0
#define HK_NV 3
#define HK_ROWS HK_ROWS_3
#include "cpu/tmpl/common/tile_rows.tmpl.h"
#undef HK_NV
#undef HK_ROWS
#endif
#if HK_ROWS_4 > 0
#define HK_NV 4
#define HK_ROWS HK_ROWS_4
#include "cpu/tmpl/common/tile_rows.tmpl.h"
#undef HK_NV
#undef HK_ROWS
#endif
