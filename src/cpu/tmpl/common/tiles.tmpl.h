/* Instantiates all tiles of 1..4 vectors (those whose HK_ROWS_<vectors> is above 0): tables tiles_<vectors>_rows.
 * Define HK_TILE, HK_ROWS_1..4 and tile_fn before. */

/* The first product of a sum, with the bits of an FMA onto +0, as mul and add. Zen 4: a 512-bit store uses the FMA's
 * third read port, so mul and add overlap the stores of the tile before and FMA does not. */
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
