/* stage kernels for avx512 at 256 bits; see ../tmpl/stage.tmpl.h */
#include "vec_avx512vl.h"

#define HK_NAME hk_stage_f32_1x8_avx512vl
#include "../tmpl/stage.tmpl.h"
