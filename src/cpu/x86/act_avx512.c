/* act kernels for avx512; see ../tmpl/act.tmpl.h */
#include "vec_avx512.h"
#define HK_NAME hk_act_f32_1x16_avx512
#include "../tmpl/act.tmpl.h"
