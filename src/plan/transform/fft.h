/* Long depthwise windows by overlap-save: what transform/fft.c decides and builds, and fft_run.c runs. */
#ifndef HK_PLAN_FFT_H
#define HK_PLAN_FFT_H
#include "plan/depthwise/depthwise.h"

/* of hk_algo.error_factor; tests/c/cpu/fft_test.c finds 0.26 at most */
#define HK_FFT_ERROR 1
enum { HK_FFT_POINTS, HK_FFT_SLOTS };
enum {
  HK_FFT_TO_CHANNELS, /* the kernel stores vectors of channels */
  HK_FFT_TO_PLANES,   /* transposed into y itself */
  HK_FFT_TO_ROWS      /* transposed into rows of a scratch, which go through hk_plan_store_row */
};

typedef struct hk_fft {
  hk_kernel_fn transpose;
  int64_t vw, points, slots;
  int64_t stretch;                      /* outputs of one transform's real or imaginary part */
  int64_t phases, pairs, blocks, items; /* dilation's interleaved rows; pairs of stretches of one; of channels; all */
  int64_t slot_floats;
  int store;
  bool planes; /* x is channels-first */
  hk_dw_fuse fuse;
  float *twiddle;
} hk_fft;

bool hk_fft_layout(const hk_task *task, const hk_decision *d, hk_fft *p, char *why);
hk_status hk_fft_run(const hk_plan *plan, const hk_call *call);
#endif
