/* qgemm tiles for avx512; see ../tmpl/qgemm.tmpl.h */
#include "vec_avx512.h"
#define MR 6
#define NR 32
#define NAME hk_qgemm_s16_6x32_avx512
#include "../tmpl/qgemm.tmpl.h"
