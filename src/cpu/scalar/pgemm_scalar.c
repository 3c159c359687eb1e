/* pgemm tiles for scalar: 8 sums. See ../tmpl/pgemm.tmpl.h. */
#include "vec_scalar.h"
#define HK_NAME hk_pgemm_f32_4x2_scalar
#define HK_ROWS_1 4
#define HK_ROWS_2 4
#define HK_ROWS_3 0
#define HK_ROWS_4 0
#include "../tmpl/pgemm.tmpl.h"
