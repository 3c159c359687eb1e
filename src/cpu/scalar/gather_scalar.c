/* gather for scalar; see ../tmpl/gather.tmpl.h */
#include "vec_scalar.h"
#define HK_NAME hk_gather_f32_1x1_scalar
#include "../tmpl/gather.tmpl.h"
