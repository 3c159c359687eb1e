/* point kernels for neon; see ../tmpl/point.tmpl.h */
#include "vec_neon.h"

#define MR 16
#define HK_NAME hk_point_f32_16x4_neon
#include "../tmpl/point.tmpl.h"
