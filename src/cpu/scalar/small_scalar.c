/* small kernels for scalar; see ../tmpl/small.tmpl.h */
#include "vec_scalar.h"

#define MR 1
#define NVM 4
#define HK_NAME hk_small_f32_1x4_scalar
#include "../tmpl/small.tmpl.h"

#define MR 2
#define NVM 4
#define HK_NAME hk_small_f32_2x4_scalar
#include "../tmpl/small.tmpl.h"

#define MR 3
#define NVM 4
#define HK_NAME hk_small_f32_3x4_scalar
#include "../tmpl/small.tmpl.h"

#define MR 4
#define NVM 2
#define HK_NAME hk_small_f32_4x2_scalar
#include "../tmpl/small.tmpl.h"
