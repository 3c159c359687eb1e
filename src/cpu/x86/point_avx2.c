/* point kernels for avx2; see ../tmpl/point.tmpl.h */
#include "vec_avx2.h"

#define MR 10
#define HK_NAME hk_point_f32_10x8_avx2
#include "../tmpl/point.tmpl.h"
