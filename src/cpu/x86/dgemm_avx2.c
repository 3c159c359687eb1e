/* dgemm tiles for avx2; see ../tmpl/dgemm.tmpl.h */
#include "vec_avx2.h"
#define MR 4
#define NR 8
#define NAME hk_dgemm_f64_4x8_avx2
#include "../tmpl/dgemm.tmpl.h"
