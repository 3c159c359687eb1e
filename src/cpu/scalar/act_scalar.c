/* act kernels for scalar; see ../tmpl/act.tmpl.h */
#include "vec_scalar.h"
#define HK_NAME hk_act_f32_1x1_scalar
#include "../tmpl/act.tmpl.h"
