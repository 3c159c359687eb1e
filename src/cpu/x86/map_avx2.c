/* map kernels for avx2; see ../tmpl/map.tmpl.h */
#include "vec_avx2.h"
#define HK_NAME hk_map_f32_1x8_avx2
#include "../tmpl/map.tmpl.h"
