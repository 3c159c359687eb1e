/* dwc kernels for avx512; see ../tmpl/dwc.tmpl.h */
#include "vec_avx512.h"

#define MR 12
#define HK_NAME hk_dwc_f32_12x16_avx512
#include "../tmpl/dwc.tmpl.h"
