/* Parameters of an igemm launch and the sizes of a tile in shared memory, defined once for kernel and host. Include
 * after params.h. */
#ifndef HK_CUDA_IGEMM_TILE_H
#define HK_CUDA_IGEMM_TILE_H

/* The product comes first: device functions take a pointer to it and reach the rest by launch_of (igemm.cuh). */
typedef struct hk_cu_launch {
  hk_cu_igemm product;
  hk_cu_tmap cmap;  /* the residual, where y is stored in slabs: like ymap */
  int pairs;        /* scale and bias are 8-byte aligned */
  int step;         /* pixels between tiles: the tile's height, or fewer where that balances the waves */
  hk_cu_tmap xhalf; /* like xmap, for half blocks */
  int chain;        /* HK_CU_CHAIN_* */
  int fold;         /* > 0, with slim: channel k of y is k / fold * fold_step + k % fold elements behind channel 0 */
  long long fold_step;
} hk_cu_launch;

/* Launches that write disjoint parts of y run side by side: the first starts the next once what came before is
 * complete, the others start at once and wait for the one before at their end, so that the last is complete when all
 * are. */
enum { HK_CU_CHAIN_NONE = 0, HK_CU_CHAIN_FIRST = 1, HK_CU_CHAIN_NEXT = 2 };

/* The packed filters; from k block `halves` on they hold half as many channels, in rows of 64 bytes. */
typedef struct hk_cu_images {
  hk_cu_pack pack;
  int halves;
  int apart;        /* > 1: 64 channels are ordered by their index modulo `apart` */
} hk_cu_images;

/* Whether k blocks that fill at most half of their 128 bytes are half blocks: only without clusters, and not for f32
 * in two parts or e4m3. */
#define HK_IGEMM_HALVES(type, parts, cm, cn) ((type) != HK_CU_F8 && (parts) == 1 && (cm) * (cn) == 1)

/* wgs: how many of the nc consumers share a tile; 1 is ping-pong. */
#define HK_IGEMM_BM(mi, nc) (64 * (mi) * (nc))
/* parts: filter images per k block, 2 when f32 is split into high and low parts. */
#define HK_IGEMM_RING(mi, wgs, bn, parts, stages) ((stages) * 128 * (HK_IGEMM_BM(mi, wgs) + (bn) * (parts)))
/* The staging buffer: memory of each consumer after the ring for values that are about to be stored. It holds either
 * two slots per warp, of 16 or 8 rows of 128 bytes (finish_slab.cuh), or the general path's sums of 64 rows x chunk
 * columns, whose pitch keeps 8-byte writes of four rows in distinct banks, then row offsets, then scale and bias. A
 * split tile has no staging buffer: its sums are exchanged through the ring, all bm rows at once; row offsets, scale
 * and bias follow it. */
#define HK_IGEMM_PITCH(chunk) ((chunk) + 8)
#define HK_IGEMM_SUMS_BYTES(chunk) (64 * HK_IGEMM_PITCH(chunk) * 4)
#define HK_IGEMM_SLOT_ROWS(ring, nc) ((ring) + (nc) * 16384 + 256 <= HK_IGEMM_SMEM_MAX ? 16 : 8)
#define HK_IGEMM_GENERAL(mi, bn, chunk) (HK_IGEMM_SUMS_BYTES(chunk) + 64 * (mi) * 16 + (bn) * 8)
/* Pitch in bytes of a strip's rows of 16-bit values (finish_strip.cuh): an odd number of 16-byte pieces, so that the
 * rows of a matrix hit distinct banks. */
#define HK_IGEMM_STRIP(bn) ((bn) * 2 + ((bn) % 16 ? 0 : 16))
#define HK_IGEMM_STRIPS(ring, nc, bn)                                                                                  \
  ((ring) + (nc)*64 * HK_IGEMM_STRIP(bn) + 1024 <= HK_IGEMM_SMEM_MAX ? 64 * HK_IGEMM_STRIP(bn) : 0)
#define HK_IGEMM_LARGER(a, b) ((a) > (b) ? (a) : (b))
#define HK_IGEMM_STAGING(ring, mi, nc, bn, chunk) \
  ((HK_IGEMM_LARGER(HK_IGEMM_LARGER(HK_IGEMM_SLOT_ROWS(ring, nc) * 1024, HK_IGEMM_GENERAL(mi, bn, chunk)), \
                    HK_IGEMM_STRIPS(ring, nc, bn)) + 1023) / 1024 * 1024)
#define HK_IGEMM_SUM_PITCH(bn) ((bn) + ((8 - (bn)) & 31))
#define HK_IGEMM_SUMS(mi, nc, bn) (HK_IGEMM_BM(mi, nc) * HK_IGEMM_SUM_PITCH(bn) * 4)
#define HK_IGEMM_BARS_(ring, mi, nc, bn, chunk, split) \
  ((ring) + ((split) > 1 ? HK_IGEMM_BM(mi, nc) * 16 + (bn) * 8 : (nc) * HK_IGEMM_STAGING(ring, mi, nc, bn, chunk)))
#define HK_IGEMM_BARS(mi, wgs, nc, bn, parts, stages, chunk, split) \
  HK_IGEMM_BARS_(HK_IGEMM_RING(mi, wgs, bn, parts, stages), mi, nc, bn, chunk, split)
#define HK_IGEMM_SMEM(mi, wgs, nc, bn, parts, stages, chunk, split)                                                    \
  (HK_IGEMM_BARS(mi, wgs, nc, bn, parts, stages, chunk, split) + 256)
#define HK_IGEMM_SMEM_MAX 232448
#endif
