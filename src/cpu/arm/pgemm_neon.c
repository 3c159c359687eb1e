/* pgemm tiles for neon: 16 sums, 2 of pixels, 1 broadcast of 32 registers. See ../tmpl/pgemm.tmpl.h. */
#include "vec_neon.h"
#define HK_NAME hk_pgemm_f32_8x8_neon
#define HK_ROWS_1 8
#define HK_ROWS_2 8
#define HK_ROWS_3 0
#define HK_ROWS_4 0
#include "../tmpl/pgemm.tmpl.h"
