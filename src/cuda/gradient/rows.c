/* The tiles of the filter-gradient kernel: what each supports, how many slices its reduction takes, and its predicted
 * time. The number of slices depends on the problem alone, so that the bits of a result do. */
#include <math.h>
#include <stdio.h>

#include "cuda/gradient/outer.h"

#define OUTER(mi, wm, wn, bn, px, stages, cm, cn, tag) ENTRY(TYPE, mi, wm, wn, bn, px, stages, cm, cn, 0, tag)
#define STRIP(mi, wm, wn, bn, tag) ENTRY(TYPE, mi, wm, wn, bn, HK_OUTER_STRIP_PX, HK_OUTER_STRIP_STAGES, 1, 1, 1, tag)
#define ENTRY(...) ENTRY_(__VA_ARGS__)
#define ENTRY_(type, name, mi, wm, wn, bn, px, stages, cm, cn, strip, tag)                                             \
  {"hk_outer_" name "_" #tag, "outer_" name, type, mi, wm, wn, bn, px, stages, cm, cn, strip},
const hk_cu_outer_row hk_cu_outer_rows[] = {
#define TYPE HK_BF16, "bf16"
#include "cuda/gradient/tiles.inc"
#undef TYPE
#define TYPE HK_F16, "f16"
#include "cuda/gradient/tiles.inc"
#undef TYPE
};
#undef OUTER
#undef STRIP
const int hk_cu_outer_row_count = HK_COUNT(hk_cu_outer_rows);

#define OUTER(mi, wm, wn, bn, px, stages, cm, cn, tag)                                                                 \
  _Static_assert(HK_OUTER_SMEM(mi, wm, wn, bn, px, stages) <= HK_OUTER_SMEM_MAX && 16 * (stages) <= 256 &&             \
                     (bn) % 64 == 0 && (mi) * (bn) <= 384 && (px) % 16 == 0 && HK_OUTER_BOXES(mi, wm, wn, bn) <= 32,   \
                 "tile " #tag " does not fit");
#define STRIP(mi, wm, wn, bn, tag)                                                                                     \
  _Static_assert((mi) * (bn) <= 384 && HK_OUTER_STRIP_PX / 16 * ((mi) * (wm) + (wn)) <= 32,                            \
                 "tile " #tag " does not fit");
#include "cuda/gradient/tiles.inc"
#undef OUTER
#undef STRIP

#define PROCESSORS 132 /* for which slices are chosen, whatever the device */
#define REFUSE(...) return snprintf(why, HK_CU_REASON, __VA_ARGS__), false

/* Pieces as wide as fill lines best; the widest of them. */
hk_cu_outer_strip hk_cu_outer_strip_make(const hk_cu_outer_row *r, const hk_cu_outer_shape *s) {
  hk_cu_outer_strip to = {.wide = r->px};
  const int64_t width = s->x.out[2], reach = (s->x.win[2] - 1) * s->x.dil[2];
  for (int64_t wide = r->px / 2; wide >= 16; wide /= 2)
    if (hk_round_up(width, wide) < hk_round_up(width, to.wide)) to.wide = wide;
  to.lines = r->px / to.wide;
  to.pieces = hk_ceil_div(width, to.wide);
  to.x_wide = to.wide + reach;
  to.x_line = hk_round_up(to.x_wide, 8) * 128;
  to.stage_bytes = r->mi * r->wm * HK_OUTER_BOX(r->px) + r->wn * to.lines * to.x_line;
  to.stages = hk_min64(r->stages, (HK_OUTER_SMEM_MAX - 256) / to.stage_bytes);
  return to;
}

int hk_cu_outer_row_shared(const hk_cu_outer_row *r, const hk_cu_outer_shape *s) {
  if (!r->strip) return HK_OUTER_SMEM(r->mi, r->wm, r->wn, r->bn, r->px, r->stages);
  const hk_cu_outer_strip strip = hk_cu_outer_strip_make(r, s);
  return (int)(strip.stages * strip.stage_bytes + 256);
}

int64_t hk_cu_outer_blocks(const hk_cu_outer_row *r, const hk_cu_outer_shape *s) {
  if (!r->strip) return hk_ceil_div(s->pixels, r->px);
  const hk_cu_outer_strip strip = hk_cu_outer_strip_make(r, s);
  return hk_ceil_div(s->x.n * s->x.out[0] * s->x.out[1] * strip.pieces, strip.lines);
}

int64_t hk_cu_outer_units(const hk_cu_outer_row *r, const hk_cu_outer_shape *s) {
  return hk_ceil_div(hk_ceil_div(s->rows, hk_cu_outer_row_m(r)), r->cm) *
         hk_ceil_div(hk_ceil_div(s->columns, hk_cu_outer_row_n(r)), r->cn) * s->groups;
}

bool hk_cu_outer_row_takes(const hk_cu_outer_row *r, const hk_cu_outer_shape *s, char *why) {
  if (r->type != s->x.x_type) REFUSE("x is %s, the tile takes %s", hk_type_name(s->x.x_type), hk_type_name(r->type));
  if (r->cm > 1 && s->rows <= hk_cu_outer_row_m(r))
    REFUSE("cm = %d needs more than one tile of output channels", r->cm);
  if (r->cn > 1 && s->columns <= hk_cu_outer_row_n(r))
    REFUSE("cn = %d needs more than one tile of taps and channels", r->cn);
  if (r->strip && (s->x.stride[2] != 1 || s->x.win[2] * 64 != r->bn))
    REFUSE("strip = 1 needs stride 1 and %d taps along the last dimension, they are %lld and %lld", r->bn / 64,
           (long long)s->x.stride[2], (long long)s->x.win[2]);
  if (r->strip && (s->x.win[2] - 1) * s->x.dil[2] > 128) REFUSE("strip = 1 needs a window of at most 128 pixels");
  if (r->strip && hk_cu_outer_strip_make(r, s).stages < 2) REFUSE("strip = 1 needs room for two stages");
  if (hk_cu_outer_blocks(r, s) > 1 << 24) REFUSE("the problem has more than 2^24 blocks of pixels");
  return true;
}

size_t hk_cu_outer_bytes(const hk_cu_outer_shape *s, int64_t slices) {
  if (slices == 1 && s->plain) return 0;
  return (size_t)(slices * s->groups * s->rows * s->columns) * sizeof(float);
}

/* Clocks of one block of pixels: of the tensor cores, of shared memory (each consumer piece reads its boxes, and all
 * are written once), of the copies that fill it, whatever their size. A cluster's blocks wait for each other. */
static double block_clocks(const hk_cu_outer_row *r, const hk_cu_outer_shape *s) {
  const double m = hk_cu_outer_row_m(r), n = hk_cu_outer_row_n(r), part = r->px / 64.0;
  const hk_cu_outer_strip strip = hk_cu_outer_strip_make(r, s);
  const double x_rows = r->strip ? (double)(r->wn * strip.lines * strip.x_wide) : n;
  const double copies = r->strip ? (double)strip.lines * (r->mi * r->wm + r->wn) : m / 64 / r->cn + n / 64 / r->cm;
  const double tensor = m * n / 32;
  const double shared = 0.92 * (r->wm * r->wn * r->mi * (64.0 + r->bn) + m + x_rows);
  return fmax(part * fmax(tensor, shared), 95 * copies) * (hk_cu_outer_row_cluster(r) > 1 ? 1.02 : 1);
}

/* Clocks of a unit whose sums are stored in y, beside its blocks of pixels: the ring fills, and nothing is multiplied
 * while sums are stored. A thread with 192 of them stores them slowly. */
static double ends_clocks(const hk_cu_outer_row *r, const hk_cu_outer_shape *s) {
  const double sums = (double)hk_cu_outer_row_m(r) * hk_cu_outer_row_n(r);
  return 6300 + sums * (!s->bare ? 1 : r->mi * r->bn > 256 ? 0.45 : 0);
}

/* Bytes that all tiles together load, mostly from the L2. */
static double loaded_bytes(const hk_cu_outer_row *r, const hk_cu_outer_shape *s) {
  const hk_cu_outer_strip strip = hk_cu_outer_strip_make(r, s);
  const double down = (double)hk_ceil_div(s->rows, hk_cu_outer_row_m(r)) / r->cm;
  const double across = (double)hk_ceil_div(s->columns, hk_cu_outer_row_n(r)) / r->cn;
  const int64_t dy = hk_ceil_div(s->rows, 64) * r->px;
  const int64_t x = r->strip ? s->columns / r->bn * strip.lines * strip.x_wide : s->columns / 64 * r->px;
  return 128.0 * (double)(s->groups * hk_cu_outer_blocks(r, s)) * (across * (double)dy + down * s->inside * (double)x);
}

/* The constants are fitted to the tiles of five layers and the choices of five more (bench/results, grad-h200). */
double hk_cu_outer_seconds(const hk_cu_outer_row *r, const hk_cu_outer_shape *s, int64_t slices, int processors) {
  const int64_t slots = hk_max64(1, processors / hk_cu_outer_row_cluster(r));
  const double waves = (double)hk_ceil_div(hk_cu_outer_units(r, s) * slices, slots);
  const double bytes = (double)hk_cu_outer_bytes(s, slices);
  const double blocks = (double)hk_ceil_div(hk_cu_outer_blocks(r, s), slices);
  const double unit = blocks * block_clocks(r, s) + (bytes > 0 ? 0 : ends_clocks(r, s));
  /* sums are written and read once, and each result is finished */
  const double added = bytes > 0 ? bytes / 1.25e12 + (double)(s->groups * s->rows * s->columns) * 3.1e-12 : 0;
  const double busy = fmax(waves * unit / 1.655e9, loaded_bytes(r, s) / 9.5e12);
  return hk_cu_seconds_of(busy, s->bytes / 3.4e12) + added;
}

int64_t hk_cu_outer_slices(const hk_cu_outer_row *r, const hk_cu_outer_shape *s, size_t most) {
  const int64_t slots = PROCESSORS / hk_cu_outer_row_cluster(r), units = hk_cu_outer_units(r, s);
  int64_t best = 0;
  double least = 0;
  for (int64_t waves = 0; waves <= 8; ++waves) {
    const int64_t room = hk_max64(1, (int64_t)(most / ((size_t)(s->groups * s->rows * s->columns) * sizeof(float))));
    const int64_t slices = hk_max64(1, hk_min64(hk_min64(waves * slots / units, room), hk_cu_outer_blocks(r, s)));
    if (hk_cu_outer_bytes(s, slices) > most) continue;
    const double seconds = hk_cu_outer_seconds(r, s, slices, PROCESSORS);
    if (!best || seconds < least) best = slices, least = seconds;
  }
  return best;
}
