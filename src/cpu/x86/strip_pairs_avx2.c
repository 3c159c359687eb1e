/* strip by pairs of inputs for avx2: 12 sums, 2 of f, 1 broadcast of 16 registers. See ../tmpl/strip.tmpl.h. */
#include "vec_avx2.h"
#define HK_NAME hk_strip_f32_6x8_avx2
#define HK_PAIRS
#include "../tmpl/strip.tmpl.h"
