/* igemm tiles for AVX2+FMA. */
#include "cpu/x86/vec_avx2.h"
#define MR 6
#define NR 16
#define NAME hk_igemm_f32_6x16_avx2
#include "cpu/tmpl/igemm.tmpl.h"
