/* dwc where all taps of a depthwise window form one chain of at most HK_CHAIN_TAPS, inside x: see `chain` of
 * hk_dwc_args. Included by dwc.tmpl.h.
 *
 * Short windows are bound by cache traffic, so everything else is kept small: the taps are compile-time constants, an
 * input vector is loaded once for all of them, a sum is stored with its last product, and no more accumulators are live
 * than there are taps. Several blocks advance together, row by row, so that reads and writes are contiguous (Zen 4, 4
 * taps, 256 channels x 1024: 28 us with four blocks, 35 us with one; a copy takes 22 us). Registers: together * taps
 * weights, together * (taps - 1) accumulators, one input, one sum.
 *
 * Tiles of six pixels are stored only after all their inputs are read: where pixels of x and y are a multiple of 4 KiB
 * apart, a load would otherwise wait for an earlier store with the same low 12 address bits (4 KiB aliasing).
 * Registers: together * (taps + 6) and one input. */

/* What happens to a sum: nothing; non-temporal store; scale, bias and clamp (each may be neutral); any epilogue; any
 * epilogue on a partial vector. */
enum { CHAIN_PLAIN, CHAIN_NT, CHAIN_AFFINE, CHAIN_ANY, CHAIN_TAIL };

/* The epilogue and destination of a block. */
typedef struct chain_to {
  float *y;
  const float *c;
  v_f32 scale[4], bias[4], lo, hi; /* of up to four blocks */
  v_mask mask;
  int lanes;
} chain_to;

/* Blocks that advance together; scale, bias and bounds take registers, so fewer do with an affine epilogue. */
#define CHAIN_HELD 6
HK_INLINE int chain_together(const int pixels, const int taps, const int kind) {
  if (kind > CHAIN_AFFINE) return 1;
  if (pixels == CHAIN_HELD) return HK_VREGS < 32 ? 1 : 2;
  if (HK_VREGS < 32) return kind == CHAIN_AFFINE ? 1 : taps <= 2 ? 4 : taps == 3 ? 2 : 1;
  if (kind == CHAIN_AFFINE) return taps <= 3 ? 3 : taps <= 5 ? 2 : 1;
  return taps <= 4 ? 4 : taps == 5 ? 3 : 2;
}

HK_INLINE void chain_store(const int kind, const hk_dwc_args *a, const chain_to *to, float *y, int b, int j, v_f32 v) {
  if (kind == CHAIN_AFFINE) v = v_min(to->hi, v_max(to->lo, v_fma(v, to->scale[b], to->bias[b])));
  if (kind >= CHAIN_ANY && a->fuse.flags) {
    v_f32 r = v_zero();
    if (a->fuse.flags & (HK_DW_BEFORE | HK_DW_AFTER)) r = v_load_m(to->c + j * a->c_step, to->mask);
    v = fuse_vector(&a->fuse, v, to->scale[0], to->bias[0], r);
  }
  if (kind == CHAIN_TAIL) v_store_n(y, v, to->lanes);
  else if (HK_NT_BLOCKS == 1 && (kind == CHAIN_NT || (kind == CHAIN_ANY && a->nontemporal))) v_store_nt(y, v);
  else v_store(y, v);
}

HK_INLINE void chain_block(const int pixels, const int taps, const int together, const int kind, const hk_dwc_args *a,
                           const float *x, const float *f, const chain_to *to) {
  v_f32 w[HK_CHAIN_TAPS * 4], acc[4][8];
  float *y = to->y;
  HK_UNROLL for (int t = 0; t < taps * together; t++) w[t] = v_load(f + t / taps * a->f_block + t % taps * HK_VW);
  HK_UNROLL for (int m = 0; m < pixels + taps - 1; m++, x += a->x_step) {
    HK_OPAQUE(x);
    HK_UNROLL for (int b = 0; b < together; b++) {
      v_f32 v = kind == CHAIN_TAIL ? v_load_m(x, to->mask) : v_load(x + b * HK_VW);
      HK_HOLD(v);
      HK_UNROLL for (int t = 0; t < taps; t++) {
        if (m - t >= 0 && m - t < pixels)
          acc[b][m - t] = t == 0 ? v_mul(v, w[b * taps]) : v_fma(v, w[b * taps + t], acc[b][m - t]);
      }
      if (pixels != CHAIN_HELD && m >= taps - 1)
        chain_store(kind, a, to, y + b * HK_VW, b, m - taps + 1, acc[b][m - taps + 1]);
    }
    if (pixels != CHAIN_HELD && m >= taps - 1) y += a->y_step;
  }
  if (pixels != CHAIN_HELD) return;
  HK_UNROLL for (int j = 0; j < pixels; j++, y += a->y_step) {
    HK_OPAQUE(y);
    HK_UNROLL for (int b = 0; b < together; b++) chain_store(kind, a, to, y + b * HK_VW, b, j, acc[b][j]);
  }
}

#if HK_NT_BLOCKS == 2
/* Two blocks that share a cache line of y, written back to back, so that non-temporal stores fill whole lines. Weights
 * and inputs pass through one register each, because memory is slower than L1 loads here. Registers: eight
 * accumulators. Ordinary stores gain too where pixels are a page apart and a line would leave L1 before its second half
 * is written: 4 taps of 1024 channels x 1024 take 199 us instead of 235 us. */
HK_INLINE void chain_pair(const int pixels, const int taps, const int kind, const hk_dwc_args *a, const float *x,
                          const float *f, float *y) {
  for (int p = 0; p < pixels; p += 4, x += 4 * a->x_step) {
    v_f32 acc[8];
    const float *at = x;
    HK_UNROLL for (int t = 0; t < taps; t++, at += a->x_step) {
      HK_OPAQUE(at);
      HK_UNROLL for (int b = 0; b < 2; b++) {
        const v_f32 w = v_load(f + b * a->f_block + t * HK_VW);
        HK_UNROLL for (int j = 0; j < 4; j++) {
          const v_f32 v = v_load(at + j * a->x_step + b * HK_VW);
          acc[2 * j + b] = t == 0 ? v_mul(w, v) : v_fma(w, v, acc[2 * j + b]);
        }
      }
    }
    HK_UNROLL for (int j = 0; j < 4; j++, y += a->y_step) {
      HK_UNROLL for (int b = 0; b < 2; b++) {
        if (kind == CHAIN_NT) v_store_nt(y + b * HK_VW, acc[2 * j + b]);
        else v_store(y + b * HK_VW, acc[2 * j + b]);
      }
    }
  }
}
#endif

/* A bias of -0 leaves every sum unchanged, including -0. */
HK_INLINE void chain_parameters(const int together, const hk_dwc_args *a, int64_t at, chain_to *to) {
  if (!a->fuse.flags) return;
  HK_UNROLL for (int b = 0; b < together; b++, at += HK_VW) {
    to->scale[b] = !a->scale ? v_set1(1.0f) : a->scale_one ? v_bcast(a->scale) : v_load_m(a->scale + at, to->mask);
    to->bias[b] = a->bias ? v_load_m(a->bias + at, to->mask) : v_set1(-0.0f);
  }
}

HK_INLINE void chain_blocks(const int pixels, const int taps, const int kind, const hk_dwc_args *a, const float *x,
                            float *y, const float *c) {
  const int together = chain_together(pixels, taps, kind);
  const int64_t whole = a->last_lanes < HK_VW || a->back ? a->blocks - 1 : a->blocks;
  chain_to to = {.mask = v_tail(HK_VW), .lanes = HK_VW, .lo = v_set1(a->fuse.lo), .hi = v_set1(a->fuse.hi)};
  int64_t left = whole, b, by; /* left: blocks to do; b: the next one; by: the step to the one after it */
  const float *f;
#define CHAIN_FROM(count)                                                                                              \
  (by = a->backwards ? -(count) : (count), b = a->backwards ? left - (count) : whole - left, f = a->f + b * a->f_block)
#if HK_NT_BLOCKS == 2
  const bool pairs = kind == CHAIN_NT ? pixels % 4 == 0 : kind == CHAIN_PLAIN && pixels == 4 && taps == 4;
  CHAIN_FROM(2);
  for (; pairs && left >= 2; left -= 2, b += by, f += by * a->f_block)
    chain_pair(pixels, taps, kind, a, x + b * HK_VW, f, y + b * HK_VW);
#endif
  CHAIN_FROM(together);
  for (; together > 1 && left >= together; left -= together, b += by, f += by * a->f_block) {
    to.y = y + b * HK_VW;
    if (kind > CHAIN_NT) chain_parameters(together, a, b * HK_VW, &to);
    chain_block(pixels, taps, together, kind, a, x + b * HK_VW, f, &to);
  }
  CHAIN_FROM(1);
  for (; left; left--, b += by, f += by * a->f_block) {
    to.y = y + b * HK_VW;
    if (kind > CHAIN_NT) chain_parameters(1, a, b * HK_VW, &to);
    if (kind == CHAIN_ANY) to.c = c ? c + b * HK_VW : c;
    chain_block(pixels, taps, 1, kind, a, x + b * HK_VW, f, &to);
  }
#undef CHAIN_FROM
  if (whole == a->blocks) return;
  f = a->f + whole * a->f_block;
  if (a->back) { /* a whole vector that starts early and overlaps the block before */
    const int64_t at = whole * HK_VW - a->back;
    to.y = y + at;
    if (kind > CHAIN_NT) chain_parameters(1, a, at, &to);
    chain_block(pixels, taps, 1, kind, a, x + at, f, &to);
    return;
  }
  to.mask = v_tail(a->last_lanes);
  to.lanes = a->last_lanes;
  to.y = y + whole * HK_VW;
  to.c = c ? c + whole * HK_VW : c;
  chain_parameters(1, a, whole * HK_VW, &to);
  chain_block(pixels, taps, 1, CHAIN_TAIL, a, x + whole * HK_VW, f, &to);
}

HK_INLINE void chain_tiles(const int pixels, const int taps, const hk_dwc_args *a) {
  const bool any = (a->nontemporal && a->fuse.flags) || (a->fuse.flags & (HK_DW_BEFORE | HK_DW_AFTER));
  const float *x = a->x + a->runs->offset, *c = a->c;
  float *y = a->y;
  for (int64_t tile = 0; tile < a->tiles; tile++, x += a->x_next, y += a->y_next) {
    if (any) chain_blocks(pixels, taps, CHAIN_ANY, a, x, y, c);
    else if (a->nontemporal) chain_blocks(pixels, taps, CHAIN_NT, a, x, y, c);
    else if (a->fuse.flags) chain_blocks(pixels, taps, CHAIN_AFFINE, a, x, y, c);
    else chain_blocks(pixels, taps, CHAIN_PLAIN, a, x, y, c);
    if (c) c += a->c_next;
  }
  if (a->nontemporal) v_fence();
}

#define CHAIN_TILES(n)                                                           \
  static __attribute__((noinline)) void chain_tiles_##n(const hk_dwc_args *a) {  \
    switch (a->chain) {                                                          \
      case 1: chain_tiles(n, 1, a); return;                                      \
      case 2: chain_tiles(n, 2, a); return;                                      \
      case 3: chain_tiles(n, 3, a); return;                                      \
      case 4: chain_tiles(n, 4, a); return;                                      \
      case 5: chain_tiles(n, 5, a); return;                                      \
      case 6: chain_tiles(n, 6, a); return;                                      \
      default: chain_tiles(n, HK_CHAIN_TAPS, a); return;                         \
    }                                                                            \
  }
CHAIN_TILES(4) CHAIN_TILES(6) CHAIN_TILES(8)

/* Returns false for tile sizes without an instance; the general loop handles those. */
HK_INLINE bool chain_run(const hk_dwc_args *a) {
  if (!a->chain) return false;
  if (a->pixels == 4) chain_tiles_4(a);
  else if (a->pixels == CHAIN_HELD) chain_tiles_6(a);
  else if (a->pixels == 8) chain_tiles_8(a);
  else return false;
  return true;
}
