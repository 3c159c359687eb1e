/* dwm kernels for avx512; see ../tmpl/dwm.tmpl.h */
#include "vec_avx512.h"

#define MR 7
#define HK_NAME hk_dwm_f32_7x16_avx512
#include "../tmpl/dwm.tmpl.h"
