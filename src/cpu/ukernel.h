/* The wall between loops and kernels: one signature a family, arguments in a struct. Kernels see only this, base and
 * their vocabulary. Rows are listed in kernels.inc. */
#ifndef HK_UKERNEL_H
#define HK_UKERNEL_H
#include "base/base.h"

typedef enum hk_family {
  HK_FAMILY_NONE = 0,
  HK_FAMILY_IGEMM = 1,  /* rows of pixels x packed output channels */
  HK_FAMILY_ACT = 2,    /* an activation over a row of floats */
  HK_FAMILY_SMALL = 3,  /* few channels over planar rows, time contiguous */
  HK_FAMILY_MAP = 4,    /* element by element over planar rows */
  HK_FAMILY_SMALL2 = 20, /* small, tiles over two groups */
  HK_FAMILY_SMALL4 = 21, /* small, tiles over four groups */
  HK_FAMILY_PGEMM = 5,  /* packed output channels x vectors of pixels */
  HK_FAMILY_GATHER = 6, /* pixels of planes copied into a panel */
  HK_FAMILY_WINOIN = 7, /* Winograd: pixels of a tile to the transformed domain; MR is the tile's side */
  HK_FAMILY_WINOOUT = 8, /* and back; MR is the side of the output tile */
  HK_FAMILY_DOT = 9,    /* rows of pixels x few output channels, vectors along input channels; igemm's arguments */
  HK_FAMILY_DWP = 10,   /* depthwise, lanes are neighbours along the last dimension */
  HK_FAMILY_DWC = 11,   /* depthwise and grouped, lanes are channels */
  HK_FAMILY_STAGE = 12, /* rows of a plane into a padded buffer */
  HK_FAMILY_CONVERT = 13,  /* rows of one element type into another: x_type to f_type */
  HK_FAMILY_QGEMM = 14,  /* rows of s16 pixels x packed output channels, sums in s32 */
  HK_FAMILY_DGEMM = 15,  /* rows of f64 pixels x packed output channels */
  HK_FAMILY_DWM = 16,    /* depthwise 3 x 3, lanes are channels, sums slide down the rows */
  HK_FAMILY_WEAVE = 17,  /* pixels of few channels, several a vector */
  HK_FAMILY_TRANSPOSE = 18,   /* a matrix transposed */
  HK_FAMILY_DWD = 19,    /* depthwise, few outputs, lanes are neighbouring taps */
  HK_FAMILY_FFT = 22,    /* long windows by transforms, lanes are channels */
  HK_FAMILY_POINT = 23,  /* windows of one tap, few channels a group */
  HK_FAMILY_STRIP = 24,  /* neighbouring pixels x output channels of a group, lanes are channels */
  HK_FAMILY_KARATSUBA = 25, /* windows of dozens of taps along a row by nine products of sixteen, lanes are channels */
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
} hk_kernel;

/* registry.c: rows of all families that this build holds */
extern const hk_kernel hk_kernels[];
extern const int32_t hk_kernel_count;
/* The first row of a family with the highest ISA this machine has, not above isa; NULL when there is none. */
const hk_kernel *hk_kernel_best(hk_family family, hk_isa isa);
/* The convert row for a pair of types with the highest ISA not above isa; NULL when there is none. */
const hk_kernel *hk_kernel_convert(hk_type from, hk_type to, hk_isa isa);

/* A row equal to `zeros` is all zeros: a tile whose rows of a segment are all that skips the segment.
 * igemm: sum[m][j] = over segments t and channels c of rows[t*row_step + m][x_at + c] * f[(seg[t] + c)*NR + j], m < count
 * and j < NR = vectors * lanes of the ISA. count is any; the kernel cuts it into register tiles. Then, on the sums
 * still in registers: SUSPEND stores them to partial[m*NR + j] and ends; RESUME begins from there; else
 *   AFFINE v*scale[j] + bias[j]; BEFORE + beta*c[m][y_at + j]; CLAMP min(max(v, lo), hi); AFTER + beta*c[m][y_at + j];
 * and stores to y[m][y_at + j], j < columns, (vectors-1)*lanes < columns <= NR. scale and bias hold NR values. */
enum {
  HK_IGEMM_RESUME = 1, HK_IGEMM_SUSPEND = 2, HK_IGEMM_AFFINE = 4, HK_IGEMM_BEFORE = 8, HK_IGEMM_CLAMP = 16,
  HK_IGEMM_AFTER = 32
};
/* Rows that lie evenly, in place of tables: row m of segment t at x + x_seg[t] + m*x_step, results at y + m*y_step, the
 * residual at c + m*c_step. igemm takes them for whole sums only, neither resumed nor suspended. */
typedef struct hk_igemm_line {
  const float *x, *c;
  float *y;
  const int64_t *x_seg;
  int64_t x_step, y_step, c_step;
} hk_igemm_line;
typedef struct hk_igemm_args {
  const hk_igemm_line *line; /* NULL: rows, c and y are tables */
  const float *const *rows;
  const float *zeros;
  int64_t row_step, count, segments, channels, x_at, y_at;
  const int64_t *seg;
  const float *f;
  bool prefetch; /* weights are asked for 8 steps before their use, by kernels that can */
  int64_t vectors, columns;
  uint32_t flags;
  float beta, lo, hi;
  const float *scale, *bias;
  const float *const *c;
  float *const *y;
  float *partial;
} hk_igemm_args;

/* pgemm: sum[m][j] = over segments t and i < seg[t].count of a(m)[seg[t].at + i] * seg[t].b[i*b_step + j], for output
 * channels m < count and pixels j < NR = vectors * lanes. a is packed by tiles of hk_tile_rows channels:
 * tile at m0, `depth` deep: a[m0*depth + (at + i)*rows + m - m0]. Epilogue as in igemm, with scale[m] and bias[m]; stores
 * to y[m*y_step + j], j < columns. With strips > 1 the same again for strips - 1 further strips, b, c and y each NR pixels
 * further on; then columns = NR, and nothing is suspended or resumed. prefetch: strips lie next to each other in memory that no cache
 * of the core's own holds. kept: room for depth*NR floats where the first tile of a strip may copy its pixels for the others, or NULL. */
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
/* Channels of the next tile when `left` remain and a tile holds `most`: nearly equal tiles. */
static inline int64_t hk_tile_rows(int64_t left, int64_t most) { return hk_ceil_div(left, hk_ceil_div(left, most)); }

/* weave: vectors first..end-1 of one output line whose pixels have few channels. Vector j holds y_lanes outputs from
 * j*y_lanes on: whole pixels, [pixel][channel]. For tap s of window row t it takes the floats from start + s*tap_step + j*x_step
 * on of line x[t] (those outside 0..width-1 are zeros and not read); lane l of the vector then adds float index[c][l] of
 * these times f[s][f_row[t]][c][l], c < channels. Epilogue as in igemm with scale[l] and bias[l]; stores no more than
 * `outputs` floats of the line y. */
typedef struct hk_weave_args {
  const float *const *x;
  const int64_t *f_row;
  const float *f;
  const int32_t *index;
  int64_t rows, taps, channels, f_rows; /* f_rows: window rows, outside x or not */
  int64_t start, tap_step, x_step, width, y_lanes, outputs, first, end;
  uint32_t flags;
  float beta, lo, hi;
  const float *scale, *bias, *c;
  float *y;
} hk_weave_args;

/* gather: for each of `channels` planes, c_step apart, to[c*width + j] for all pieces: pixels at x[from + i*step] go to
 * column at + i; a piece with zero set gives zeros. Pieces cover columns 0..width-1. */
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

/* winoin: the pixels x[i][0..channels) of one tile to v[i*v_step + c], i < t*t; with `line` t pixels of one row, i < t. */
typedef struct hk_winoin_args {
  const float *const *x;
  bool line;
  int64_t channels, v_step;
  float *v;
} hk_winoin_args;
/* winoout: m[i*m_step + j] of one tile to its outputs y[p][j], j < columns, p < (t-2)*(t-2), with `line` p < t-2; a NULL y[p]
 * lies outside.
 * m, scale and bias are readable up to a whole vector. Epilogue as in igemm. */
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

/* Floats in a vector of an ISA. */
static inline int32_t hk_isa_lanes(hk_isa isa) {
  return isa >= HK_ISA_AVX512 ? 16 : isa == HK_ISA_AVX2 ? 8 : isa == HK_ISA_NEON ? 4 : 1;
}

/* qgemm: out[m][j] (+)= sum over segments t and pairs c of row[t*MR + m][2c..2c+1] . f[t][c][j][0..1], in s32.
 * f is packed [segment][pair][NR][2]; out is [MR][NR]. */
typedef struct hk_qgemm_args {
  const int16_t *const *row;
  const int16_t *f;
  int32_t *out;
  int64_t segments, pairs;
  int32_t accumulate; /* add to out instead of starting from zero */
} hk_qgemm_args;

/* dgemm: out[m][j] (+)= sum over segments t and channels c of row[t*MR + m][c * step] * f[t][c][j], in f64; a NULL row
 * reads as zeros. f is packed [segment][c][NR]; out is [MR][NR]. */
typedef struct hk_dgemm_args {
  const double *const *row;
  const double *f;
  double *out;
  int64_t segments, channels, step;
  int32_t accumulate; /* add to out instead of starting from zero */
} hk_dgemm_args;

/* convert: dst[i] = src[i] in the other type. */
typedef struct hk_convert_args {
  const void *src;
  void *dst;
  int64_t count;
} hk_convert_args;

/* act: v[i] = act(v[i]) in place. PRELU's slope is slope[i * slope_step], slope_step 0 or 1; USER does nothing. */
typedef struct hk_act_args {
  float *v;
  int64_t count;
  hk_act act;
  float a, b;
  const float *slope;
  int64_t slope_step;
} hk_act_args;

/* small: y[o][t] = act(bias[o] + add[o][t] + sum over segments s, channels c of f_s[o][c] * x_s[c][t]) for output
 * channels o = g*y_group + j*MR + i of group g < groups, tile j < tiles, row i < MR, and 0 <= t < n.
 * x_s[c][t] = x[g*group + c*stride + t], so a tap is a segment whose x is shifted in time. f is packed, see
 * tmpl/small.tmpl.h. add and sum may be NULL; sum[o][t] += y[o][t]. y may equal add. */
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
  int64_t y_stride, add_stride, sum_stride; /* from channel to channel */
  int32_t segs, act;
  float lo, hi;
} hk_small_args;

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
  const float *slopes;            /* PRELU: one a row */
  int32_t rational;               /* TANH: the short rational form, within 3e-3 */
} hk_map_act;
typedef struct hk_map_args {
  const float *x, *x2, *x3, *add;
  float *y, *sum;
  int64_t x_stride, x2_stride, x3_stride, add_stride, y_stride, sum_stride; /* from row to row */
  int64_t rows, n;
  int32_t op;
  float beta;
  hk_map_act act, act2;
} hk_map_args;
/* The epilogue that kernels fuse in registers: v = acc*scale + bias, then + beta*c before or after the clamp to
 * lo..hi. A NaN passes the clamp. */
enum { HK_DW_AFFINE = 1, HK_DW_CLAMP = 2, HK_DW_BEFORE = 4, HK_DW_AFTER = 8 };
typedef struct hk_dw_fuse {
  int32_t flags;
  float beta, lo, hi;
} hk_dw_fuse;

/* A run of up to HK_RUN_TAPS taps whose loads are shared; f is packed in the order of the runs.
 *   chain  the taps lie one vector step apart, so vectors loaded for one output serve the next: with X[m] = vector at
 *          x + offset + m*x_step and t < taps, acc[j] += f[t] * X[j + t]. X[m] counts only where first <= m < last
 *          (dwc, and dwp with a width; dwp without one reads all).
 *   fan    (dwp, x_step = VW) the taps are neighbours: acc[j] += f[t] * vector at x + offset + j*VW + t. */
#define HK_RUN_TAPS 4
typedef struct hk_dw_run {
  int32_t offset;
  int16_t taps, first, last, fan;
  int32_t column; /* dwp with a width: where lane 0 of the first tile lies in its row of x */
} hk_dw_run;

/* dwp: one channel; acc[j][lane] for `vectors` vectors of each of `tiles` tiles, f a scalar a tap. Tile i starts i times
 * x_next, y_next, c_next further on. All vectors are whole but those of the last tile: `lanes` of each are stored,
 * `last_lanes` of its last. With a width (only kernels whose ISA has free masks) x is read where it lies: lanes whose
 * column is not in 0..width-1 and vectors outside first..last read as zeros. start (may be NULL): [vectors][VW] sums to go on from, for a single tile.
 * With a line all that counts is x, f, c, y and the epilogue: y[r*y_next + i] = the sum over t < line of f[r*line + t] *
 * x[r*x_next + i + t*x_step], for i < count and r < tiles; c lies as y. */
#define HK_LINE_TAPS(registers) ((registers) >= 32 ? 24 : 10) /* most of a line; kernels of more than one lane */
#define HK_LINE_APART 8 /* most where x_step is not 1 */
typedef struct hk_dwp_args {
  const float *x, *f, *c, *start;
  float *y;
  const hk_dw_run *runs;
  int64_t run_count, tiles;
  int64_t x_step, y_step, c_step; /* from vector to vector */
  int64_t x_next, y_next, c_next; /* from tile to tile */
  int64_t width, count;
  int32_t vectors, lanes, last_lanes, line;
  hk_dw_fuse fuse;
  float scale, bias;
} hk_dwp_args;

#define HK_CHAIN_TAPS 7 /* most that dwc takes as one chain */
/* dwc: `pixels` pixels of each of `blocks` blocks of lanes, for `tiles` tiles; f [block][run][input][tap][VW]. With
 * inputs > 0 (grouped) lane l reads lane index[i*VW + l] of the block's x_lanes inputs, for i < inputs; with inputs = 0
 * (depthwise) its own. All blocks are whole but the last, which has last_lanes of y and last_x_lanes of x; or the last is whole too
 * and begins `back` lanes earlier than it would: what it shares with the one before is computed twice, to the same bits. */
typedef struct hk_dwc_args {
  const float *x, *f, *c, *scale, *bias;
  float *y;
  const hk_dw_run *runs;
  const int32_t *index;
  int64_t run_count, blocks, tiles;
  int64_t x_step, y_step, c_step;    /* from pixel to pixel */
  int64_t x_next, y_next, c_next;    /* from tile to tile */
  int64_t x_block, y_block, f_block; /* from block to block; c lies as y within a pixel */
  int32_t x_shift;                   /* 1 << x_shift blocks follow each other that read the same x */
  int32_t pixels, inputs, x_lanes, y_lanes, last_x_lanes, last_lanes;
  int32_t scale_one;                 /* scale is one value */
  int32_t broadcast;                 /* grouped: a block is one group, so all its lanes read input i alike */
  int32_t chain;                     /* depthwise: all taps of the window are one chain of this many, inside x; else 0 */
  int32_t resume;                    /* sums go on from what y holds */
  int32_t back;                      /* depthwise, neither residual nor resume */
  int32_t nontemporal;                    /* y is larger than the caches: whole lines of aligned y go past them */
  int32_t backwards;                    /* whole blocks go from the last to the first */
  hk_dw_fuse fuse;
} hk_dwc_args;

/* strip: sum[m][j] = over taps t and i < inputs of x[tap[t].x + x_at[m] + i] * f[tap[t].f + i*NR + j] for `pixels` pixels m and
 * j < NR = vectors * VW, a tap only where bit m of its mask is set: elsewhere `zeros`, of which there are `inputs`, are read in
 * its place. Then the epilogue, with scale[j] and bias[j]; stores the first `lanes` channels of pixel m at y + y_at[m],
 * (vectors-1)*VW < lanes <= NR; the residual lies at c + c_at[m]. The same for `tiles` tiles, each x_next, y_next, c_next, f_next
 * and, for scale and bias, channel_next further on: pixels (the last two are 0) or groups.
 * A kernel of one vector (NR of its row is VW) goes by pairs of inputs: outputs 2*h and 2*h + 1 of each four have vector h of
 * each two, and lane 2*l + e of it weighs input i + e for output 4*(l/2) + 2*h + l%2: f[tap[t].f + (i/2*2 + h)*VW + 2*l + e]; the
 * partner of a last odd input weighs 0. */
#define HK_STRIP_PAIR_ROWS 6
/* most pixels of a tile; AVX2 runs best two vectors wide, and three serve an odd number of vectors without a lone one */
#define HK_STRIP_ROWS(registers, vectors) ((registers) >= 32 ? ((vectors) <= 2 ? 12 : (vectors) == 3 ? 8 : 6) : (vectors) == 1 ? 10 : (vectors) == 2 ? 6 : (vectors) == 3 ? 4 : 0)
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
  int64_t x_step;    /* x_at[m] is m*x_step, y_at[m] likewise a multiple, and all masks are full; 0: not so */
  int32_t pixels, vectors, lanes;
  int32_t scale_one; /* scale is one value */
  int32_t overlap;    /* a pixel of y, of NR/2 channels or more, ends where the next begins: whole vectors are stored in order */
  hk_dw_fuse fuse;
} hk_strip_args;

/* dwm: `rows` output rows of `columns` columns of each of `blocks` blocks of lanes, by windows of 3 x 3, or
 * where MR is over 12 (16 registers) 5 x 5 and 7 x 7; f [block][tap][VW].
 * Rows of x count from the first that the first output row sees; only row_first..row_last-1 of them, and columns
 * col_first..col_last-1 of the strip's window, lie inside x and are read. All blocks are whole but the last. At most MR columns. */
typedef struct hk_dwm_args {
  const float *x, *f, *c, *scale, *bias;
  float *y;
  int64_t blocks, rows, row_first, row_last;
  int64_t x_row, x_col, y_row, y_col, c_row, c_col;
  int32_t window, stride, columns, col_first, col_last, last_lanes;
  int32_t scale_one; /* scale is one value */
  hk_dw_fuse fuse;
} hk_dwm_args;

/* point: windows of one tap, `inputs` <= MR and `outputs` channels a group; v = bias + the sum of inputs, clamped to lo..hi when
 * `fused`, else without bias. Sizes and weights are a shape, which all calls of a plan share.
 *   LINES   y[p*y_step + g*outputs + l] of pixels p < count, x[p*x_step + g*inputs + i]; outputs <= VW; f [g][i][VW]; bias
 *           [g*outputs + l]
 *   WOVEN   pixels and groups follow each other without gaps in x and y, so count is of groups of pixels; a block is `block`
 *           of them, their channels within VW; lane l of block b takes float index[i*VW + l] of its inputs times
 *           f[b % phases][i][l]; bias [b % phases][l]
 *   PLANES  y[(g*outputs + k)*y_step + t] of positions t < count, x[(g*inputs + i)*x_step + t]; f [g][k][i]; bias
 *           [g*outputs + k]
 *   SQUARES as PLANES, outputs = inputs <= HK_POINT_SQUARE, not fused
 *   ROUNDS  as WOVEN, where the outputs = inputs <= HK_POINT_ROUND of `block` groups fill a vector and a pixel, x_step floats in x and
 *           in y, is whole vectors: pixels p < count, a vector of all of them after the other; f [vector][i][VW]; bias as it is */
enum { HK_POINT_LINES, HK_POINT_WOVEN, HK_POINT_PLANES, HK_POINT_SQUARES, HK_POINT_ROUNDS };
enum { HK_POINT_PHASES = 4, HK_POINT_WOVEN_INPUTS = 8 };
#define HK_POINT_WEIGHTS(registers) ((registers) >= 32 ? 12 : 6) /* WOVEN: most phases * inputs */
#define HK_POINT_ROUND(registers) ((registers) >= 32 ? 8 : 4)
#define HK_POINT_SQUARE(registers) ((registers) >= 32 ? 4 : 3)
typedef struct hk_point_shape {
  int32_t way, fused, inputs, outputs, phases, block;
  int32_t vector_groups; /* groups whose inputs and outputs fill a vector each */
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

/* dwd: sum[j] = (add: sum[j] +) the sum over i < count of f[i] * x[j*x_step + i], for j < outputs <= 8. */
typedef struct hk_dwd_args {
  const float *x, *f;
  float *sum;
  int64_t count, x_step;
  int32_t outputs, add;
} hk_dwd_args;

/* fft: value i of z has its real parts at z[i*2*VW], its imaginary ones VW behind.
 *   TURN     z is transformed, multiplied by h and transformed back; points is a power of two, 16 or more
 *   GATHER   z[i*2*VW] = the lanes of x + i*x_step for first <= i < last, zeros for the other i < points
 *   SCATTER  the lanes of y + i*y_step = z[i*2*VW] with the epilogue, i < points */
enum { HK_FFT_CONVOLVE, HK_FFT_GATHER, HK_FFT_SCATTER };
typedef struct hk_fft_args {
  int32_t op, lanes, scale_one;
  float *z, *y;
  const float *h, *twiddle, *x, *c, *scale, *bias;
  int64_t points, first, last, x_step, y_step, c_step;
  hk_dw_fuse fuse;
} hk_fft_args;

/* karatsuba: y[q] = the sum over taps s of x[q + s] * w[s] for q < outputs, one block of lanes, columns of x and y x_step and y_step
 * apart; only columns first..last-1 of x exist, the others count as zero. f [plane][four][VW]: for taps 4*i + 0..3 = a b c d the
 * planes are a, a+b, b, a+c, a+b+c+d, b+d, c, c+d, d. planes: room for 9 * entries vectors, entries = fours - 1 + the quads of
 * outputs, in whole tiles of MR. */
typedef struct hk_karatsuba_args {
  const float *x, *f, *c, *scale, *bias;
  float *y, *planes;
  int64_t x_step, y_step, c_step;
  int64_t first, last, outputs, fours, entries;
  int32_t lanes, scale_one;
  hk_dw_fuse fuse;
} hk_karatsuba_args;

/* stage: x[row*x_row + i*x_step], i < cols, goes to column lead + i*spread of a buffer row whose columns are dealt to
 * `phases` runs of `pitch` floats: column j lies at (j % phases)*pitch + j / phases. Rows lie `row` floats apart. The
 * floats up to a vector beyond a row's last column, within its phase, may be set to zero. */
typedef struct hk_stage_args {
  const float *x;
  float *buffer;
  int64_t rows, cols, x_row, x_step, lead, spread, phases, pitch, row;
} hk_stage_args;

#define HK_KERNEL(name, family, isa, x, f, mr, nr) void name(const void *args);
#include "cpu/kernels.inc"
#undef HK_KERNEL
#endif
