/* gather for avx2; see ../tmpl/gather.tmpl.h */
#include "vec_avx2.h"
#define HK_NAME hk_gather_f32_1x8_avx2
#include "../tmpl/gather.tmpl.h"
