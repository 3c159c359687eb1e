/* map kernels for neon; see ../tmpl/map.tmpl.h */
#include "vec_neon.h"
#define HK_NAME hk_map_f32_1x4_neon
#include "../tmpl/map.tmpl.h"
