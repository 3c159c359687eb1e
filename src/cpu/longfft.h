/* Tables of the longfft kernels; shared by long convolutions and streams. */
#ifndef HK_LONGFFT_H
#define HK_LONGFFT_H
#include "cpu/ukernel.h"

/* Floats of the tables of transforms of n1*n2 points with vectors of vw floats. */
int64_t hk_longfft_floats(int64_t n1, int64_t n2, int64_t vw);
/* Fills them (64-byte aligned) and points the fields columns, rows, lane and base of args, whose n1 and n2 are set, to
 * them. */
void hk_longfft_tables(hk_longfft_args *a, int64_t vw, float *to);
#endif
