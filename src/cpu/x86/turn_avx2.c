/* turn for avx2; see ../tmpl/turn.tmpl.h */
#include "vec_avx2.h"
#define HK_NAME hk_turn_f32_8x8_avx2
#include "../tmpl/turn.tmpl.h"
