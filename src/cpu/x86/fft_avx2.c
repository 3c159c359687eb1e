/* fft kernel for avx2; see ../tmpl/fft.tmpl.h */
#include "vec_avx2.h"

#define HK_NAME hk_fft_f32_4x8_avx2
#include "../tmpl/fft.tmpl.h"
