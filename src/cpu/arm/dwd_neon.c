/* dwd kernel for neon; see ../tmpl/dwd.tmpl.h */
#include "vec_neon.h"

#define HK_NAME hk_dwd_f32_8x4_neon
#include "../tmpl/dwd.tmpl.h"
