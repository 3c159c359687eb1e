/* Copies x into the workspace in a layout for TMA: channels innermost, each group zero-padded to whole 128-byte runs
 * (one group: to 16 bytes), input dilation filled in. It serves what im2col cannot read in place: channels-first,
 * odd channel counts, narrow groups, batch groups, input dilation, negative or unaligned strides.
 *
 * Folding: with one group and no dilation along the last dimension, the win[2] adjacent pixels under a window are
 * win[2] * c contiguous channels, if the padding of that dimension is written out. The kernel then sees win[2] times
 * the channels and a window of 1: fewer, fuller k blocks where c fills its last 128 bytes badly (67 channels, 3x3:
 * 12 blocks instead of 18). Pixels overlap in memory; only their pitch must be a multiple of 16 bytes. */
#include "cuda/cuda.h"

#include <stdio.h>
#include <string.h>

static int64_t padded(const hk_geom *g) {
  return hk_round_up(g->c, (g->groups > 1 ? 128 : 16) / (int64_t)hk_type_bytes(g->x_type));
}

/* Pixels of the last dimension that the windows reach, padding included. */
static int64_t reach(const hk_geom *g) { return (g->out[2] - 1) * g->stride[2] + g->win[2]; }

static bool folds(const hk_geom *g) {
  const int64_t run = padded(g), block = 128 / (int64_t)hk_type_bytes(g->x_type), s = g->win[2];
  return g->groups == 1 && s > 1 && g->dil[2] == 1 && hk_ceil_div(run * s, block) < hk_ceil_div(run, block) * s &&
         reach(g) < INT32_MAX / 2;
}

/* The geometry that the igemm kernel then sees. */
static hk_geom transposed_geom(const hk_geom *g) {
  hk_geom to = *g;
  const int64_t run = padded(g);
  int64_t width = g->in_span[2];
  to.c = run;
  to.batch_grouped = false;
  for (int d = 0; d < 3; ++d) to.in[d] = g->in_span[d], to.in_dil[d] = 1;
  if (folds(g)) {
    width = reach(g);
    to.c = run * g->win[2];
    to.in[2] = width - g->win[2] + 1;
    to.lo[2] = to.hi[2] = 0;
    to.taps = g->taps / g->win[2];
    to.win[2] = 1;
  }
  to.gk = to.c * to.taps;
  to.x = (hk_strides){.group = to.c, .channel = 1};
  to.x.at[2] = run * g->groups;
  to.x.at[1] = to.x.at[2] * width;
  to.x.at[0] = to.x.at[1] * to.in[1];
  to.x.outer = to.x.at[0] * to.in[0];
  return to;
}

hk_cu_filters hk_cu_transpose_filters(const hk_geom *g) {
  return folds(g) ? (hk_cu_filters){g->groups, g->c, {1, 1, g->win[2]}, padded(g)}
                  : (hk_cu_filters){.groups = g->groups, .channels = g->c};
}

bool hk_cu_transpose_takes(const hk_geom *g, hk_geom *to, size_t *bytes, char *why) {
  hk_cu_map map;
  int64_t pixels;
  *to = transposed_geom(g);
  if (!hk_mul_checked(to->in[0] * to->in[1], folds(g) ? reach(g) : to->in[2], &pixels) || pixels > INT32_MAX - 64)
    return snprintf(why, HK_CU_REASON, "an image has more than 2^31 pixels"), false;
  if ((double)g->n * g->groups * pixels * padded(g) * hk_type_bytes(g->x_type) / 16 >= INT32_MAX)
    return snprintf(why, HK_CU_REASON, "the transposed x has more than 2^31 pieces of 16 bytes"), false;
  *bytes = (size_t)(to->x.outer * g->n) * hk_type_bytes(g->x_type);
  return hk_cu_map_make(to, &map, why);
}

/* How many pixels of a 16-bit x with contiguous pixels are read at a time: 4 or 2; FLAT: whole small planes, for a
 * 16-byte aligned x; 0: one by one. */
enum { FLAT = 8, FLAT_PIXELS = 384 };
static int pixels_at_once(const hk_geom *g) {
  const int64_t pixels = g->in[0] * g->in[1] * g->in[2],
                even = g->x.channel | g->x.outer * (g->n > 1) | g->x.group * (g->groups > 1) | pixels;
  if (hk_type_bytes(g->x_type) != 2 || folds(g) || g->x.at[2] != 1 || g->batch_grouped) return 0;
  if ((g->in[1] > 1 && g->x.at[1] != g->in[2]) || (g->in[0] > 1 && g->x.at[0] != g->in[1] * g->in[2])) return 0;
  for (int d = 0; d < 3; ++d)
    if (g->in_dil[d] != 1 || g->in[d] != g->in_span[d]) return 0;
  if ((double)g->n * pixels > INT32_MAX - 128) return 0;
  if (even % 4 == 0) return 4;
  if (g->groups == 1 && g->x.channel == pixels && pixels <= FLAT_PIXELS && (g->n == 1 || g->x.outer % 8 == 0))
    return FLAT;
  return even % 2 == 0 ? 2 : 0;
}

/* Whether x is copied row by row: 16-bit, one group, contiguous channels, no dilation. */
static bool by_rows(const hk_geom *g) {
  const int64_t pieces = hk_max64(reach(g), g->in_span[2]) * hk_ceil_div(padded(g), 8);
  return g->x.channel == 1 && g->groups == 1 && !g->batch_grouped && hk_type_bytes(g->x_type) == 2 &&
         g->in_dil[0] == 1 && g->in_dil[1] == 1 && g->in_dil[2] == 1 &&
         hk_max64(pieces, g->in_span[2] * g->x.at[2]) < INT32_MAX / 2 && g->x.at[2] >= 0;
}

/* Elements from the first of x to past its last, or 0 where a stride is negative. */
static int64_t extent(const hk_geom *g) {
  const int64_t step[] = {g->x.outer, g->x.group, g->x.channel, g->x.at[0], g->x.at[1], g->x.at[2]};
  const int64_t size[] = {g->n, g->groups, g->c, g->in[0], g->in[1], g->in[2]};
  int64_t end = 1;
  for (int i = 0; i < HK_COUNT(step); ++i) {
    if (step[i] < 0 || size[i] < 1) return 0;
    end += (size[i] - 1) * step[i];
  }
  return end;
}

hk_status hk_cu_transpose_build(hk_cu_transpose_state *s, const hk_geom *g) {
  static const char *const names[2][3] = {{"hk_transpose_1", "hk_transpose_2", "hk_transpose_4"},
                                          {"hk_pad_1", "hk_pad_2", "hk_pad_4"}};
  const hk_geom to = transposed_geom(g);
  hk_cu_transpose *p = &s->params;
  memset(s, 0, sizeof *s);
  p->view = (hk_cu_view){0, g->x.group, g->x.outer, g->x.channel, {g->x.at[0], g->x.at[1], g->x.at[2]}};
  p->n = g->n, p->groups = g->groups, p->cg = g->c, p->run = padded(g);
  for (int d = 0; d < 3; ++d) p->in[d] = (int)g->in[d], p->span[d] = (int)to.in[d], p->dil[d] = (int)g->in_dil[d];
  if (folds(g)) p->span[2] = (int)reach(g), p->shift = (int)g->lo[2];
  p->pixels = (int64_t)p->span[0] * p->span[1] * p->span[2];
  p->bytes = (int)hk_type_bytes(g->x_type);
  p->c_inner = g->x.channel == 1;
  const int64_t pieces = p->run * p->bytes / 16;
  for (int d = 0; d < 3; ++d) p->by_span[d] = hk_cu_divisor_make(p->span[d]);
  p->by_pieces = hk_cu_divisor_make(pieces), p->by_groups = hk_cu_divisor_make(g->groups),
  p->by_pixels = hk_cu_divisor_make(p->pixels);
  p->end = extent(g);
  p->tiles =
      g->n * g->groups * (p->c_inner ? p->pixels * pieces : hk_ceil_div(p->pixels, 64) * hk_ceil_div(p->run, 64));
  s->blocks = p->c_inner ? hk_ceil_div(p->tiles, 256) : hk_min64(p->tiles, 132 * 8);
  s->rows = by_rows(g);
  /* as hk_pad_rows splits them */
  if (s->rows) s->blocks = g->n * p->span[0] * p->span[1] * hk_ceil_div(p->span[2] * pieces, 384);
  s->wide_pixels = p->c_inner ? 0 : pixels_at_once(g);
  p->spots = s->wide_pixels ? (int)hk_ceil_div(g->n * p->pixels, 64) : 0;
  hk_status status =
      hk_cu_kernel_find("pack", s->rows ? "hk_pad_rows" : names[p->c_inner][p->bytes / 2], 0, &s->kernel);
  if (!status && s->wide_pixels)
    status = hk_cu_kernel_find("pack",
                               s->wide_pixels == FLAT ? "hk_transpose_planes"
                               : s->wide_pixels == 4  ? "hk_transpose_px4"
                                                      : "hk_transpose_px2",
                               0, &s->wide);
  return status;
}

hk_status hk_cu_transpose_run(const hk_cu_transpose_state *s, const void *x, void *to, void *stream) {
  hk_cu_transpose p = s->params;
  const int64_t runs = hk_ceil_div(p.run, 64);
  p.x = x;
  p.to = to;
  if (s->wide_pixels && (uintptr_t)x % (2 * s->wide_pixels) == 0) {
    if (s->wide_pixels != FLAT)
      return hk_cu_kernel_run(s->wide, p.spots * p.groups * runs, 512 / s->wide_pixels, 1, 0, stream, &p);
    p.by_span[0] = hk_cu_divisor_make(runs);
    return hk_cu_kernel_run(s->wide, p.n * runs, 256, 1, (int)(p.pixels * 128), stream, &p);
  }
  return hk_cu_kernel_run(s->kernel, s->blocks, s->rows ? 128 : 256, 1, 0, stream, &p);
}
