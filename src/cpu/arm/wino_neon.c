/* Winograd transforms for neon; see ../tmpl/wino.tmpl.h */
#include "vec_neon.h"
#define HK_IN_2 hk_winoin_f32_4x4_neon
#define HK_IN_4 hk_winoin_f32_6x4_neon
#define HK_OUT_2 hk_winoout_f32_2x4_neon
#define HK_OUT_4 hk_winoout_f32_4x4_neon
#include "../tmpl/wino.tmpl.h"
