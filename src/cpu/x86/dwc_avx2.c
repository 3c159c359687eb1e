/* dwc kernels for avx2; see ../tmpl/dwc.tmpl.h */
#include "vec_avx2.h"

#define MR 10
#define HK_NAME hk_dwc_f32_10x8_avx2
#include "../tmpl/dwc.tmpl.h"
