/* fft kernel for avx512; see ../tmpl/fft.tmpl.h */
#include "vec_avx512.h"

#define HK_NAME hk_fft_f32_4x16_avx512
#include "../tmpl/fft.tmpl.h"
