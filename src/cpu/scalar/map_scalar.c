/* map kernels for scalar; see ../tmpl/map.tmpl.h */
#include "vec_scalar.h"
#define HK_NAME hk_map_f32_1x1_scalar
#include "../tmpl/map.tmpl.h"
