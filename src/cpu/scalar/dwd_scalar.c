/* dwd kernel for scalar; see ../tmpl/dwd.tmpl.h */
#include "vec_scalar.h"

#define HK_NAME hk_dwd_f32_8x1_scalar
#include "../tmpl/dwd.tmpl.h"
