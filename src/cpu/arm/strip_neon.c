/* strip tiles for neon: 24 sums, 4 of f, 1 broadcast of 32 registers. See ../tmpl/strip.tmpl.h. */
#include "vec_neon.h"
#define HK_NAME hk_strip_f32_6x16_neon
#include "../tmpl/strip.tmpl.h"
