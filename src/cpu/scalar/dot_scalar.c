/* dot tiles for scalar; see ../tmpl/dot.tmpl.h */
#include "vec_scalar.h"
#define HK_NAME hk_dot_f32_2x4_scalar
#define HK_ROWS_1 4
#define HK_ROWS_2 4
#define HK_ROWS_3 2
#define HK_ROWS_4 2
#include "../tmpl/dot.tmpl.h"
