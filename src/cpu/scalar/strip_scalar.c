/* strip tiles for scalar: 12 sums. See ../tmpl/strip.tmpl.h. */
#include "vec_scalar.h"
#define HK_NAME hk_strip_f32_4x3_scalar
#include "../tmpl/strip.tmpl.h"
