/* dwd kernel for avx512; see ../tmpl/dwd.tmpl.h */
#include "vec_avx512.h"

#define HK_NAME hk_dwd_f32_8x16_avx512
#include "../tmpl/dwd.tmpl.h"
