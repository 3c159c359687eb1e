/* dgemm tiles for scalar; see ../tmpl/dgemm.tmpl.h */
#include "vec_scalar.h"
#define MR 2
#define NR 2
#define NAME hk_dgemm_f64_2x2_scalar
#include "../tmpl/dgemm.tmpl.h"
