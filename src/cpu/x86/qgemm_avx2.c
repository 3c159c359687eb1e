/* qgemm tiles for avx2; see ../tmpl/qgemm.tmpl.h */
#include "vec_avx2.h"
#define MR 4
#define NR 16
#define NAME hk_qgemm_s16_4x16_avx2
#include "../tmpl/qgemm.tmpl.h"
