/* stage kernels for neon; see ../tmpl/stage.tmpl.h */
#include "vec_neon.h"

#define HK_NAME hk_stage_f32_1x4_neon
#include "../tmpl/stage.tmpl.h"
