/* dwp kernels for avx2; see ../tmpl/dwp.tmpl.h */
#include "vec_avx2.h"

#define MR 10
#define HK_NAME hk_dwp_f32_10x8_avx2
#include "../tmpl/dwp.tmpl.h"
