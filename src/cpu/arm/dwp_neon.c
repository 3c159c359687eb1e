/* dwp kernels for neon; see ../tmpl/dwp.tmpl.h */
#include "vec_neon.h"

#define MR 12
#define HK_NAME hk_dwp_f32_12x4_neon
#include "../tmpl/dwp.tmpl.h"
