/* turn for scalar; see ../tmpl/turn.tmpl.h */
#include "vec_scalar.h"
#define HK_NAME hk_turn_f32_1x1_scalar
#include "../tmpl/turn.tmpl.h"
