/* Parameters of the SIMT kernels (simt.tmpl.cuh) and the sizes of their tiles, defined once for host and device. Read
 * by C and nvcc. Include after params.h. */
#ifndef HK_CUDA_SIMT_PARAMS_H
#define HK_CUDA_SIMT_PARAMS_H

enum { HK_SIMT_THREADS = 256, HK_SIMT_STEP = 8 }; /* per block; products per output and step */

typedef struct hk_cu_simt {
  hk_cu_direct d;        /* geometry, epilogue, operands; `outputs` and divisors of y */
  void *partial;         /* sums of the slices, [slice][row][channel of y], or NULL with one slice */
  int rows, gk;          /* output positions of all images; products per output */
  int tiles_m, tiles_n;  /* tiles_n: per group */
  int slices, steps;     /* of the reduction; steps of all slices */
  int images_inner;      /* neighbouring rows differ in the image, otherwise in the last dimension */
  int taps_inner;        /* neighbouring products differ in the tap, otherwise in the channel */
  int x_rows, f_columns; /* neighbouring threads load neighbouring rows of x, columns of f; otherwise products */
  int x_vector, f_vector;     /* channels are contiguous, and runs of 4 of them aligned; not with x_rows, f_columns */
  int dilated;                /* x has input dilation */
  hk_cu_divisor by_out[3], by_n, by_c, by_taps, by_win[3], by_in_dil[3];
} hk_cu_simt;

/* A product of the reduction: the position of its tap, and its offsets in x (without input dilation) and f. */
typedef struct hk_cu_simt_product {
  hk_cu_i64 x, f;
  int at[3], ends; /* ends: it is past the last */
} hk_cu_simt_product;

/* Rows are padded by 4 values, so that neighbouring products of 4 rows hit distinct banks. The sums of a tile take the
 * place of the operands at the end. */
#define HK_SIMT_PITCH(b) ((b) + 4)
#define HK_SIMT_STAGE(bm, bn, bytes) (HK_SIMT_STEP * (HK_SIMT_PITCH(bm) + HK_SIMT_PITCH(bn)) * (bytes))
#define HK_SIMT_TABLE (HK_SIMT_STEP * (int)sizeof(hk_cu_simt_product))
#define HK_SIMT_OPERANDS(bm, bn, bytes) (2 * HK_SIMT_STAGE(bm, bn, bytes) + 2 * HK_SIMT_TABLE)
#define HK_SIMT_SUMS(bm, bn, bytes) ((bm) * ((bn) + 1) * (bytes))
#define HK_SIMT_SMEM(bm, bn, bytes)                                                                                    \
  (HK_SIMT_OPERANDS(bm, bn, bytes) > HK_SIMT_SUMS(bm, bn, bytes) ? HK_SIMT_OPERANDS(bm, bn, bytes)                     \
                                                                 : HK_SIMT_SUMS(bm, bn, bytes))
#endif
