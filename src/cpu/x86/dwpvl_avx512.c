/* dwp kernels for avx512 at 256 bits; see ../tmpl/dwp.tmpl.h */
#include "vec_avx512vl.h"

#define MR 14
#define HK_NAME hk_dwp_f32_14x8_avx512vl
#include "../tmpl/dwp.tmpl.h"
