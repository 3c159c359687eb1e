/* stage kernels for plain C; see ../tmpl/stage.tmpl.h */
#include "vec_scalar.h"

#define HK_NAME hk_stage_f32_1x1_scalar
#include "../tmpl/stage.tmpl.h"
