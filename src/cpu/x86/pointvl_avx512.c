/* point kernels for avx512 at 256 bits; see ../tmpl/point.tmpl.h */
#include "vec_avx512vl.h"

#define MR 16
#define HK_NAME hk_point_f32_16x8_avx512vl
#include "../tmpl/point.tmpl.h"
