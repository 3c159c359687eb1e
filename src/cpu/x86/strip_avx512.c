/* strip tiles for avx512: 24 sums, 4 of f, 1 broadcast of 32 registers. See ../tmpl/strip.tmpl.h. */
#include "vec_avx512.h"
#define HK_NAME hk_strip_f32_6x64_avx512
#include "../tmpl/strip.tmpl.h"
