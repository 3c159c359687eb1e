/* pgemm tiles for avx2: 12 sums, 2 of pixels, 1 broadcast of 16 registers. See ../tmpl/pgemm.tmpl.h. */
#include "vec_avx2.h"
#define HK_NAME hk_pgemm_f32_6x16_avx2
#define HK_ROWS_1 6
#define HK_ROWS_2 6
#define HK_ROWS_3 0
#define HK_ROWS_4 0
#include "../tmpl/pgemm.tmpl.h"
