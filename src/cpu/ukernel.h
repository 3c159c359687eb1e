/* The interface between loops and kernels: every kernel is a function of one pointer to its family's argument struct.
 * Each struct's comment defines what the family computes. Kernels include only this, base, and their vocabulary
 * (vec_<isa>.h); the kernels of a build are the rows of kernels.inc.
 *
 * Words: VW is the number of floats in a vector of the ISA; MR x NR is the register tile of a row; a segment is a piece
 * of the reduction whose operands are contiguous (one tap, say); a tail is a last, partial vector, read and written
 * under a mask. A field named *_step, *_next or *_stride counts elements. */
#ifndef HK_UKERNEL_H
#define HK_UKERNEL_H
#include "base/base.h"

typedef enum hk_family {
  HK_FAMILY_NONE = 0,
  HK_FAMILY_IGEMM = 1,      /* implicit GEMM: rows of pixels x packed output channels; lanes are output channels */
  HK_FAMILY_ACT = 2,        /* an activation over a row of floats */
  HK_FAMILY_SMALL = 3,      /* few channels over planar rows; lanes are points in time */
  HK_FAMILY_MAP = 4,        /* element-wise over planar rows: activations, gates, scale and shift */
  HK_FAMILY_SMALL2 = 20,    /* small, a tile spans two groups */
  HK_FAMILY_SMALL4 = 21,    /* small, a tile spans four groups */
  HK_FAMILY_PGEMM = 5,      /* packed output channels x pixels of planes; lanes are pixels */
  HK_FAMILY_GATHER = 6,     /* copies pixels of planes into a panel */
  HK_FAMILY_WINOIN = 7,     /* Winograd input transform; MR is the side of the input tile */
  HK_FAMILY_WINOOUT = 8,    /* Winograd output transform; MR is the side of the output tile */
  HK_FAMILY_DOT = 9,        /* rows of pixels x few output channels; lanes are input channels; igemm's arguments */
  HK_FAMILY_DWP = 10,       /* depthwise; lanes are neighbours along the last dimension */
  HK_FAMILY_DWC = 11,       /* depthwise and grouped; lanes are channels */
  HK_FAMILY_STAGE = 12,     /* copies rows of a plane into a padded buffer, split by stride phase */
  HK_FAMILY_CONVERT = 13,   /* converts a row from x_type to f_type */
  HK_FAMILY_QGEMM = 14,     /* rows of s16 pixels x packed output channels, accumulated in s32 */
  HK_FAMILY_DGEMM = 15,     /* rows of f64 pixels x packed output channels */
  HK_FAMILY_DWM = 16,       /* depthwise 3x3, 5x5, 7x7, accumulators of several rows at once; lanes are channels */
  HK_FAMILY_WEAVE = 17,     /* pixels of few channels, several pixels per vector */
  HK_FAMILY_TRANSPOSE = 18, /* transposes a matrix */
  HK_FAMILY_DWD = 19,       /* depthwise with few outputs as dot products; lanes are neighbouring taps */
  HK_FAMILY_FFT = 22,       /* long windows by FFT; lanes are channels */
  HK_FAMILY_POINT = 23,     /* windows of one tap, few channels per group */
  HK_FAMILY_STRIP = 24,     /* neighbouring pixels x output channels of a group; lanes are channels */
  HK_FAMILY_KARATSUBA = 25, /* long windows along a row by Karatsuba, 9 products in place of 16; lanes are channels */
  HK_FAMILY_CAUSALC = 26,   /* causal depthwise Conv1D; lanes are channels */
  HK_FAMILY_CAUSALT = 27,   /* causal depthwise Conv1D; lanes are tokens */
  HK_FAMILY_SPREAD = 28,    /* a strided matrix of any float type to rows of f32, or back */
  HK_FAMILY_CAUSALG = 29,   /* backward pass of causal depthwise Conv1D: one tile */
  HK_FAMILY_LONGFFT = 30,   /* convolution of a whole row by FFT; lanes are points of one row */
  HK_FAMILY_OUTER = 31,     /* outer products over pixels: filter gradients; lanes are channels */
  HK_FAMILY_TAPSUM = 32,    /* filter gradients of depthwise and grouped windows; lanes are channels */
  HK_FAMILY_SPECTRA = 33,   /* sums of products of spectra of longfft */
  HK_FAMILY_FIR = 34,       /* a long window summed directly; lanes are points in time */
  HK_FAMILY_FRAME = 35,     /* few channels over interleaved frames; lanes are outputs of one or several frames */
  HK_FAMILY_DOTS = 36,      /* rows of bf16 or 8-bit pixels x packed output channels, by dot-product instructions */
  HK_FAMILY_FINISH = 37,    /* rows of f32 sums through igemm's epilogue to y of any type */
  HK_FAMILY_REQUANT = 38,   /* rows of s32 sums, scaled, to s8 or u8 */
  HK_FAMILY_TRANSPOSE8 = 39, /* transposes a matrix of bytes */
  HK_FAMILY_TRANSPOSE16 = 40, /* and of 16-bit elements */
  HK_FAMILY_UNPACK8 = 41, /* bytes to f32, without their zero point */
  HK_FAMILY_COUNT
} hk_family;

typedef void (*hk_kernel_fn)(const void *args);

typedef struct hk_kernel {
  const char *name;          /* hk_<family>_<types>_<MR>x<NR>_<isa> */
  hk_family family;
  hk_isa isa;
  hk_type x_type, f_type;
  int32_t mr, nr;
  hk_kernel_fn fn;
  hk_feature needs;
} hk_kernel;

/* registry.c: the kernels of this build, in the order of kernels.inc */
extern const hk_kernel hk_kernels[];
extern const int32_t hk_kernel_count;
/* True when this machine can run the row and its ISA is at most isa. */
bool hk_kernel_runs(const hk_kernel *kernel, hk_isa isa);
/* Returns the first row of the family with the highest ISA that this machine has and that is at most isa, or NULL. */
const hk_kernel *hk_kernel_best(hk_family family, hk_isa isa);
/* Returns the convert row for a pair of types with the highest ISA that is at most isa, or NULL. */
const hk_kernel *hk_kernel_convert(hk_type from, hk_type to, hk_isa isa);

/* igemm: for m < count and j < NR = vectors * VW,
 *   sum[m][j] = sum over segments t and c < channels of rows[t*row_step + m][x_at + c] * f[(seg[t] + c)*NR + j]
 * count is arbitrary: the kernel splits it into register tiles. A row pointer equal to `zeros` stands for a row of
 * zeros; a tile skips a segment whose rows are all `zeros`. Then, with the accumulators still in registers:
 *   SUSPEND  stores them to partial[m*NR + j] and returns; RESUME adds partial to them, last
 *   AFFINE   v = v*scale[j] + bias[j] (scale and bias hold NR values)
 *   BEFORE   v = v + beta*c[m][y_at + j]
 *   CLAMP    v = min(max(v, lo), hi)
 *   AFTER    v = v + beta*c[m][y_at + j]
 * in this order, and stores y[m][y_at + j] for j < columns, (vectors - 1)*VW < columns <= NR. */
enum {
  HK_IGEMM_RESUME = 1, HK_IGEMM_SUSPEND = 2, HK_IGEMM_AFFINE = 4, HK_IGEMM_BEFORE = 8, HK_IGEMM_CLAMP = 16,
  HK_IGEMM_AFTER = 32
};
/* Rows at a constant stride; replaces the pointer tables: row m of segment t is at x + x_seg[t] + m*x_step, y at
 * y + m*y_step, the residual at c + m*c_step. igemm does not combine it with RESUME or SUSPEND; dot does. */
typedef struct hk_igemm_line {
  const float *x, *c;
  float *y;
  const int64_t *x_seg;
  int64_t x_step, y_step, c_step;
} hk_igemm_line;
typedef struct hk_igemm_args {
  const hk_igemm_line *line; /* NULL: rows, c and y are pointer tables */
  const float *const *rows;
  const float *zeros;
  int64_t row_step, count, segments, channels, x_at, y_at;
  const int64_t *seg;
  const float *f;
  bool prefetch; /* prefetch weights 8 steps before their use (AVX-512 only; pays where they stream from L2) */
  int64_t vectors, columns;
  uint32_t flags;
  float beta, lo, hi;
  const float *scale, *bias;
  const float *const *c;
  float *const *y;
  float *partial;
} hk_igemm_args;

/* dots: products of groups of E adjacent channels that fill 32 bits, 2 of bf16 or 4 of 8 bits. For m < count and
 * j < NR = vectors * VW,
 *   sums[m*NR + j] = (resume ? sums[m*NR + j] : 0) + sum over segments t and c < channels of
 *                    rows[t*row_step + m][c] * f[((seg[t] + c/E)*NR + j)*E + c%E]
 * added in this order whatever is resumed. bf16: in f32; denormals of x, f and the sums count as zero. 8 bits: x is u8,
 * or s8 with `x_signed`, which counts as x + 128 except in rows of AMX, f is s8, the sums are s32 (wrap in two's
 * complement). f holds zeros beyond the channels of a last group, up to hk_dots_groups, and x is not read there. count
 * is arbitrary: the kernel splits it into register tiles; a tile may skip a segment whose rows are all `zeros` (NULL:
 * none is). */
typedef struct hk_dots_args {
  const char *const *rows;
  const char *zeros;
  int64_t row_step, count, segments, channels;
  const int64_t *seg;
  const void *f;
  void *sums;
  int64_t vectors;
  int32_t resume, x_signed;
} hk_dots_args;
/* Groups of a step of a segment by AMX, at most 16; and those of f in a segment: whole steps with AMX. */
static inline int64_t hk_dots_step(int64_t groups) { return hk_ceil_div(groups, hk_ceil_div(groups, 16)); }
static inline int64_t hk_dots_groups(hk_isa isa, int64_t groups) {
  return isa == HK_ISA_AMX ? hk_round_up(groups, hk_dots_step(groups)) : groups;
}

/* finish: for m < count and j < columns, v = sums[m*width + j] goes through igemm's epilogue (AFFINE, BEFORE, CLAMP,
 * AFTER) and is stored as element j of y[m], of y_type f32, bf16 or f16, rounded half to even, NaN kept. The residual
 * is element j of c[m], of y_type too. */
typedef struct hk_finish_args {
  const float *sums;
  int64_t width, count, columns;
  uint32_t flags;
  hk_type y_type;
  float beta, lo, hi;
  const float *scale, *bias;
  const char *const *c;
  char *const *y;
} hk_finish_args;

/* requant: for m < count and j < columns, in double: v = s32(sums[m*width + j] + bias[j]) * scale[j], where the sum
 * wraps; v = -zero where it is NaN; v = min(max(v, lo), hi) + zero; stored as element j of y[m], of y_type s8 or u8,
 * rounded half to even, at the type's ends where it lies beyond. */
typedef struct hk_requant_args {
  const int32_t *sums, *bias;
  const float *scale;
  int64_t width, count, columns;
  hk_type y_type;
  double lo, hi, zero;
  uint8_t *const *y;
} hk_requant_args;

/* pgemm: for output channels m < count and pixels j < NR = vectors * VW,
 *   sum[m][j] = sum over segments t and i < seg[t].count of a(m)[seg[t].at + i] * seg[t].b[i*b_step + j]
 * a is packed in tiles of hk_tile_rows channels: the tile that starts at channel m0 and holds `rows` channels has
 * a[m0*depth + (at + i)*rows + m - m0]. The epilogue is igemm's with scale[m] and bias[m]; stores y[m*y_step + j] for
 * j < columns. With strips > 1 the kernel repeats this for strips - 1 more strips, b, c and y each NR pixels further
 * on; columns is then NR, and neither RESUME nor SUSPEND is set.
 *   prefetch  the first tile of a strip prefetches the next strip (pays where x streams from beyond the core's L2)
 *   kept      a buffer of depth*NR floats into which the first tile of a strip packs its pixels for the others; or NULL
 */
typedef struct hk_pgemm_segment {
  const float *b;
  int64_t at, count;
} hk_pgemm_segment;
typedef struct hk_pgemm_args {
  const float *a;
  int64_t depth, count, segments, b_step;
  const hk_pgemm_segment *seg;
  int64_t vectors, columns, strips;
  bool prefetch;
  uint32_t flags;
  float beta, lo, hi;
  const float *scale, *bias;
  const float *c;
  float *y;
  int64_t c_step, y_step;
  float *partial, *kept;
} hk_pgemm_args;
/* Returns the channels of the next tile when `left` remain and a tile holds at most `most`: nearly equal tiles. */
static inline int64_t hk_tile_rows(int64_t left, int64_t most) { return hk_ceil_div(left, hk_ceil_div(left, most)); }

/* outer: for i < rows and j < columns, (vectors - 1)*VW < columns <= NR = vectors * VW,
 *   sum[i][j] = sum over segments t and p < seg[t].count of
 *               seg[t].a[a_at + p*a_step + i] * seg[t].b[b_at + p*b_step + j]
 * in this order; stores out[i*out_step + j] = sum, or adds it there with `add`. rows is arbitrary: the kernel splits it
 * into register tiles. */
typedef struct hk_outer_segment {
  const float *a, *b;
  int64_t count;
} hk_outer_segment;
typedef struct hk_outer_args {
  const hk_outer_segment *seg;
  int64_t segments, rows, vectors, columns;
  int64_t a_at, b_at, a_step, b_step, out_step;
  float *out;
  int32_t add;
} hk_outer_args;

/* tapsum: for taps t < taps, lanes l < lanes and the positions p of all segments, in their order,
 *   depthwise (grouped = 0): (vectors - 1)*VW < lanes <= vectors * VW;
 *     out[tap[t].out + l] += sum of x[tap[t].x + p*x_step + l] * dy[p*dy_step + l]
 *   grouped: lanes <= VW, and for j < vectors
 *     out[tap[t].out + j*out_step + l] += sum of x[tap[t].x + p*x_step + l] * dy[p*dy_step + index[j*VW + l]]
 *     where index counts within dy_lanes <= VW values. taps is arbitrary: the kernel splits it into register tiles. */
typedef struct hk_tapsum_segment {
  const float *x, *dy;
  int64_t count;
} hk_tapsum_segment;
typedef struct hk_tapsum_tap {
  int64_t x, out;
} hk_tapsum_tap;
typedef struct hk_tapsum_args {
  const hk_tapsum_segment *seg;
  const hk_tapsum_tap *tap;
  const int32_t *index;
  int64_t segments, taps, vectors, lanes, dy_lanes;
  int64_t x_step, dy_step, out_step;
  float *out;
  int32_t grouped;
} hk_tapsum_args;

/* weave: vectors first..end-1 of one output line whose pixels have few channels. Vector j holds y_lanes outputs from
 * j*y_lanes on, as whole pixels [pixel][channel]. For tap s of window row t it reads the VW floats of line x[t] from
 * start + s*tap_step + j*x_step on (floats outside 0..width-1 count as zeros and are not read); lane l then adds float
 * index[c][l] of these times f[s][f_row[t]][c][l] for c < channels. The epilogue is igemm's with scale[l] and bias[l];
 * stores at most `outputs` floats of the line y. */
typedef struct hk_weave_args {
  const float *const *x;
  const int64_t *f_row;
  const float *f;
  const int32_t *index;
  int64_t rows, taps, channels, f_rows; /* rows: window rows inside x; f_rows: all of them */
  int64_t start, tap_step, x_step, width, y_lanes, outputs, first, end;
  uint32_t flags;
  float beta, lo, hi;
  const float *scale, *bias, *c;
  float *y;
} hk_weave_args;

/* gather: packs `channels` planes, c_step apart, into a panel to[c*width + j]. Piece by piece, pixel x[from + i*step]
 * goes to column at + i for i < count; a piece with `zero` set writes zeros. The pieces cover columns 0..width-1. */
typedef struct hk_gather_piece {
  int64_t from;
  int32_t at, count;
  bool zero;
} hk_gather_piece;
typedef struct hk_gather_args {
  const float *x;
  int64_t channels, c_step, step, width, pieces;
  const hk_gather_piece *piece;
  float *to;
} hk_gather_args;

/* transpose: to[c*to_step + r] = from[r*from_step + c] for r < rows and c < columns. */
typedef struct hk_transpose_args {
  const float *from;
  float *to;
  int64_t from_step, to_step, rows, columns;
} hk_transpose_args;

/* transpose8 and transpose16: the same of elements of 8 and of 16 bits. */
typedef struct hk_transpose_narrow_args {
  const void *from;
  void *to;
  int64_t from_step, to_step, rows, columns;
} hk_transpose_narrow_args;

/* unpack8: to[i] = from[i] - zero for i < count, of s8 with is_signed, else of u8. */
typedef struct hk_unpack8_args {
  const void *from;
  float *to;
  int64_t count;
  int32_t zero;
  bool is_signed;
} hk_unpack8_args;

/* winoin: transforms the t*t pixels x[i][0..channels) of one tile to v[i*v_step + c] = (B^T d B)[i]; with `line` the t
 * pixels of one row, v = B^T d. t = MR is 4 for F(2,3) and 6 for F(4,3). */
typedef struct hk_winoin_args {
  const float *const *x;
  bool line;
  int64_t channels, v_step;
  float *v;
} hk_winoin_args;
/* winoout: transforms the sums m[i*m_step + j] of one tile to its outputs y[p][j] = (A^T m A)[p] for j < columns and
 * p < (t-2)*(t-2); with `line`, y = A^T m and p < t-2. A NULL y[p] lies outside the output and is skipped. m, scale and
 * bias are readable up to a whole vector. The epilogue is igemm's. */
typedef struct hk_winoout_args {
  const float *m;
  bool line;
  int64_t m_step, columns;
  uint32_t flags;
  float beta, lo, hi;
  const float *scale, *bias;
  const float *const *c;
  float *const *y;
} hk_winoout_args;

/* Returns the floats per vector of an ISA. */
static inline int32_t hk_isa_lanes(hk_isa isa) {
  return isa >= HK_ISA_AVX512 ? 16 : isa == HK_ISA_AVX2 ? 8 : isa == HK_ISA_NEON ? 4 : 1;
}

/* qgemm: out[m][j] = (accumulate ? out[m][j] : 0) + sum over segments t and pairs c of
 * row[t*MR + m][2c] * f[t][c][j][0] + row[t*MR + m][2c+1] * f[t][c][j][1], in s32 (wraps in two's complement).
 * f is packed [segment][pair][NR][2]; out is [MR][NR]. */
typedef struct hk_qgemm_args {
  const int16_t *const *row;
  const int16_t *f;
  int32_t *out;
  int64_t segments, pairs;
  int32_t accumulate;
} hk_qgemm_args;

/* dgemm: out[m][j] = (accumulate ? out[m][j] : 0) + sum over segments t and channels c of row[t*MR + m][c*step] *
 * f[t][c][j], in f64; a NULL row reads as zeros. f is packed [segment][c][NR]; out is [MR][NR]. */
typedef struct hk_dgemm_args {
  const double *const *row;
  const double *f;
  double *out;
  int64_t segments, channels, step;
  int32_t accumulate;
} hk_dgemm_args;

/* convert: dst[i] = src[i], x_type to f_type of the row, rounded to nearest even. */
typedef struct hk_convert_args {
  const void *src;
  void *dst;
  int64_t count;
} hk_convert_args;

/* act: y[i] = act(v[i] + add[i*add_step]); y may equal v, and add be NULL. PRELU's slope is slope[i*slope_step]. Steps
 * are 0 or 1. NONE and USER leave the sum as it is. */
typedef struct hk_act_args {
  const float *v;
  float *y;
  int64_t count;
  hk_act act;
  float a, b;
  const float *slope, *add;
  int64_t slope_step, add_step;
} hk_act_args;

/* small: y[o][t] = act(bias[o] + add[o][t] + sum over segments s and channels c of f_s[o][c] * x_s[c][t]) for output
 * channels o = g*y_group + j*MR + i of group g < groups, tile j < tiles, row i < MR, and 0 <= t < n.
 * x_s[c][t] = x[g*group + c*stride + t], so a tap is a segment whose x is shifted in time. f is packed as
 * tmpl/small/small.tmpl.h says. add and sum may be NULL; sum[o][t] += y[o][t]. y may equal add. */
enum { HK_SMALL_NONE = 0, HK_SMALL_CLIP = 1 /* to lo..hi */, HK_SMALL_LEAKY = 2 /* slope lo below 0 */ };
typedef struct hk_small_seg {
  const float *x, *f;
  int64_t channels, stride, group;
} hk_small_seg;
typedef struct hk_small_args {
  const hk_small_seg *seg;
  const float *bias, *add;
  float *y, *sum;
  int64_t n, groups, tiles, y_group;
  int64_t y_stride, add_stride, sum_stride; /* between channels */
  int32_t segs, act;
  float lo, hi;
} hk_small_args;

/* frame: y[y_at + t*y_frame + l] = act(bias[l] + sum over taps s and inputs m of f[(s*inputs + m)*NR + l] * X_s[m][l])
 * for every tile, steps t = 0, frames, 2*frames, ... < n and lanes l < outputs * the smaller of frames and n - t, where
 * X_s[m][l] is the float at x[s].x + x_at + t*x_frame plus
 *   PLAIN      l; inputs is 1
 *   PERMUTE    index[m*NR + l]
 *   QUADS      the same, and index is in the aligned four lanes of l
 *   BROADCAST  m; frames is 1
 * With several frames per step x_at and y_at are 0, outputs is y_frame, reads is x_frame, and the lanes of each frame
 * hold the same f and bias, and the same index relative to it: a step may begin at any frame. A frame needs the `reads`
 * floats from x_at on; nothing beyond those of the last frame is read. f, bias and index are whole vectors. y does not
 * overlap x; it may be written twice. */
enum { HK_FRAME_PLAIN = 0, HK_FRAME_PERMUTE = 1, HK_FRAME_BROADCAST = 2, HK_FRAME_QUADS = 3 };
typedef struct hk_frame_tile {
  const float *f, *bias;
  const int32_t *index;
  int64_t inputs, frames, outputs, reads, x_at, y_at;
  int32_t mode;
} hk_frame_tile;
typedef struct hk_frame_args {
  const hk_frame_tile *tile;
  const hk_small_seg *x; /* of each tap; only the address is used */
  float *y;
  int64_t n, x_frame, y_frame;
  int32_t tiles, taps, act;
  float lo, hi;
} hk_frame_args;

/* map: y[r][t] = f(x[r][t], x2[r][t]) + beta*add[r][t] for r < rows, t < n; then sum[r][t] += y[r][t]. add and sum may
 * be NULL; y may equal x, x2 or x3, nothing else overlaps.
 *   ACT      act(x)
 *   GATED    act(x) * act2(x2)
 *   BLENDED  w*act(x) + (1-w)*x, w = act2(x2)
 *   SCALE    x*x2 + x3, x3 may be NULL */
enum { HK_MAP_ACT = 0, HK_MAP_GATED = 1, HK_MAP_BLENDED = 2, HK_MAP_SCALE = 3 };
typedef struct hk_map_act {
  hk_act act;
  float a, b, slope_lo, slope_hi; /* HARDTANH: slopes below a and above b */
  const float *slopes;            /* PRELU: one per row */
  int32_t rational;               /* TANH: use the rational approximation, error at most 3e-3 */
} hk_map_act;
typedef struct hk_map_args {
  const float *x, *x2, *x3, *add;
  float *y, *sum;
  int64_t x_stride, x2_stride, x3_stride, add_stride, y_stride, sum_stride; /* between rows */
  int64_t rows, n;
  int32_t op;
  float beta;
  hk_map_act act, act2;
} hk_map_args;

/* The epilogue that the depthwise kernels fuse in registers: v = acc*scale + bias, then + beta*c before or after the
 * clamp to lo..hi. The clamp keeps NaN. Without CLAMP, lo and hi are -inf and inf: some kernels always clamp. */
enum { HK_DW_AFFINE = 1, HK_DW_CLAMP = 2, HK_DW_BEFORE = 4, HK_DW_AFTER = 8 };
typedef struct hk_dw_fuse {
  int32_t flags;
  float beta, lo, hi;
} hk_dw_fuse;

/* A run is up to HK_RUN_TAPS taps that share their loads; f is packed in the order of the runs.
 *   chain  the taps lie one vector step apart, so a vector loaded for one output also serves the next: with
 *          X[m] = the vector at x + offset + m*x_step, acc[j] += f[t] * X[j + t] for t < taps. X[m] counts only where
 *          first <= m < last (dwc, and dwp with a width; dwp without a width reads all).
 *   fan    (dwp, x_step = VW) the taps are neighbours: acc[j] += f[t] * the vector at x + offset + j*VW + t. */
#define HK_RUN_TAPS 4
typedef struct hk_dw_run {
  int32_t offset;
  int16_t taps, first, last, fan;
  int32_t column; /* dwp with a width: the column of x that lane 0 of the first tile reads */
} hk_dw_run;

/* dwp: one channel. Computes acc[j][lane] for `vectors` vectors of each of `tiles` tiles, with one scalar weight per
 * tap. Tile i is i times x_next, y_next, c_next further on. Every vector is whole except in the last tile, which stores
 * `lanes` lanes of each vector and `last_lanes` of its last.
 *   width  (ISAs whose masks are free) x is read in place: a lane whose column is outside 0..width-1 and a vector
 *          outside first..last-1 read as zeros
 *   start  NULL, or [vectors][VW] accumulators to start from, for a single tile
 *   line   (if nonzero) only x, f, c, y, x_step, x_next, y_next, count, tiles and the epilogue apply, and
 *          y[r*y_next + i] = sum over t < line of f[r*line + t] * x[r*x_next + i + t*x_step] for i < count, r < tiles;
 *          c has y's strides */
/* Most taps of a line, whose weights stay in registers; kernels of more than one lane. */
#define HK_LINE_TAPS(registers) ((registers) >= 32 ? 24 : 10)
/* Most taps of a line whose x_step is not 1. */
#define HK_LINE_APART 8
typedef struct hk_dwp_args {
  const float *x, *f, *c, *start;
  float *y;
  const hk_dw_run *runs;
  int64_t run_count, tiles;
  int64_t x_step, y_step, c_step; /* between vectors */
  int64_t x_next, y_next, c_next; /* between tiles */
  int64_t width, count;
  int32_t vectors, lanes, last_lanes, line;
  hk_dw_fuse fuse;
  float scale, bias;
} hk_dwp_args;

/* Most taps of a window that dwc runs as one chain. */
#define HK_CHAIN_TAPS 7
/* dwc: `pixels` pixels of each of `blocks` blocks of VW channels, for `tiles` tiles; f is [block][run][input][tap][VW].
 * Depthwise (inputs = 0): lane l reads its own channel. Grouped (inputs > 0): for i < inputs, lane l reads lane
 * index[i*VW + l] of the block's x_lanes inputs. Every block is whole except the last, which has last_lanes lanes of y
 * and last_x_lanes of x; or, with `back` > 0, the last is whole too and starts `back` lanes early: the lanes it shares
 * with the block before are computed twice, with the same bits. */
typedef struct hk_dwc_args {
  const float *x, *f, *c, *scale, *bias;
  float *y;
  const hk_dw_run *runs;
  const int32_t *index;
  int64_t run_count, blocks, tiles;
  int64_t x_step, y_step, c_step;    /* between pixels */
  int64_t x_next, y_next, c_next;    /* between tiles */
  int64_t x_block, y_block, f_block; /* between blocks; c has y's layout within a pixel */
  int32_t x_shift;                   /* 1 << x_shift consecutive blocks read the same x */
  int32_t pixels, inputs, x_lanes, y_lanes, last_x_lanes, last_lanes;
  int32_t scale_one;                 /* scale is one value */
  int32_t broadcast;                 /* grouped: a block is one group, so input i is the same for all lanes */
  int32_t chain;                     /* depthwise: the window is one chain of so many taps, all inside x; else 0 */
  int32_t resume;                    /* accumulate onto y */
  int32_t back;                      /* depthwise, without residual and resume */
  int32_t nontemporal;               /* y exceeds the caches: write whole aligned cache lines by non-temporal stores */
  int32_t backwards;                 /* iterate whole blocks from last to first: x and y alias modulo 4 KiB */
  hk_dw_fuse fuse;
} hk_dwc_args;

/* strip: for `pixels` pixels m and j < NR = vectors * VW,
 *   sum[m][j] = sum over taps t and i < inputs of x[tap[t].x + x_at[m] + i] * f[tap[t].f + i*NR + j]
 * where a tap counts only if bit m of its mask is set; otherwise `zeros` (`inputs` floats) is read in its place. Then
 * the epilogue with scale[j] and bias[j]; stores the first `lanes` channels of pixel m at y + y_at[m],
 * (vectors - 1)*VW < lanes <= NR; the residual is at c + c_at[m]. The kernel repeats this for `tiles` tiles, each
 * x_next, y_next, c_next, f_next and (scale and bias) channel_next further on: pixels (the last two are 0) or groups.
 * A kernel of one vector (NR of its row is VW) takes inputs in pairs. Outputs 2*h and 2*h + 1 of every four are in
 * vector h of 2, and its lane 2*l + e weighs input i + e for output 4*(l/2) + 2*h + l%2:
 * f[tap[t].f + (i/2*2 + h)*VW + 2*l + e]; an odd last input has a partner of weight 0. */
#define HK_STRIP_PAIR_ROWS 6
/* Most pixels per tile. With 16 registers (AVX2) two vectors are fastest; tiles of three cover an odd number of vectors
 * without a single one left over. */
#define HK_STRIP_ROWS(registers, vectors)                                                                            \
  ((registers) >= 32 ? ((vectors) <= 2 ? 12 : (vectors) == 3 ? 8 : 6)                                                \
                     : (vectors) == 1 ? 10 : (vectors) == 2 ? 6 : (vectors) == 3 ? 4 : 0)
#define HK_STRIP_MOST 12
typedef struct hk_strip_tap {
  int32_t x, f;
  uint32_t mask;
} hk_strip_tap;
typedef struct hk_strip_args {
  const float *x, *f, *c, *scale, *bias, *zeros;
  float *y;
  const hk_strip_tap *taps;
  const int64_t *x_at, *y_at, *c_at;
  int64_t tap_count, inputs, tiles;
  int64_t x_next, y_next, c_next, f_next, channel_next;
  int64_t x_step;    /* nonzero: x_at[m] = m*x_step, y_at[m] is a multiple of m too, and all masks are full */
  int32_t pixels, vectors, lanes;
  int32_t scale_one; /* scale is one value */
  int32_t overlap;   /* pixels of y (at least NR/2 channels) are adjacent: store whole vectors, the next overwrites */
  hk_dw_fuse fuse;
} hk_strip_args;

/* dwm: `rows` output rows of `columns` <= MR columns of each of `blocks` blocks of VW channels, windows of 3x3 (and 5x5
 * and 7x7 where MR > 12, the kernels with 16 registers), stride 1 or 2; f is [block][tap][VW]. Rows of x count from the
 * first that the first output row reads. Only rows row_first..row_last-1 and columns col_first..col_last-1 of the
 * strip's window lie inside x and are read. Every block is whole except the last, which has last_lanes lanes. */
typedef struct hk_dwm_args {
  const float *x, *f, *c, *scale, *bias;
  float *y;
  int64_t blocks, rows, row_first, row_last;
  int64_t x_row, x_col, y_row, y_col, c_row, c_col;
  int32_t window, stride, columns, col_first, col_last, last_lanes;
  int32_t scale_one; /* scale is one value */
  hk_dw_fuse fuse;
} hk_dwm_args;

/* point: windows of one tap, `inputs` <= MR input and `outputs` output channels per group. v is the sum over inputs,
 * with `fused` plus bias and clamped to lo..hi. Sizes and weights are in a shape that all calls of a plan share.
 *   LINES   y[p*y_step + g*outputs + l], x[p*x_step + g*inputs + i] for pixels p < count; outputs <= VW; f is
 *           [g][i][VW], bias [g*outputs + l]
 *   WOVEN   pixels and groups are contiguous in x and y, and count is the number of groups of all pixels. A block is
 *           `block` groups whose channels fit in VW; lane l of block b reads float index[i*VW + l] of the block's
 *           inputs and multiplies by f[b % phases][i][l]; bias is [b % phases][l]
 *   PLANES  y[(g*outputs + k)*y_step + t], x[(g*inputs + i)*x_step + t] for positions t < count; f is [g][k][i], bias
 *           [g*outputs + k]
 *   SQUARES PLANES with outputs = inputs <= HK_POINT_SQUARE, not fused
 *   ROUNDS  WOVEN where the outputs = inputs <= HK_POINT_ROUND of `block` groups fill a vector and a pixel (x_step
 *           floats of x and of y) is whole vectors. Pixels p < count, for one vector of the pixel after the other; f is
 *           [vector][i][VW], bias [channel] */
enum { HK_POINT_LINES, HK_POINT_WOVEN, HK_POINT_PLANES, HK_POINT_SQUARES, HK_POINT_ROUNDS };
enum { HK_POINT_PHASES = 4, HK_POINT_WOVEN_INPUTS = 8 };
/* Most weight vectors that stay in registers: WOVEN: phases * inputs. */
#define HK_POINT_WEIGHTS(registers) ((registers) >= 32 ? 12 : 6)
#define HK_POINT_ROUND(registers) ((registers) >= 32 ? 8 : 4)
#define HK_POINT_SQUARE(registers) ((registers) >= 32 ? 4 : 3)
typedef struct hk_point_shape {
  int32_t way, fused, inputs, outputs, phases, block;
  int32_t vector_groups; /* WOVEN: fewest groups whose inputs, and whose outputs, fill a vector */
  int64_t groups, x_step, y_step;
  const float *f;
  const int32_t *index;
  float lo, hi;
} hk_point_shape;
typedef struct hk_point_args {
  const hk_point_shape *shape;
  const float *x, *bias;
  float *y;
  int64_t count;
} hk_point_args;

/* dwd: sum[j] = (add ? sum[j] : 0) + sum over i < count of f[i] * x[j*x_step + i], for j < outputs <= 8. */
typedef struct hk_dwd_args {
  const float *x, *f;
  float *sum;
  int64_t count, x_step;
  int32_t outputs, add;
} hk_dwd_args;

/* fft: complex value i of z is a vector of real parts at z[i*2*VW] and one of imaginary parts VW floats later.
 *   CONVOLVE  transforms z forward, multiplies by h and transforms back; points is a power of two, at least 16
 *   GATHER    z[i*2*VW] = `lanes` lanes of x + i*x_step for first <= i < last, and zeros for the other i < points
 *   SCATTER   stores z[i*2*VW] with the epilogue to `lanes` lanes of y + i*y_step, i < points */
enum { HK_FFT_CONVOLVE, HK_FFT_GATHER, HK_FFT_SCATTER };
typedef struct hk_fft_args {
  int32_t op, lanes, scale_one;
  float *z, *y;
  const float *h, *twiddle, *x, *c, *scale, *bias;
  int64_t points, first, last, x_step, y_step, c_step;
  hk_dw_fuse fuse;
} hk_fft_args;

/* karatsuba: y[q] = sum over taps s of x[q + s] * w[s] for q < outputs and one block of `lanes` channels, columns of x
 * and y x_step and y_step apart. Only columns first..last-1 of x exist; the others count as zero. f is
 * [plane][four][VW]: for taps 4*i + 0..3 = a b c d the planes hold a, a+b, b, a+c, a+b+c+d, b+d, c, c+d, d. planes is a
 * buffer of 9 * entries vectors, where entries is fours - 1 plus the quads of outputs, in whole tiles of MR. */
typedef struct hk_karatsuba_args {
  const float *x, *f, *c, *scale, *bias;
  float *y, *planes;
  int64_t x_step, y_step, c_step;
  int64_t first, last, outputs, fours, entries;
  int32_t lanes, scale_one;
  hk_dw_fuse fuse;
} hk_karatsuba_args;

/* stage: copies x[r*x_row + i*x_step], i < cols, to column lead + i*spread of row r of a buffer whose columns are split
 * into `phases` phases of `pitch` floats: column j is at (j % phases)*pitch + j / phases. Rows are `row` floats apart.
 * Up to a vector of floats beyond a row's last column, within its phase, may be set to zero. */
typedef struct hk_stage_args {
  const float *x;
  float *buffer;
  int64_t rows, cols, x_row, x_step, lead, spread, phases, pitch, row;
} hk_stage_args;

/* causalc and causalt: for channels c < channels and tokens t < tokens
 *   y[c, t] = post[c, t] * act(bias[c] + sum over j < window of f[c, j] * u[c, t - dilation*(window-1-j)])
 *             + residual[c, t],   u = pre * x
 * x, pre, post and residual are of x_type, y of y_type; bias, pre, post and residual may be NULL. u before token 0
 * comes from history, [c, i] for i < dilation*(window-1), oldest first; history NULL: it lies before x and pre as their
 * tokens do. y may equal x where it has its type and step.
 *   causalc  x[c, t] is at c + t*x_step, y and the others likewise; f[c, j] at j*f_step + c, history[c, i] at
 *            i*history_step + c
 *   causalt  x[c, t] is at c*x_step + t, y and the others likewise; f[c, j] at c*f_step + j, history[c, i] at
 *            c*history_step + i; dilation*(window-1) <= HK_CAUSALT_REACH */
#define HK_CAUSALT_REACH 1024
typedef struct hk_causal_tile {
  const void *x, *pre, *post, *residual;
  void *y;
  const float *f, *bias, *history;
  int64_t channels, tokens, window, dilation;
  int64_t x_step, pre_step, post_step, residual_step, y_step, f_step, history_step;
  hk_type x_type, y_type;
  hk_act act;
  float a, b;
} hk_causal_tile;

/* causalg: a tile of the backward pass. For channels c < channels and tokens t < tokens
 *   dz[c, t] = dy[c, t] * act'(z[c, t]), written over z
 *   df[c, j] = sum over t of dz[c, t] * u[c, t + j*dilation] for j < window,   dbias[c] = sum over t of dz[c, t]
 * act is NONE, RELU or SILU. Element (c, t) of z is at c + t*z_step, (c, j) of df at c + j*df_step; with along_tokens
 * at c*z_step + t and c*df_step + j; dy and u likewise. */
typedef struct hk_causal_back {
  float *z, *df, *dbias;
  const float *dy, *u;
  int64_t channels, tokens, window, dilation;
  int64_t z_step, dy_step, u_step, df_step;
  hk_act act;
  int32_t along_tokens;
} hk_causal_back;

/* spread: rows[r*step + i] = matrix[r*row + i*column] for r < height, i < width, where matrix is f32, f16 or bf16; with
 * `back` matrix[r*row + i*column] = rows[r*step + i], rounded half to even, NaN kept. */
typedef struct hk_spread_args {
  void *matrix;
  float *rows;
  int64_t height, width, row, column, step;
  hk_type type;
  int32_t back;
} hk_spread_args;

/* longfft: F takes 2N real values, N = n1*n2, to N complex ones, so that products of spectra are convolutions modulo
 * X^2N + 1 (position p + 2N is minus position p) and products with a conjugate are correlations; its order of points is
 * the kernel's own.
 *   FORWARD   z = F(x)
 *   INVERSE   y = F^-1(z), z is overwritten
 *   CONVOLVE  y = F^-1(F(x) * h), z is overwritten; y may equal x
 *   GRADIENT  z = F(x), g = F(dy), sum += g * conj(z), y = F^-1(z * h), dx = F^-1(g * conj(h)); y.at, dx.at and sum may
 *             be NULL, and x.at where y.at and sum are; z and g are overwritten
 *   COLUMNS, ROWS and ROWS_BACK, COLUMNS_BACK are the passes of FORWARD and of INVERSE, from step `from` to before
 *             step `to`, so that a caller may spread a transform over time. A pass is over n2/VW blocks of columns or
 *             n1/VW of rows, and takes HK_LONGFFT_STEPS steps per block, of near-equal cost. Rows need all columns;
 *             block r of rows is complex vectors r*n2..(r+1)*n2-1 of z, and steps 0..3 of it in ROWS_BACK read one
 *             quarter each. buffer keeps a block of columns between its steps
 * n1 is 2^i or 3*2^i, n2 is 2^i; both are multiples of VW and at least 16 (n1 = 3*2^i: 48). Tables: hk_longfft_tables
 * (src/cpu/longfft.c). buffer holds n1 complex vectors. */
enum {
  HK_LONGFFT_FORWARD, HK_LONGFFT_INVERSE, HK_LONGFFT_CONVOLVE, HK_LONGFFT_GRADIENT, HK_LONGFFT_COLUMNS,
  HK_LONGFFT_ROWS, HK_LONGFFT_ROWS_BACK, HK_LONGFFT_COLUMNS_BACK, HK_LONGFFT_STEPS = 5
};
/* Position p < 2N is at[p + shift] for first <= p < last; others are read as 0 and not written. */
typedef struct hk_longfft_row {
  float *at;
  int64_t shift, first, last;
} hk_longfft_row;
typedef struct hk_longfft_args {
  int32_t op;
  int64_t n1, n2, from, to;
  const float *columns, *rows; /* twiddles of the steps over columns and over rows */
  const float *lane, *base;    /* twiddles between them: lane[k1][re, im][VW] * base[j/VW][k1][re, im] */
  float *buffer, *z, *g, *sum;
  const float *h;
  hk_longfft_row x, y, dy, dx;
} hk_longfft_args;

/* spectra: for complex vectors i < count, as longfft lays them out,
 *   sum[i] = (add ? sum[i] : 0) + sum over p < parts of z[p*z_step + i] * h[p*h_step + i]
 * in the order of p, so that parts may be split over calls without a change of bits; steps count floats. */
typedef struct hk_spectra_args {
  float *sum;
  const float *z, *h;
  int64_t z_step, h_step, parts, count;
  bool add;
} hk_spectra_args;

/* fir: for t < n, a multiple of VW,
 *   y[t] += sum over c < channels and j < taps of f[c*taps + j] * x[c*x_stride + t + j] */
typedef struct hk_fir_args {
  const float *x, *f;
  float *y;
  int64_t x_stride, channels, taps, n;
} hk_fir_args;

#define HK_KERNEL(name, family, isa, x, f, mr, nr) void name(const void *args);
#define HK_KERNEL_NEEDS(feature, name, family, isa, x, f, mr, nr) void name(const void *args);
#include "cpu/kernels.inc"
#undef HK_KERNEL
#undef HK_KERNEL_NEEDS
#endif
