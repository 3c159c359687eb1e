/* stage kernels for avx2; see ../tmpl/stage.tmpl.h */
#include "vec_avx2.h"

#define HK_NAME hk_stage_f32_1x8_avx2
#include "../tmpl/stage.tmpl.h"
