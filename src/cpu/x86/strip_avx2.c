/* strip tiles for avx2: 12 sums, 2 or 3 of f, 1 broadcast of 16 registers. See ../tmpl/strip.tmpl.h. */
#include "vec_avx2.h"
#define HK_NAME hk_strip_f32_4x24_avx2
#include "../tmpl/strip.tmpl.h"
