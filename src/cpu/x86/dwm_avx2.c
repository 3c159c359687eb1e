/* dwm kernels for avx2; see ../tmpl/dwm.tmpl.h */
#include "vec_avx2.h"

#define MR 128
#define HK_NAME hk_dwm_f32_128x8_avx2
#include "../tmpl/dwm.tmpl.h"
