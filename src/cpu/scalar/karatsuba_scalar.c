/* karatsuba kernel for scalar; see ../tmpl/karatsuba.tmpl.h */
#include "vec_scalar.h"

#define MR 8
#define HK_NAME hk_karatsuba_f32_8x1_scalar
#include "../tmpl/karatsuba.tmpl.h"
