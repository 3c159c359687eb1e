/* dwp kernels for avx512; see ../tmpl/dwp.tmpl.h */
#include "vec_avx512.h"

#define MR 12
#define HK_NAME hk_dwp_f32_12x16_avx512
#include "../tmpl/dwp.tmpl.h"
