/* dwc: depthwise and grouped convolution, lanes are channels; see hk_dwc_args.
 *
 * Define MR (most pixels per tile) and HK_NAME, include a vocabulary, then this. A run slides along the pixels: each
 * input vector is loaded (and, grouped, permuted) once for up to HK_RUN_TAPS products. Registers: MR accumulators,
 * HK_RUN_TAPS weights, one input, one index. Masked lanes are neither read nor written. */
#include "cpu/tmpl/depthwise/dwfuse.tmpl.h"

/* Where a lane's input comes from: its own lane, a lane of its block by index, or one value broadcast to all lanes. */
enum { DWC_OWN, DWC_PERMUTE, DWC_BROADCAST };

typedef struct dwc_block {
  const float *x;
  v_mask mask;
  bool whole; /* x has all its lanes */
} dwc_block;

/* One run, for each input of the group. inside: all its pixels and lanes exist. */
HK_INLINE void dwc_run(const int pixels, const int taps, const int kind, const bool inside, v_f32 *acc,
                       const hk_dwc_args *a, const dwc_block *b, const hk_dw_run *r, const float *f) {
  const int32_t inputs = kind == DWC_OWN ? 1 : a->inputs;
  const float *from = b->x + r->offset;
  for (int32_t i = 0; i < inputs; i++, f += taps * HK_VW) {
    const v_i32 index = v_load_i32(a->index + (kind == DWC_PERMUTE ? i * HK_VW : 0));
    const float *x = kind == DWC_BROADCAST ? from + i : from;
    v_f32 w[HK_RUN_TAPS];
    HK_UNROLL for (int t = 0; t < taps; t++) w[t] = v_load(f + t * HK_VW);
    HK_UNROLL for (int m = 0; m < pixels + taps - 1; m++) {
      HK_OPAQUE(x);
      if (inside || (m >= r->first && m < r->last)) {
        v_f32 v;
        if (kind == DWC_BROADCAST) v = v_bcast(x);
        else v = (inside && !HK_MASKS_FREE) || b->whole ? v_load(x) : v_load_m(x, b->mask);
        if (kind == DWC_PERMUTE) v = v_permute(v, index);
        else if (taps > 1) HK_HOLD(v);
        HK_UNROLL for (int t = 0; t < taps; t++) {
          if (m - t >= 0 && m - t < pixels) acc[m - t] = v_fma(v, w[t], acc[m - t]);
        }
      }
      x += a->x_step;
    }
  }
}

HK_INLINE void dwc_runs(const int pixels, const int kind, const hk_dwc_args *a, const dwc_block *b, const float *f,
                        v_f32 *acc) {
  const hk_dw_run *end = a->runs + a->run_count;
  for (const hk_dw_run *r = a->runs; r < end; r++) {
    if ((HK_MASKS_FREE || kind == DWC_BROADCAST || b->whole) && r->first <= 0 && r->last >= pixels + r->taps - 1) {
      switch (r->taps) {
        case 1: dwc_run(pixels, 1, kind, true, acc, a, b, r, f); break;
        case 2: dwc_run(pixels, 2, kind, true, acc, a, b, r, f); break;
        case 3: dwc_run(pixels, 3, kind, true, acc, a, b, r, f); break;
        default: dwc_run(pixels, HK_RUN_TAPS, kind, true, acc, a, b, r, f); break;
      }
    } else if (r->first < r->last) {
      switch (r->taps) {
        case 1: dwc_run(pixels, 1, kind, false, acc, a, b, r, f); break;
        case 2: dwc_run(pixels, 2, kind, false, acc, a, b, r, f); break;
        case 3: dwc_run(pixels, 3, kind, false, acc, a, b, r, f); break;
        default: dwc_run(pixels, HK_RUN_TAPS, kind, false, acc, a, b, r, f); break;
      }
    }
    f += r->taps * HK_VW * (kind == DWC_OWN ? 1 : a->inputs);
  }
}

/* to: the tile's y and c. */
typedef struct dwc_to {
  float *y;
  const float *c;
} dwc_to;

/* at: the block's first channel. */
HK_INLINE void dwc_store(const int pixels, const hk_dwc_args *a, v_f32 *acc, const dwc_to *to, int64_t at, int lanes) {
  float *y = to->y + at;
  if (a->fuse.flags) {
    const v_mask m = v_tail(lanes);
    const v_f32 one = v_set1(1.0f);
    const v_f32 scale = !a->scale ? one : a->scale_one ? v_bcast(a->scale) : v_load_m(a->scale + at, m);
    const v_f32 bias = a->bias ? v_load_m(a->bias + at, m) : v_zero();
    HK_UNROLL for (int j = 0; j < pixels; j++) {
      v_f32 r = v_zero();
      if (a->fuse.flags & (HK_DW_BEFORE | HK_DW_AFTER)) r = v_load_m(to->c + at + j * a->c_step, m);
      acc[j] = fuse_vector(&a->fuse, acc[j], scale, bias, r);
    }
  }
  if (HK_NT_BLOCKS == 1 && lanes == HK_VW && a->nontemporal) {
    HK_UNROLL for (int j = 0; j < pixels; j++) v_store_nt(y + j * a->y_step, acc[j]);
  } else if (lanes == HK_VW) {
    HK_UNROLL for (int j = 0; j < pixels; j++) v_store(y + j * a->y_step, acc[j]);
  } else {
    HK_UNROLL for (int j = 0; j < pixels; j++) v_store_n(y + j * a->y_step, acc[j], lanes);
  }
}

HK_INLINE void dwc_tile(const int pixels, const int kind, const hk_dwc_args *a, const float *x, const dwc_to *to) {
  for (int64_t i = 0; i < a->blocks; i++) {
    const int64_t block = a->backwards ? a->blocks - 1 - i : i;
    const bool last = block == a->blocks - 1;
    const int x_lanes = last ? a->last_x_lanes : a->x_lanes;
    const int64_t back = last ? a->back : 0;
    const dwc_block b = {x + (block >> a->x_shift) * a->x_block - back, v_tail(x_lanes), x_lanes == HK_VW};
    const float *f = a->f + block * a->f_block;
    v_f32 acc[MR];
    HK_UNROLL for (int j = 0; j < pixels; j++) acc[j] = v_zero();
    if (a->resume) {
      const v_mask m = v_tail(last ? a->last_lanes : a->y_lanes);
      HK_UNROLL for (int j = 0; j < pixels; j++) acc[j] = v_load_m(to->y + block * a->y_block + j * a->y_step, m);
    }
    dwc_runs(pixels, kind, a, &b, f, acc);
    dwc_store(pixels, a, acc, to, block * a->y_block - back, last ? a->last_lanes : a->y_lanes);
  }
}

HK_INLINE void dwc_blocks(const int pixels, const int kind, const hk_dwc_args *a) {
  const float *x = a->x;
  dwc_to to = {a->y, a->c};
  for (int64_t tile = 0; tile < a->tiles; tile++, x += a->x_next, to.y += a->y_next) {
    dwc_tile(pixels, kind, a, x, &to);
    if (to.c) to.c += a->c_next;
  }
  if (a->nontemporal) v_fence();
}

#if HK_VW > 1
#include "cpu/tmpl/depthwise/dwchain.tmpl.h"
#else /* one lane: nothing to gain, and slow to compile */
static bool chain_run(const hk_dwc_args *a) { return (void)a, false; }
#endif

#define DWC_BLOCKS(n)                                                            \
  static __attribute__((noinline)) void dwc_blocks_##n(const hk_dwc_args *a) {   \
    if (!a->inputs) dwc_blocks(n, DWC_OWN, a);                                   \
    else if (a->broadcast) dwc_blocks(n, DWC_BROADCAST, a);                      \
    else dwc_blocks(n, DWC_PERMUTE, a);                                          \
  }
DWC_BLOCKS(1) DWC_BLOCKS(2) DWC_BLOCKS(3) DWC_BLOCKS(4) DWC_BLOCKS(5) DWC_BLOCKS(6) DWC_BLOCKS(7) DWC_BLOCKS(8)
#if MR > 8
DWC_BLOCKS(9) DWC_BLOCKS(10)
#endif
#if MR > 10
DWC_BLOCKS(11) DWC_BLOCKS(12)
#endif

void HK_NAME(const void *args) {
  const hk_dwc_args *a = args;
  if (chain_run(a)) return;
  switch (a->pixels) {
    case 1: dwc_blocks_1(a); return;
    case 2: dwc_blocks_2(a); return;
    case 3: dwc_blocks_3(a); return;
    case 4: dwc_blocks_4(a); return;
    case 5: dwc_blocks_5(a); return;
    case 6: dwc_blocks_6(a); return;
    case 7: dwc_blocks_7(a); return;
    case 8: dwc_blocks_8(a); return;
#if MR > 8
    case 9: dwc_blocks_9(a); return;
    case 10: dwc_blocks_10(a); return;
#endif
#if MR > 10
    case 11: dwc_blocks_11(a); return;
    case 12: dwc_blocks_12(a); return;
#endif
  }
}
