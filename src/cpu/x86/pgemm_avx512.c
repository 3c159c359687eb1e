/* pgemm tiles for avx512: 24 sums, 4 of pixels, 1 broadcast of 32 registers. See ../tmpl/pgemm.tmpl.h. */
#include "vec_avx512.h"
#define HK_NAME hk_pgemm_f32_6x64_avx512
#define HK_ROWS_1 6
#define HK_ROWS_2 6
#define HK_ROWS_3 6
#define HK_ROWS_4 6
#include "../tmpl/pgemm.tmpl.h"
