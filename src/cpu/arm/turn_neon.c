/* turn for neon; see ../tmpl/turn.tmpl.h */
#include "vec_neon.h"
#define HK_NAME hk_turn_f32_4x4_neon
#include "../tmpl/turn.tmpl.h"
