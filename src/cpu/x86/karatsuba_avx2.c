/* karatsuba kernel for avx2; see ../tmpl/karatsuba.tmpl.h */
#include "vec_avx2.h"

#define MR 10
#define HK_NAME hk_karatsuba_f32_10x8_avx2
#include "../tmpl/karatsuba.tmpl.h"
