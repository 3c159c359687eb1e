/* The wall between loops and kernels: one signature a family, arguments in a struct. Kernels see only this, base and
 * their vocabulary. Rows are listed in kernels.inc. */
#ifndef HK_UKERNEL_H
#define HK_UKERNEL_H
#include "base/base.h"

typedef enum hk_family {
  HK_FAMILY_NONE = 0,
  HK_FAMILY_IGEMM = 1,  /* rows of pixels x packed output channels */
  HK_FAMILY_ACT = 2,    /* an activation over a row of floats */
  HK_FAMILY_COUNT
} hk_family;

typedef void (*hk_kernel_fn)(const void *args);

typedef struct hk_kernel {
  const char *name;          /* hk_<family>_<types>_<MR>x<NR>_<isa> */
  hk_family family;
  hk_isa isa;
  hk_type x_type, f_type;
  int32_t mr, nr;
  hk_kernel_fn fn;
} hk_kernel;

/* registry.c: rows of all families that this build holds */
extern const hk_kernel hk_kernels[];
extern const int32_t hk_kernel_count;
/* The first row of a family with the highest ISA this machine has, not above isa; NULL when there is none. */
const hk_kernel *hk_kernel_best(hk_family family, hk_isa isa);

/* igemm: acc[m][j] = sum over segments t, channels c of row(m, t)[c * c_stride] * f[t][c][j], m < rows <= MR, j < NR.
 * row(m, t) = x + offset[t * MR + m] (elements); an offset of HK_ROW_SKIP reads as zeros.
 * f is packed [segment][c][NR]; out is [MR][NR], every element of the first `rows` rows written. */
#define HK_ROW_SKIP INT64_MIN
typedef struct hk_igemm_args {
  const float *x;
  const int64_t *offset;
  const float *f;
  float *out;
  int64_t segments, channels, c_stride;
  int32_t rows;
} hk_igemm_args;

/* act: v[i] = act(v[i]) in place. PRELU's slope is slope[i * slope_step], slope_step 0 or 1; USER does nothing. */
typedef struct hk_act_args {
  float *v;
  int64_t count;
  hk_act act;
  float a, b;
  const float *slope;
  int64_t slope_step;
} hk_act_args;

#define HK_KERNEL(name, family, isa, x, f, mr, nr) void name(const void *args);
#include "cpu/kernels.inc"
#undef HK_KERNEL
#endif
