/* Sizes of an igemm tile in shared memory: one fact for the kernel and for the host that launches it. */
#ifndef HK_CUDA_IGEMM_TILE_H
#define HK_CUDA_IGEMM_TILE_H

#define HK_IGEMM_BM(mi, nc) (64 * (mi) * (nc))
#define HK_IGEMM_RING(mi, nc, bn, stages) ((stages) * 128 * (HK_IGEMM_BM(mi, nc) + (bn)))
/* Values of 64 rows x chunk columns a consumer on their way to y; the pitch keeps 8-byte writes of four rows in distinct
 * banks. A split tile needs none: its sums are exchanged through the ring, all bm rows at once. */
#define HK_IGEMM_PITCH(chunk) ((chunk) + 8)
#define HK_IGEMM_STAGING(nc, chunk, split) ((split) > 1 ? 0 : (nc) * 64 * HK_IGEMM_PITCH(chunk) * 4)
#define HK_IGEMM_SUM_PITCH(bn) ((bn) + ((8 - (bn)) & 31))
#define HK_IGEMM_SUMS(mi, nc, bn) (HK_IGEMM_BM(mi, nc) * HK_IGEMM_SUM_PITCH(bn) * 4)
#define HK_IGEMM_ROWS_AT(mi, nc, bn, stages, chunk, split) \
  (HK_IGEMM_RING(mi, nc, bn, stages) + HK_IGEMM_STAGING(nc, chunk, split))
#define HK_IGEMM_PARAMS_AT(mi, nc, bn, stages, chunk, split) \
  (HK_IGEMM_ROWS_AT(mi, nc, bn, stages, chunk, split) + HK_IGEMM_BM(mi, nc) * 16)
#define HK_IGEMM_BARS(mi, nc, bn, stages, chunk, split) \
  (HK_IGEMM_PARAMS_AT(mi, nc, bn, stages, chunk, split) + (nc) * (bn) * 8)
#define HK_IGEMM_SMEM(mi, nc, bn, stages, chunk, split) (HK_IGEMM_BARS(mi, nc, bn, stages, chunk, split) + 256)
#define HK_IGEMM_SMEM_MAX 232448
#endif
