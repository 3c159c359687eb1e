/* small kernels for avx512; see ../tmpl/small.tmpl.h */
#include "vec_avx512.h"

#define MR 1
#define NVM 4
#define HK_NAME hk_small_f32_1x64_avx512
#include "../tmpl/small.tmpl.h"

#define MR 2
#define NVM 4
#define HK_NAME hk_small_f32_2x64_avx512
#include "../tmpl/small.tmpl.h"

#define MR 3
#define NVM 4
#define HK_NAME hk_small_f32_3x64_avx512
#include "../tmpl/small.tmpl.h"

#define MR 4
#define NVM 4
#define HK_NAME hk_small_f32_4x64_avx512
#include "../tmpl/small.tmpl.h"

#define MR 5
#define NVM 4
#define HK_NAME hk_small_f32_5x64_avx512
#include "../tmpl/small.tmpl.h"

#define MR 6
#define NVM 4
#define HK_NAME hk_small_f32_6x64_avx512
#include "../tmpl/small.tmpl.h"

#define MR 7
#define NVM 2
#define HK_NAME hk_small_f32_7x32_avx512
#include "../tmpl/small.tmpl.h"

#define MR 8
#define NVM 2
#define HK_NAME hk_small_f32_8x32_avx512
#include "../tmpl/small.tmpl.h"

#define MG 4
#define MR 1
#define NVM 4
#define HK_NAME hk_small4_f32_1x64_avx512
#include "../tmpl/small.tmpl.h"

#define MG 2
#define MR 1
#define NVM 4
#define HK_NAME hk_small2_f32_1x64_avx512
#include "../tmpl/small.tmpl.h"

#define MG 2
#define MR 2
#define NVM 4
#define HK_NAME hk_small2_f32_2x64_avx512
#include "../tmpl/small.tmpl.h"

#define MG 2
#define MR 3
#define NVM 4
#define HK_NAME hk_small2_f32_3x64_avx512
#include "../tmpl/small.tmpl.h"
