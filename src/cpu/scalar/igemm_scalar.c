/* igemm tiles in plain C. */
#include "cpu/scalar/vec_scalar.h"
#define MR 4
#define NR 4
#define NAME hk_igemm_f32_4x4_scalar
#include "cpu/tmpl/igemm.tmpl.h"
