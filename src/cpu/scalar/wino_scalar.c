/* Winograd transforms for scalar; see ../tmpl/wino.tmpl.h */
#include "vec_scalar.h"
#define HK_IN_2 hk_winoin_f32_4x1_scalar
#define HK_IN_4 hk_winoin_f32_6x1_scalar
#define HK_OUT_2 hk_winoout_f32_2x1_scalar
#define HK_OUT_4 hk_winoout_f32_4x1_scalar
#include "../tmpl/wino.tmpl.h"
