/* fft kernel for scalar; see ../tmpl/fft.tmpl.h */
#include "vec_scalar.h"

#define HK_NAME hk_fft_f32_4x1_scalar
#include "../tmpl/fft.tmpl.h"
