/* igemm tiles for avx512: 24 sums, 4 of f, 1 broadcast of 32 registers; no more than 8 row pointers where C may alias in L1. See ../tmpl/igemm.tmpl.h. */
#include "vec_avx512.h"
#define HK_NAME hk_igemm_f32_6x64_avx512
#define HK_AHEAD
#define HK_ROWS_1 12
#define HK_ROWS_2 8
#define HK_ROWS_3 8
#define HK_ROWS_4 6
#include "../tmpl/igemm.tmpl.h"
