/* dwp kernels for neon; see ../tmpl/dwp.tmpl.h */
#include "vec_neon.h"

#define MR 14
#define HK_NAME hk_dwp_f32_14x4_neon
#include "../tmpl/dwp.tmpl.h"
