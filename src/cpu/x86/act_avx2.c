/* act kernels for avx2; see ../tmpl/act.tmpl.h */
#include "vec_avx2.h"
#define HK_NAME hk_act_f32_1x8_avx2
#include "../tmpl/act.tmpl.h"
