/* weave tiles for avx2: 4 sums, 4 of x, 4 masks, 2 more of 16 registers. See ../tmpl/weave.tmpl.h. */
#include "vec_avx2.h"
#define HK_NAME hk_weave_f32_4x8_avx2
#define HK_ROWS_1 4
#include "../tmpl/weave.tmpl.h"
