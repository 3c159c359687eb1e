/* dwm kernels for scalar; see ../tmpl/dwm.tmpl.h */
#include "vec_scalar.h"

#define MR 28
#define HK_NAME hk_dwm_f32_28x1_scalar
#include "../tmpl/dwm.tmpl.h"
