/* karatsuba kernel for avx512; see ../tmpl/karatsuba.tmpl.h */
#include "vec_avx512.h"

#define MR 12
#define HK_NAME hk_karatsuba_f32_12x16_avx512
#include "../tmpl/karatsuba.tmpl.h"
