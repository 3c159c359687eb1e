/* convert kernels for avx2; see ../tmpl/convert.tmpl.h */
#define HK_CONVERT(types) hk_convert_##types##_1x1_avx2
#include "../tmpl/convert.tmpl.h"
