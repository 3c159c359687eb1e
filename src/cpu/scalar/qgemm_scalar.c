/* qgemm tiles for scalar; see ../tmpl/qgemm.tmpl.h */
#include "vec_scalar.h"
#define MR 2
#define NR 4
#define NAME hk_qgemm_s16_2x4_scalar
#include "../tmpl/qgemm.tmpl.h"
