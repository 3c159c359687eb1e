/* dwp kernels for plain C; see ../tmpl/dwp.tmpl.h */
#include "vec_scalar.h"

#define MR 8
#define HK_NAME hk_dwp_f32_8x1_scalar
#include "../tmpl/dwp.tmpl.h"
