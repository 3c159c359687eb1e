/* dot for one ISA: few output channels, one accumulator each, lanes are input channels, so that a layer with 1 to 4
 * outputs fills the vectors that its output channels cannot. Arguments are igemm's with VW = 1 (`vectors` counts output
 * channels) and f packed with the channels innermost. RESUME adds to what was accumulated before. A vocabulary with
 * HK_SUMS reduces eight vectors at once. Define HK_NAME and HK_ROWS_1..4 (most rows for that many output channels),
 * include a vocabulary, then this. */
#include "cpu/ukernel.h"
#include "cpu/tmpl/common/unroll.tmpl.h"

#define HK_TILE "cpu/tmpl/igemm/dot_tile.tmpl.h"
typedef void (*tile_fn)(const hk_igemm_args *r, int64_t m0);

/* Returns a*b + c with the rounding of v_fma. */
static inline float fused(float a, float b, float c) {
#if HK_VW > 1 /* every vector vocabulary has FMA */
  return __builtin_fmaf(a, b, c);
#else
  return a * b + c;
#endif
}

static inline void finish(const hk_igemm_args *r, int64_t m, int64_t j, int64_t width, float v) {
  if (r->flags & HK_IGEMM_RESUME) v += r->partial[m * width + j];
  if (r->flags & HK_IGEMM_SUSPEND) {
    r->partial[m * width + j] = v;
    return;
  }
  const hk_igemm_line *line = r->line;
  const float *c = NULL;
  if (r->flags & (HK_IGEMM_BEFORE | HK_IGEMM_AFTER)) c = line ? line->c + m * line->c_step : r->c[m];
  if (r->flags & HK_IGEMM_AFFINE) v = fused(v, r->scale[j], r->bias[j]);
  if (r->flags & HK_IGEMM_BEFORE) v = fused(r->beta, c[r->y_at + j], v);
  if (r->flags & HK_IGEMM_CLAMP) v = v < r->lo ? r->lo : v > r->hi ? r->hi : v;
  if (r->flags & HK_IGEMM_AFTER) v = fused(r->beta, c[r->y_at + j], v);
  (line ? line->y + m * line->y_step : r->y[m])[r->y_at + j] = v;
}

#include "cpu/tmpl/common/tiles.tmpl.h"

/* Tiles of nearly equal size: a count just above a multiple does not leave an almost empty tile. */
static void run(const hk_igemm_args *r, const tile_fn *tiles, int64_t most) {
  int64_t left = r->count, m = 0;
  for (int64_t n = hk_ceil_div(left, most); n > 0; n--) {
    const int64_t rows = hk_ceil_div(left, n);
    tiles[rows - 1](r, m);
    m += rows;
    left -= rows;
  }
}
#define HK_ARGS hk_igemm_args
#include "cpu/tmpl/common/tiles_entry.tmpl.h"
