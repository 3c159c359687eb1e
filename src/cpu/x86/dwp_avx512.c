/* dwp kernels for avx512; see ../tmpl/dwp.tmpl.h */
#include "vec_avx512.h"

#define MR 14
#define HK_NAME hk_dwp_f32_14x16_avx512
#include "../tmpl/dwp.tmpl.h"
