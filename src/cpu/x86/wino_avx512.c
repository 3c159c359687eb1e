/* Winograd transforms for avx512; see ../tmpl/wino.tmpl.h */
#include "vec_avx512.h"
#define HK_IN_2 hk_winoin_f32_4x16_avx512
#define HK_IN_4 hk_winoin_f32_6x16_avx512
#define HK_OUT_2 hk_winoout_f32_2x16_avx512
#define HK_OUT_4 hk_winoout_f32_4x16_avx512
#include "../tmpl/wino.tmpl.h"
