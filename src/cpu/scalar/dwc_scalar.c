/* dwc kernels for plain C; see ../tmpl/dwc.tmpl.h */
#include "vec_scalar.h"

#define MR 8
#define HK_NAME hk_dwc_f32_8x1_scalar
#include "../tmpl/dwc.tmpl.h"
