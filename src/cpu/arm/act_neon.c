/* act kernels for neon; see ../tmpl/act.tmpl.h */
#include "vec_neon.h"
#define HK_NAME hk_act_f32_1x4_neon
#include "../tmpl/act.tmpl.h"
