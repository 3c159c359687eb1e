/* dgemm tiles for avx512; see ../tmpl/dgemm.tmpl.h */
#include "vec_avx512.h"
#define MR 6
#define NR 16
#define NAME hk_dgemm_f64_6x16_avx512
#include "../tmpl/dgemm.tmpl.h"
