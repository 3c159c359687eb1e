/* dwm kernels for neon; see ../tmpl/dwm.tmpl.h */
#include "vec_neon.h"

#define MR 7
#define HK_NAME hk_dwm_f32_7x4_neon
#include "../tmpl/dwm.tmpl.h"
