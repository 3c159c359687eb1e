/* dot tiles for avx2; see ../tmpl/dot.tmpl.h */
#include "vec_avx2.h"
#define HK_NAME hk_dot_f32_2x4_avx2
#define HK_ROWS_1 8
#define HK_ROWS_2 5
#define HK_ROWS_3 3
#define HK_ROWS_4 2
#include "../tmpl/dot.tmpl.h"
