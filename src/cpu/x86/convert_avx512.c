/* convert kernels for avx512; see ../tmpl/convert.tmpl.h */
#define HK_CONVERT(types) hk_convert_##types##_1x1_avx512
#include "../tmpl/convert.tmpl.h"
