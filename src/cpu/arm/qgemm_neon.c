/* qgemm tiles for neon; see ../tmpl/qgemm.tmpl.h */
#include "vec_neon.h"
#define MR 4
#define NR 8
#define NAME hk_qgemm_s16_4x8_neon
#include "../tmpl/qgemm.tmpl.h"
