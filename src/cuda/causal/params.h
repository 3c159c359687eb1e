/* What a launch of the causal depthwise Conv1D passes to its kernels: hk_causal_desc and hk_causal_args with every
 * default filled in, and how threads map to the problem. Sizes and strides count elements. */
#ifndef HK_CUDA_CAUSAL_PARAMS_H
#define HK_CUDA_CAUSAL_PARAMS_H
#include "cuda/params.h"

typedef struct hk_cu_causal_view { hk_cu_i64 outer, channel, time; } hk_cu_causal_view;

enum { HK_CU_BATCH = 0, HK_CU_OFFSETS = 1, HK_CU_IDS = 2 }; /* hk_causal_packing */
/* How a thread reads the values of its channels: one by one; one vector per entry (channels are contiguous); one run
 * that holds the entries of each channel together. */
enum { HK_CU_SCALAR = 0, HK_CU_VECTOR = 1, HK_CU_RUN = 2 };
/* How a block moves a tensor between memory and a tile (tile.cuh): in vectors along time or channels, or one value at a
 * time with lanes along the one or the other. */
enum { HK_CU_TIME_VECTORS = 0, HK_CU_CHANNEL_VECTORS = 1, HK_CU_TIME_SINGLE = 2, HK_CU_CHANNEL_SINGLE = 3 };
enum { HK_CU_CAUSAL_THREADS = 128, HK_CU_TILE_THREADS = 256, HK_CU_TILE_ROWS = 128 };

/* A unit is `chunk` tokens of one sequence. Sequence s has the units from s*chunks on, or with OFFSETS those from
 * offsets[s]/chunk + s*spare on; some of these lie behind the end of the sequence and are idle. */
typedef struct hk_cu_causal_call {
  const void *x, *f, *bias, *pre, *post, *residual;
  void *y;
  const void *state_in;
  void *state_out;
  const int *slots_in, *slots_out, *positions, *accepted, *offsets, *ids;
  const unsigned char *has_state;
  hk_cu_causal_view xs, ys, pres, posts, residuals, states; /* outer is 0 with OFFSETS */
  hk_cu_i64 f_channel, f_tap, skip;
  int n, c, length, window, dilation, state_length;
  int f_type, y_type, state_type;
  int packing, ring, has_skip, act;
  float a, b;
  int chunk, chunks, spare, units;
  int groups;                      /* channels over channels per thread */
  hk_cu_divisor by_chunks, by_groups, by_units;
  int f_access, x_access, y_access, state_access;
  /* of tiles: groups are blocks over channels; halo: rows before the outputs */
  int halo, x_way, y_way, pre_way, post_way, residual_way;
  /* of the gradient: dy lies as y; after: rows behind those of a tile; partial[unit][window + 1][c], the bias last */
  int after, dx_way;
  const void *dy, *dstate_out;
  void *dx, *dstate_in;
  hk_cu_causal_view dxs;
  float *partial, *df, *dbias;
} hk_cu_causal_call;

#endif
