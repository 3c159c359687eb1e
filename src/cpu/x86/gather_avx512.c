/* gather for avx512; see ../tmpl/gather.tmpl.h */
#include "vec_avx512.h"
#define HK_NAME hk_gather_f32_1x16_avx512
#include "../tmpl/gather.tmpl.h"
