/* convert kernels for scalar; see ../tmpl/convert.tmpl.h */
#define HK_CONVERT(types) hk_convert_##types##_1x1_scalar
#include "../tmpl/convert.tmpl.h"
