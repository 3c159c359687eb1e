/* Tilings of the tapsum kernels on the tensor cores: mma.cuh, stem.cuh, band.cuh. */
#include <stdio.h>

#include "cuda/gradient/tapsum.h"

#define SMS 132 /* of the device that slices are made for, whatever the device */
#define REFUSE(...) return snprintf(why, HK_CU_REASON, __VA_ARGS__), false

static bool flat(const hk_geom *g) { return g->win[0] == 1 && g->out[0] == 1 && g->in[0] == 1 && g->lo[0] == 0; }

/* What both need. */
static bool supported(const hk_geom *g, char *why) {
  if (!hk_cu_tapsum_type(g) || g->x_type == HK_F32) REFUSE("x and f must both be f16 or both bf16");
  if (g->in_dil[0] * g->in_dil[1] * g->in_dil[2] != 1) REFUSE("input dilation must be 1");
  if (!flat(g)) REFUSE("takes one and two dimensions");
  return true;
}

/* ---- mma */

enum { MMA_TAPS = 9, PIXEL = 144, ROOM = 200 * 1024, WANTED = 54 * 1024 };

static int64_t x_rows(const hk_geom *g, int64_t band) {
  return (band - 1) * g->dil[1] + (g->out[1] - 1) * g->stride[1] + 1;
}

static int64_t mma_bytes(const hk_geom *g, int64_t band, int64_t columns) {
  return PIXEL * (1 + x_rows(g, band) * columns + band * g->win[2]);
}

/* Rows of dy per band: as many as leave room for two blocks that have two bands each, cut evenly. */
static int64_t mma_band(const hk_geom *g, int64_t columns) {
  int64_t band = 1;
  while (band < g->win[1] && mma_bytes(g, band + 1, columns) <= WANTED) band++;
  return hk_ceil_div(g->win[1], hk_ceil_div(g->win[1], band));
}

bool hk_cu_tapsum_tile_mma(const hk_geom *g, int64_t *slices, hk_cu_tapsum_tiling *t, char *why) {
  hk_cu_tapsum *p = &t->params;
  const int64_t w = g->n, channels = g->groups * g->n;
  if (!supported(g, why)) return false;
  if (g->n != g->k || (w != 4 && w != 8 && w != 16 && w != 32)) REFUSE("groups must have 4, 8, 16 or 32 channels");
  if (channels % 8 || g->x.outer != 1 || g->f.outer != 1 || (g->groups > 1 && (g->x.group != w || g->f.group != w)) ||
      !hk_cu_tapsum_whole(g, &g->x, g->in, 8) || !hk_cu_tapsum_whole(g, &g->f, g->win, 8))
    REFUSE("channels of x and f must be adjacent, pixels at multiples of 16 bytes");
  const int64_t columns = (g->win[2] - 1) * g->dil[2] + (g->out[2] - 1) * g->stride[2] + 1;
  if (columns > 4096 || g->win[1] > INT32_MAX / 4096 || mma_bytes(g, 1, columns) > ROOM)
    REFUSE("a row of dy and what it reads of x exceed shared memory");
  p->band = (int)mma_band(g, columns);
  p->columns = (int)columns;
  p->x_bytes = (int)(x_rows(g, p->band) * columns * PIXEL), p->f_bytes = (int)(p->band * g->win[2] * PIXEL);
  p->segments = (int)hk_ceil_div(g->win[1], p->band);
  p->by_segments = hk_cu_divisor_make(p->segments);
  p->units = (int)(g->c * p->segments);
  p->chunks = (int)hk_ceil_div(channels, 64), p->width = (int)w;
  p->parity = w == 32 ? 1 : 2;
  p->job_blocks = (int)hk_ceil_div(g->pixels, MMA_TAPS);
  p->by_columns = hk_cu_divisor_make(columns);
  p->buffer_bytes = p->x_bytes + p->f_bytes;
  p->buffers = PIXEL + 2 * p->buffer_bytes <= ROOM ? 2 : 1;
  const int room = 8 / p->parity * MMA_TAPS * 8 * 32 * 4, bytes = PIXEL + p->buffers * p->buffer_bytes;
  t->shared_bytes = bytes > room ? bytes : room;
  const int64_t across = (int64_t)p->chunks * p->job_blocks, fit = hk_min64(2, 220 * 1024 / t->shared_bytes);
  if (!*slices) {
    const int64_t wanted = hk_max64(1, SMS * fit / across); /* then as few as have the same most bands */
    *slices = hk_cu_tapsum_slices(g, hk_ceil_div(p->units, hk_ceil_div(p->units, wanted)), p->units);
  }
  p->slices = (int)*slices;
  t->image = g->x_type == HK_F16 ? "tapsum_f16" : "tapsum_bf16";
  snprintf(t->kernel, sizeof t->kernel, "hk_tapsum_mma_%s", hk_cu_tapsum_type(g));
  t->blocks = across * *slices, t->threads = 256, t->x_align = t->f_align = 16;
  const double matrices = (double)(across * p->width / 16 + across) * MMA_TAPS * 4 * (double)(g->c * g->taps) / 16;
  t->fit = (int)hk_max64(1, fit);
  const double ends = (double)t->blocks / (SMS * t->fit) * 20e-6; /* of a block: its first band, its sums */
  t->busy = matrices * 6 / SMS / 1.6e9 + ends, t->moved = g->bytes * 1.3 / 3e12;
  return true;
}

/* ---- stem */

/* Whether rows of x can be copied as they are, and the room for them. */
static void stem_raw(const hk_geom *g, int64_t nt, hk_cu_tapsum *p) {
  const int64_t line = g->in[2] * g->n, zeros = hk_round_up(hk_max64(0, g->lo[2]) * g->n, 8);
  const int64_t reads = zeros - g->lo[2] * g->n + ((p->quads - 1) * g->dil[2] + 1) * g->n + nt * 8 + 2;
  const bool dense = (g->n == 1 || g->x.outer == 1) && g->x.at[2] == g->n && g->stride[2] == 1;
  if (!dense || line % 8 || g->x.offset % 8 || (g->c > 1 && g->x.channel % 8) || (g->in[1] > 1 && g->x.at[1] % 8))
    return;
  if (line > 65536 || reads > 65536 || g->dil[1] > 4096) return;
  p->raw_rows = p->ring + (int)g->dil[1], p->raw_left = (int)zeros;
  p->raw_bytes = (int)(hk_round_up(hk_max64(zeros + line, reads), 8) * 2);
}

bool hk_cu_tapsum_tile_stem(const hk_geom *g, int64_t *slices, hk_cu_tapsum_tiling *t, char *why) {
  enum { TABLES = 256 };
  hk_cu_tapsum *p = &t->params;
  const int64_t columns = g->out[2] * g->n;
  if (!supported(g, why)) return false;
  if (g->groups > 1) REFUSE("groups must be 1");
  if (columns > 32 || g->out[1] > 8) REFUSE("takes 8 rows of taps of at most 32 values (tap, channel)");
  if (g->f.outer != 1 || g->k % 8 || !hk_cu_tapsum_whole(g, &g->f, g->win, 8))
    REFUSE("f's channels must be adjacent, a multiple of 8, its pixels at multiples of 16 bytes");
  const int nt = (int)hk_max64(2, hk_ceil_div(columns, 8));
  p->quads = (int)hk_min64(INT32_MAX / 256, hk_round_up(g->win[2], 16));
  p->pitch = 16 * (nt | 1);
  const int64_t ring = (g->out[1] - 1) * g->stride[1] + 1 + g->dil[1];
  const int64_t x_bytes = hk_round_up(ring * p->quads * p->pitch, 16), f_bytes = (int64_t)p->quads * PIXEL;
  if (ring > 4096 || x_bytes + 2 * f_bytes + TABLES > ROOM) REFUSE("rows of x and dy exceed shared memory");
  p->ring = (int)ring, p->x_bytes = (int)x_bytes, p->f_bytes = (int)f_bytes;
  p->units = p->rows;
  p->chunks = (int)hk_ceil_div(g->k, 64);
  p->by_columns = hk_cu_divisor_make(p->quads);
  stem_raw(g, nt, p);
  if (TABLES + x_bytes + 2 * f_bytes + (int64_t)p->raw_rows * p->raw_bytes > ROOM) p->raw_rows = p->raw_bytes = 0;
  t->shared_bytes = (int)(TABLES + x_bytes + 2 * f_bytes) + p->raw_rows * p->raw_bytes;
  const int64_t fit = hk_min64(2, 220 * 1024 / t->shared_bytes);
  if (!*slices) *slices = hk_cu_tapsum_slices(g, hk_max64(1, SMS * fit / p->chunks), p->units);
  p->slices = (int)*slices;
  t->image = g->x_type == HK_F16 ? "tapsum_f16" : "tapsum_bf16";
  snprintf(t->kernel, sizeof t->kernel, "hk_tapsum_stem_%s_%d", hk_cu_tapsum_type(g), nt);
  t->blocks = p->chunks * *slices, t->threads = 256, t->f_align = 16, t->x_align = p->raw_bytes > 0 ? 16 : 0;
  const double matrices = (double)p->chunks * 4 * nt * 8 * (double)p->rows * p->quads / 16;
  t->fit = (int)hk_max64(1, fit), t->busy = matrices * 4 / 132 / 1.6e9, t->moved = g->bytes / 3e12;
  return true;
}

/* ---- band */

bool hk_cu_tapsum_tile_band(const hk_geom *g, int64_t *slices, hk_cu_tapsum_tiling *t, char *why) {
  enum { CHANNELS = 16, RUNS = 8, COLUMN = 32, ROWS = 8 };
  hk_cu_tapsum *p = &t->params;
  if (!supported(g, why)) return false;
  if (g->n * g->k != 1 || g->groups % 8) REFUSE("takes depthwise filters of a multiple of 8 channels");
  if (g->groups > 1 && (g->x.group != 1 || g->f.group != 1)) REFUSE("channels of x and f must be adjacent");
  if (!hk_cu_tapsum_whole(g, &g->x, g->in, 8) || !hk_cu_tapsum_whole(g, &g->f, g->win, 8))
    REFUSE("pixels of x and f must be at multiples of 16 bytes");
  if (g->stride[1] * g->stride[2] * g->dil[1] * g->dil[2] != 1) REFUSE("strides and dilations must be 1");
  if (g->out[1] > 7 || g->out[2] > 9) REFUSE("takes at most 7 x 9 taps");
  const int64_t runs = hk_ceil_div(g->win[2], 8);
  if (g->c * (runs + 1) * g->in[1] > INT32_MAX / 16) REFUSE("x has too many pixels");
  p->segments = (int)runs;
  p->by_segments = hk_cu_divisor_make(runs), p->by_spots = hk_cu_divisor_make(runs + 1);
  p->by_rows = hk_cu_divisor_make(g->in[1]);
  p->units = (int)(hk_ceil_div(g->c * runs, RUNS) * g->in[1]);
  p->spots = (int)hk_round_up(RUNS + 1 + hk_min64(RUNS - 1, hk_ceil_div(RUNS - 1, runs)), 2);
  p->band = ROWS;
  p->f_bytes = p->band * RUNS * 8 * COLUMN, p->x_bytes = p->band * p->spots * 8 * COLUMN;
  t->shared_bytes = p->f_bytes + p->x_bytes + CHANNELS * 16 * ((p->band * RUNS | 1) + (p->band * p->spots | 1));
  p->chunks = (int)hk_ceil_div(g->groups, CHANNELS);
  if (!*slices) *slices = hk_cu_tapsum_slices(g, hk_max64(1, SMS * 2 / p->chunks), hk_max64(1, p->units / 8));
  p->slices = (int)*slices;
  const int rows = g->out[1] <= 3 ? 3 : g->out[1] <= 5 ? 5 : 7;
  t->image = g->x_type == HK_F16 ? "tapsum_f16" : "tapsum_bf16";
  snprintf(t->kernel, sizeof t->kernel, "hk_tapsum_band_%s_%d", hk_cu_tapsum_type(g), rows);
  t->blocks = p->chunks * *slices, t->threads = 256, t->x_align = t->f_align = 16;
  const double each = (double)p->units / (double)*slices, steps = each + rows * (1 + each / (double)g->in[1]);
  t->fit = 1, t->busy = (double)t->blocks * steps * 450 / SMS / 1.6e9;
  t->moved = g->bytes * steps / each / 3.5e12;
  return true;
}
