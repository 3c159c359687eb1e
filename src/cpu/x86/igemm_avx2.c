/* igemm tiles for avx2: 12 sums, 2 or 3 of f, 1 broadcast of 16 registers. See ../tmpl/igemm.tmpl.h. */
#include "vec_avx2.h"
#define HK_NAME hk_igemm_f32_4x24_avx2
#define HK_ROWS_1 10
#define HK_ROWS_2 6
#define HK_ROWS_3 4
#define HK_ROWS_4 0
#include "../tmpl/igemm.tmpl.h"
