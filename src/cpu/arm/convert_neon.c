/* convert kernels for neon; see ../tmpl/convert.tmpl.h */
#define HK_CONVERT(types) hk_convert_##types##_1x1_neon
#include "../tmpl/convert.tmpl.h"
