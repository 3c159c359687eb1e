/* Winograd transforms for avx2; see ../tmpl/wino.tmpl.h */
#include "vec_avx2.h"
#define HK_IN_2 hk_winoin_f32_4x8_avx2
#define HK_IN_4 hk_winoin_f32_6x8_avx2
#define HK_OUT_2 hk_winoout_f32_2x8_avx2
#define HK_OUT_4 hk_winoout_f32_4x8_avx2
#include "../tmpl/wino.tmpl.h"
