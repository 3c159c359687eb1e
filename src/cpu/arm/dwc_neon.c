/* dwc kernels for neon; see ../tmpl/dwc.tmpl.h */
#include "vec_neon.h"

#define MR 12
#define HK_NAME hk_dwc_f32_12x4_neon
#include "../tmpl/dwc.tmpl.h"
