/* All tiles of 1..4 vectors (those whose HK_ROWS_<vectors> is above 0): tables tiles_<vectors>_rows of tile functions.
 * Define HK_TILE and HK_ROWS_1..4, and tile_fn, before. */
#if HK_ROWS_1 > 0
#define HK_NV 1
#define HK_ROWS HK_ROWS_1
#include "tile_rows.tmpl.h"
#undef HK_NV
#undef HK_ROWS
#endif
#if HK_ROWS_2 > 0
#define HK_NV 2
#define HK_ROWS HK_ROWS_2
#include "tile_rows.tmpl.h"
#undef HK_NV
#undef HK_ROWS
#endif
#if HK_ROWS_3 > 0
#define HK_NV 3
#define HK_ROWS HK_ROWS_3
#include "tile_rows.tmpl.h"
#undef HK_NV
#undef HK_ROWS
#endif
#if HK_ROWS_4 > 0
#define HK_NV 4
#define HK_ROWS HK_ROWS_4
#include "tile_rows.tmpl.h"
#undef HK_NV
#undef HK_ROWS
#endif
