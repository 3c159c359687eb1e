/* small kernels for neon; see ../tmpl/small.tmpl.h */
#include "vec_neon.h"

#define MR 1
#define NVM 4
#define HK_NAME hk_small_f32_1x16_neon
#include "../tmpl/small.tmpl.h"

#define MR 2
#define NVM 4
#define HK_NAME hk_small_f32_2x16_neon
#include "../tmpl/small.tmpl.h"

#define MR 3
#define NVM 4
#define HK_NAME hk_small_f32_3x16_neon
#include "../tmpl/small.tmpl.h"

#define MR 4
#define NVM 4
#define HK_NAME hk_small_f32_4x16_neon
#include "../tmpl/small.tmpl.h"

#define MR 5
#define NVM 4
#define HK_NAME hk_small_f32_5x16_neon
#include "../tmpl/small.tmpl.h"

#define MR 6
#define NVM 4
#define HK_NAME hk_small_f32_6x16_neon
#include "../tmpl/small.tmpl.h"

#define MR 7
#define NVM 2
#define HK_NAME hk_small_f32_7x8_neon
#include "../tmpl/small.tmpl.h"

#define MR 8
#define NVM 2
#define HK_NAME hk_small_f32_8x8_neon
#include "../tmpl/small.tmpl.h"

#define MG 4
#define MR 1
#define NVM 4
#define HK_NAME hk_small4_f32_1x16_neon
#include "../tmpl/small.tmpl.h"

#define MG 2
#define MR 1
#define NVM 4
#define HK_NAME hk_small2_f32_1x16_neon
#include "../tmpl/small.tmpl.h"

#define MG 2
#define MR 2
#define NVM 4
#define HK_NAME hk_small2_f32_2x16_neon
#include "../tmpl/small.tmpl.h"

#define MG 2
#define MR 3
#define NVM 4
#define HK_NAME hk_small2_f32_3x16_neon
#include "../tmpl/small.tmpl.h"
