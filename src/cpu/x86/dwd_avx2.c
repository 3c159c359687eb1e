/* dwd kernel for avx2; see ../tmpl/dwd.tmpl.h */
#include "vec_avx2.h"

#define HK_NAME hk_dwd_f32_8x8_avx2
#include "../tmpl/dwd.tmpl.h"
