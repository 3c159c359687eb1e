/* map kernels for avx512; see ../tmpl/map.tmpl.h */
#include "vec_avx512.h"
#define HK_NAME hk_map_f32_1x16_avx512
#include "../tmpl/map.tmpl.h"
