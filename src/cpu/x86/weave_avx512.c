/* weave tiles for avx512: 6 masks of the 7 there are. See ../tmpl/weave.tmpl.h. */
#include "vec_avx512.h"
#define HK_NAME hk_weave_f32_6x16_avx512
#define HK_ROWS_1 6
#include "../tmpl/weave.tmpl.h"
