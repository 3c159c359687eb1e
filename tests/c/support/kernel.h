/* What the checkers of kernel families share. A checker draws one call of its family, runs the kernel, computes the
 * same call by the family's definition (plain loops over the argument struct, in double), and compares every element of
 * the output buffer: those that the family does not write keep their poison. Operands lie between guard pages, at the
 * high or the low end in turn, so a read or write beyond one faults. */
#ifndef HK_TESTS_KERNEL_H
#define HK_TESTS_KERNEL_H
#include "cpu/ukernel.h"
#include "support/guard.h"

#define KERNEL_POISON (-12345.0f)

typedef struct kernel_trial {
  const hk_kernel *k;
  hk_kernel_fn fn; /* the kernel, or what stands in for it */
  int64_t vw;      /* floats per vector */
  uint64_t seed;
  bool integers;    /* small integers: results are exact; else floats in [-1, 1) */
  int high;         /* buffers end at their guard, else they begin there */
  double tolerance; /* of floats; a checker may widen it */
  bool failed;
  guarded buffer[16];
  int buffers;
} kernel_trial;

int64_t trial_between(kernel_trial *t, int64_t lo, int64_t hi);
bool trial_chance(kernel_trial *t, int percent);
/* Buffers that kernel_try frees: random values; poison; and a plain copy for the definition to write into. */
float *trial_operand(kernel_trial *t, int64_t count);
float *trial_output(kernel_trial *t, int64_t count);
float *trial_copy(kernel_trial *t, const float *from, int64_t count);
/* Compares all count elements of the output with what the definition wrote. */
void trial_compare(kernel_trial *t, const float *got, const float *want, int64_t count);

/* One call each; see kernel_*.c. */
void check_igemm(kernel_trial *t);
void check_pgemm(kernel_trial *t);
void check_weave(kernel_trial *t);
void check_qgemm(kernel_trial *t);
void check_dgemm(kernel_trial *t);
void check_gather(kernel_trial *t);
void check_transpose(kernel_trial *t);
void check_stage(kernel_trial *t);
void check_convert(kernel_trial *t);
void check_act(kernel_trial *t);
void check_map(kernel_trial *t);
void check_small(kernel_trial *t);
void check_frame(kernel_trial *t);
void check_winoin(kernel_trial *t);
void check_winoout(kernel_trial *t);
void check_fft(kernel_trial *t);
void check_karatsuba(kernel_trial *t);
void check_dwd(kernel_trial *t);
void check_dwp(kernel_trial *t);
void check_dwc(kernel_trial *t);
void check_dwm(kernel_trial *t);
void check_strip(kernel_trial *t);
void check_point(kernel_trial *t);
void check_causalc(kernel_trial *t);
void check_causalt(kernel_trial *t);
void check_causalg(kernel_trial *t);
void check_spread(kernel_trial *t);
void check_longfft(kernel_trial *t);
void check_spectra(kernel_trial *t);
void check_fir(kernel_trial *t);
void check_outer(kernel_trial *t);
void check_tapsum(kernel_trial *t);
void check_dots(kernel_trial *t);
void check_finish(kernel_trial *t);
void check_requant(kernel_trial *t);
void check_transpose_narrow(kernel_trial *t);
void check_unpack8(kernel_trial *t);

/* The epilogues as ukernel.h defines them. */
typedef struct trial_epilogue {
  uint32_t flags;
  float beta, lo, hi;
} trial_epilogue;
double trial_igemm_epilogue(const trial_epilogue *e, double v, double scale, double bias, double c);
double trial_dw_epilogue(const hk_dw_fuse *e, double v, double scale, double bias, double c);
trial_epilogue trial_draw_igemm_epilogue(kernel_trial *t);
hk_dw_fuse trial_draw_dw_epilogue(kernel_trial *t, bool residual);
/* The activations of hankel.h by their formulas. */
double trial_act(hk_act act, double a, double b, double slope, double v);
#endif
