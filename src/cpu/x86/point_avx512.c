/* point kernels for avx512; see ../tmpl/point.tmpl.h */
#include "vec_avx512.h"

#define MR 16
#define HK_NAME hk_point_f32_16x16_avx512
#include "../tmpl/point.tmpl.h"
