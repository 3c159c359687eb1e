/* gather for neon; see ../tmpl/gather.tmpl.h */
#include "vec_neon.h"
#define HK_NAME hk_gather_f32_1x4_neon
#include "../tmpl/gather.tmpl.h"
