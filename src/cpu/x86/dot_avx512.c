/* dot tiles for avx512; see ../tmpl/dot.tmpl.h */
#include "vec_avx512.h"
#define HK_NAME hk_dot_f32_6x4_avx512
#define HK_ROWS_1 8
#define HK_ROWS_2 8
#define HK_ROWS_3 6
#define HK_ROWS_4 6
#include "../tmpl/dot.tmpl.h"
