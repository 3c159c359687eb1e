/* Parameters that the host passes to the device kernels: plain structs with the same layout on both sides. Read by
 * the C host code, nvcc and NVRTC, so this file includes nothing. Sizes and strides count elements unless a name
 * says bytes. */
#ifndef HK_CUDA_PARAMS_H
#define HK_CUDA_PARAMS_H

typedef long long hk_cu_i64;

/* hk_type, hk_act, hk_gate and hk_residual are passed as their numbers; the host asserts that they agree. */
enum {
  HK_CU_F32 = 0,
  HK_CU_F64 = 1,
  HK_CU_F16 = 2,
  HK_CU_BF16 = 3,
  HK_CU_S8 = 4,
  HK_CU_U8 = 5,
  HK_CU_S32 = 6,
  HK_CU_F8 = 7
};
enum {
  HK_CU_NONE = 0, HK_CU_RELU = 1, HK_CU_CLIP = 2, HK_CU_LEAKY = 3, HK_CU_PRELU = 4, HK_CU_SIGMOID = 5, HK_CU_SILU = 6,
  HK_CU_TANH = 7, HK_CU_GELU = 8, HK_CU_GELU_TANH = 9, HK_CU_HARDSWISH = 10, HK_CU_HARDTANH = 11, HK_CU_SOFTSIGN = 12,
  HK_CU_USER = 13
};

/* n / d of 0 <= n < 2^31 by a multiplication: (high(n * mul) + n) >> shift. */
typedef struct hk_cu_divisor {
  unsigned d, mul, shift;
} hk_cu_divisor;

/* Element (g, outer, channel, at..) is at base + offset + the sum of strides times indices. */
typedef struct hk_cu_view {
  hk_cu_i64 offset, group, outer, channel, at[3];
} hk_cu_view;

/* The canonical problem: three spatial dimensions, leading ones of size 1 where the rank is lower. */
typedef struct hk_cu_geom {
  hk_cu_i64 n, groups, cg, kg;  /* batch of y, groups, channels of x and of y in a group */
  hk_cu_i64 in[3], out[3], win[3], stride[3], lo[3], dil[3], in_dil[3];
  hk_cu_view x, f, y, c;        /* f already folds a reversed filter; c is the residual */
  int x_type, f_type, y_type;
  int x_zero, f_zero, y_zero;
} hk_cu_geom;

typedef struct hk_cu_epi {
  const void *scale, *bias, *slopes; /* f32 (f64 with f64 sums; bias s32 with s32 sums); NULL when absent */
  const int *f_zeros;                /* one per channel, or NULL */
  const void *c;                     /* residual */
  void *y;
  void *user;
  int scale_one;                     /* scale holds one value for all channels */
  int act, act2, gate, residual;
  float a, b, a2, b2, beta;
} hk_cu_epi;

typedef struct hk_cu_direct {
  hk_cu_geom g;
  hk_cu_epi e;
  const void *x, *f;
  hk_cu_i64 outputs;                 /* elements of y */
  int k_inner;                       /* neighbouring threads differ in k, otherwise in the last dimension */
  int few;                           /* fewer than 2^31 outputs: the divisors below are valid */
  hk_cu_divisor by_out[3], by_k, by_kg; /* k: channels of y; kg: channels per group before a gate */
} hk_cu_direct;

/* A tensor map: 128 bytes that the driver encodes and TMA reads. */
typedef struct hk_cu_tmap {
  unsigned long long word[16];
#ifdef __CUDACC__
} __attribute__((aligned(64))) hk_cu_tmap;
#else
} hk_cu_tmap __attribute__((aligned(64)));
#endif

/* One wgmma launch. gm counts output pixels (n, then space, the last dimension innermost); a k block is one tap of
 * one 128-byte run of channels, channel runs outer, taps inner. */
typedef struct hk_cu_igemm {
  hk_cu_tmap xmap, ymap;             /* ymap: with slab, {channels of a group, groups, pixels} */
  const void *filters;               /* packed, see pack.cu */
  hk_cu_geom g;
  hk_cu_epi e;
  hk_cu_i64 gm;
  int load;                          /* HK_CU_LOAD_* */
  int tiles_m, tiles_n, group_tiles_n; /* tiles_n over all groups */
  int k_blocks, splits;
  int whole_blocks;                  /* k blocks before those that fill at most half of their 128 bytes */
  hk_cu_divisor by_out[3], by_wide, by_group, by_k; /* out; tiles_n / cn; group_tiles_n; kg */
  int y_linear;                      /* y[m] = m * g.y.at[2]: no decode per row */
  int c_linear;
  int k_inner;                       /* y's channels are its contiguous dimension */
  int vector;                        /* 16-byte accesses of y and c are legal */
  int wide;                          /* finish_wide.cuh supports y: no gate, no slopes; exactly one of slab, strip,
                                      * transposed, tall, slim is set unless the reduction is split */
  int slab;                          /* y is stored by TMA: runs of 8 channels, pixels at a constant stride (1) or at
                                      * any strides (2) */
  int transposed;                    /* 16-bit y with contiguous pixels, in aligned runs of 8 or 4 */
  int tall;                          /* any other y with contiguous pixels: 2 in aligned pairs (or f32), 1 one by one */
  int strip;                         /* 16-bit y: one tile covers all channels, and pixels have no gaps (2: 16-byte
                                      * stores) */
  int slim;                          /* channels are contiguous, but neither aligned nor a multiple of 8 */
  int late;                          /* a clamp to [late_lo, late_hi] follows the residual */
  float late_lo, late_hi;
} hk_cu_igemm;

enum { HK_CU_LOAD_TILED = 2, HK_CU_LOAD_1D = 3, HK_CU_LOAD_2D = 4, HK_CU_LOAD_3D = 5 };

/* A copy of x: to[n][space][group][run] with channels innermost, zero-padded to `run` per group, input dilation
 * filled in. Its last dimension starts `shift` elements before x: where a window is folded, padding is written out. */
typedef struct hk_cu_transpose {
  const void *x;
  void *to;
  hk_cu_view view;
  hk_cu_i64 n, groups, cg, run, pixels;
  hk_cu_i64 tiles;                   /* of 64 pixels x 64 channels; with c_inner, 16-byte pieces */
  hk_cu_i64 end;                     /* elements from the first of x to past its last; 0 where strides are negative */
  int spots;                         /* tiles of 64 pixels in all images */
  int in[3], span[3], dil[3];        /* of x; of `to`; input dilation */
  int shift;
  int bytes;
  int c_inner;                       /* the channels of x are contiguous, otherwise its last dimension */
  hk_cu_divisor by_span[3], by_pieces, by_groups, by_pixels; /* pieces: of 16 bytes in a run */
} hk_cu_transpose;

/* A copy of x by windows: to[n][out][run]. A run holds the taps and channels of a window, the contiguous ones
 * innermost, and zeros where the window leaves x and after its last value. */
typedef struct hk_cu_gather {
  const void *x;
  void *to;
  hk_cu_view view;                   /* of x */
  hk_cu_i64 pieces;                  /* of 16 bytes, in all */
  int live;                          /* values per window */
  int taps_inner;                    /* taps innermost, else channels */
  int vector;                        /* pieces are contiguous in x too, and aligned */
  int in[3], stride[3], lo[3], dil[3];
  hk_cu_divisor by_run, by_out[3], by_win[3], by_inner; /* run: in pieces; inner: taps or channels */
} hk_cu_gather;

/* The concatenated state and x of a stateful 1D plan: to[n][channel][position] or to[n][position][channel], and the
 * new state, [n][channel][past]. x is copied in rows, [n][part][outer][inner], inner innermost; inner is split into
 * segments. */
typedef struct hk_cu_state {
  const void *x, *state_in;          /* state_in NULL: filled with `zero` */
  void *to, *state_out;              /* state_out may equal state_in or be NULL */
  hk_cu_view view;                   /* of x */
  hk_cu_i64 n, channels, cg, in, past;
  hk_cu_i64 to_outer, to_channel, to_at;
  hk_cu_i64 parts, outer, inner, segments;
  hk_cu_i64 from_part, from_outer, from_inner;
  hk_cu_i64 into_part, into_outer;   /* the innermost stride of `to` is 1 */
  hk_cu_i64 past_warps, warps;       /* the first past_warps copy the state of one channel each, the others a segment
                                      * of x */
  int zero;
} hk_cu_state;

/* Packing of filters into the shared-memory images of the tiles. */
typedef struct hk_cu_pack {
  const void *f;
  void *out;
  hk_cu_view view;
  hk_cu_i64 cg, kg, win[3];
  hk_cu_i64 blocks;                  /* 128-byte rows in all: tiles_n * k_blocks * parts * bn */
  int f_type, to_type;               /* to_type HK_CU_F32 rounds to tf32 */
  int bn, group_tiles_n, k_blocks;
  int gate;                          /* columns of a chunk of 32: 16 channels, then their 16 gate partners */
  int parts;                         /* 2: the high part rounded to tf32, then the remainder */
  int fold, fold_run, fold_win[3];   /* fold > 0: channel c of the images is tap c / fold_run of channel c % fold_run
                                      * (with fold_run 0: channel c / fold, tap c % fold) of a window fold_win of
                                      * `fold` taps */
  int join_c, join_k;                /* > 0: channels of the filters' own groups, several of which make up cg and kg;
                                      * zeros between them */
} hk_cu_pack;

#endif
