/* karatsuba kernel for neon; see ../tmpl/karatsuba.tmpl.h */
#include "vec_neon.h"

#define MR 12
#define HK_NAME hk_karatsuba_f32_12x4_neon
#include "../tmpl/karatsuba.tmpl.h"
