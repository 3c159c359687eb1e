/* small kernels for avx2; see ../tmpl/small.tmpl.h */
#include "vec_avx2.h"

#define MR 1
#define NVM 8
#define HK_NAME hk_small_f32_1x64_avx2
#include "../tmpl/small.tmpl.h"

#define MR 2
#define NVM 4
#define HK_NAME hk_small_f32_2x32_avx2
#include "../tmpl/small.tmpl.h"

#define MR 3
#define NVM 4
#define HK_NAME hk_small_f32_3x32_avx2
#include "../tmpl/small.tmpl.h"

#define MR 4
#define NVM 3
#define HK_NAME hk_small_f32_4x24_avx2
#include "../tmpl/small.tmpl.h"

#define MR 5
#define NVM 2
#define HK_NAME hk_small_f32_5x16_avx2
#include "../tmpl/small.tmpl.h"

#define MR 6
#define NVM 2
#define HK_NAME hk_small_f32_6x16_avx2
#include "../tmpl/small.tmpl.h"

#define MG 4
#define MR 1
#define NVM 3
#define HK_NAME hk_small4_f32_1x24_avx2
#include "../tmpl/small.tmpl.h"

#define MG 2
#define MR 1
#define NVM 4
#define HK_NAME hk_small2_f32_1x32_avx2
#include "../tmpl/small.tmpl.h"

#define MG 2
#define MR 2
#define NVM 3
#define HK_NAME hk_small2_f32_2x24_avx2
#include "../tmpl/small.tmpl.h"

#define MG 2
#define MR 3
#define NVM 2
#define HK_NAME hk_small2_f32_3x16_avx2
#include "../tmpl/small.tmpl.h"
