/* Sizes of an igemm tile in shared memory: one fact for the kernel and for the host that launches it. */
#ifndef HK_CUDA_IGEMM_TILE_H
#define HK_CUDA_IGEMM_TILE_H

/* wgs: consumers that share a tile, of nc; 1 when they take turns at tiles of their own. */
#define HK_IGEMM_BM(mi, nc) (64 * (mi) * (nc))
/* parts: filter images a k block, two when f32 is split into high and low parts. */
#define HK_IGEMM_RING(mi, wgs, bn, parts, stages) ((stages) * 128 * (HK_IGEMM_BM(mi, wgs) + (bn) * (parts)))
/* Values of 64 rows x chunk columns a consumer on their way to y; the pitch keeps 8-byte writes of four rows in distinct
 * banks. A split tile needs none: its sums are exchanged through the ring, all bm rows at once. */
#define HK_IGEMM_PITCH(chunk) ((chunk) + 8)
#define HK_IGEMM_STAGING(nc, chunk, split) ((split) > 1 ? 0 : (nc) * 64 * HK_IGEMM_PITCH(chunk) * 4)
#define HK_IGEMM_SUM_PITCH(bn) ((bn) + ((8 - (bn)) & 31))
#define HK_IGEMM_SUMS(mi, nc, bn) (HK_IGEMM_BM(mi, nc) * HK_IGEMM_SUM_PITCH(bn) * 4)
#define HK_IGEMM_ROWS_AT(mi, wgs, nc, bn, parts, stages, chunk, split) \
  (HK_IGEMM_RING(mi, wgs, bn, parts, stages) + HK_IGEMM_STAGING(nc, chunk, split))
#define HK_IGEMM_PARAMS_AT(mi, wgs, nc, bn, parts, stages, chunk, split) \
  (HK_IGEMM_ROWS_AT(mi, wgs, nc, bn, parts, stages, chunk, split) + HK_IGEMM_BM(mi, nc) * 16)
#define HK_IGEMM_BARS(mi, wgs, nc, bn, parts, stages, chunk, split) \
  (HK_IGEMM_PARAMS_AT(mi, wgs, nc, bn, parts, stages, chunk, split) + (nc) * (bn) * 8)
#define HK_IGEMM_SMEM(mi, wgs, nc, bn, parts, stages, chunk, split) (HK_IGEMM_BARS(mi, wgs, nc, bn, parts, stages, chunk, split) + 256)
#define HK_IGEMM_SMEM_MAX 232448
#endif
