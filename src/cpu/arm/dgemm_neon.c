/* dgemm tiles for neon; see ../tmpl/dgemm.tmpl.h */
#include "vec_neon.h"
#define MR 4
#define NR 4
#define NAME hk_dgemm_f64_4x4_neon
#include "../tmpl/dgemm.tmpl.h"
