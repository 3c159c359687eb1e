/* fft kernel for neon; see ../tmpl/fft.tmpl.h */
#include "vec_neon.h"

#define HK_NAME hk_fft_f32_4x4_neon
#include "../tmpl/fft.tmpl.h"
