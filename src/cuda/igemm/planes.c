/* Host side of the planes kernels: the kernel table, the problem as one run of pixels per image, and the estimate.
 * Parameters are made once, pointers are bound per call. */
#include "cuda/igemm/planes.h"

#include <stdio.h>
#include <string.h>

#define PLANES(mi, nc, wgs, bn, stages, tag)                                                                           \
  {"hk_planes_" NAME "_" #tag, "planes_" NAME, TYPE, 64 * (mi) * (wgs), bn, stages, mi, nc, wgs},
const hk_cu_planes_row hk_cu_planes_rows[] = {
#define TYPE HK_BF16
#define NAME "bf16"
#include "cuda/igemm/planes.inc"
#undef TYPE
#undef NAME
#define TYPE HK_F16
#define NAME "f16"
#include "cuda/igemm/planes.inc"
#undef TYPE
#undef NAME
};
const int hk_cu_planes_row_count = HK_COUNT(hk_cu_planes_rows);
#undef PLANES
#define PLANES(mi, nc, wgs, bn, stages, tag)                                                                           \
  _Static_assert(HK_PLANES_SMEM(64 * (mi) * (wgs), nc, bn, stages) <= HK_IGEMM_SMEM_MAX && 24 * (stages) <= 256 &&     \
                     (bn) % 8 == 0 && (bn) > 8 && (bn) <= 256,                                                         \
                 "tile " #tag " does not fit");
#include "cuda/igemm/planes.inc"

#define REFUSE(...) return snprintf(why, HK_CU_REASON, __VA_ARGS__), false

/* Checks for 16-bit planes of contiguous pixels that start at multiples of 16 bytes. */
static bool planes_aligned(const hk_geom *g, const hk_strides *s, const int64_t size[3], int64_t channels) {
  const int64_t step[] = {s->channel * (channels > 1), s->group * (g->groups > 1), s->outer * (g->n > 1)};
  if ((size[2] > 1 && s->at[2] != 1) || (size[1] > 1 && s->at[1] != size[2]) ||
      (size[0] > 1 && s->at[0] != size[1] * size[2]))
    return false;
  for (int i = 0; i < HK_COUNT(step); ++i)
    if (step[i] < 0 || step[i] % 8 || step[i] >= (int64_t)1 << 39) return false;
  return true;
}

/* Which taps wrap around: they read past the end of a row (or plane) into the next. */
static void wraps_make(const hk_geom *g, bool one_row, bool volume, hk_cu_planes *p) {
  const int64_t right = g->out[2] - 1 + (g->win[2] - 1) * g->dil[2] - g->lo[2],
                down = g->out[1] - 1 + (g->win[1] - 1) * g->dil[1] - g->lo[1];
  if (!one_row && (g->lo[2] > 0 || right >= g->in[2])) p->wraps |= HK_CU_WRAP_COLUMNS;
  if (volume && (g->lo[1] > 0 || down >= g->in[1])) p->wraps |= HK_CU_WRAP_ROWS;
}

/* Sorts the taps by their distance modulo 8, largest first. */
static void phases_make(const hk_geom *g, hk_cu_planes *p) {
  int count = 0;
  for (int lag = 7; lag >= 0; --lag) {
    const int before = count;
    for (int i = 0; i < g->taps; ++i) {
      const int64_t at[3] = {i / g->win[2] / g->win[1], i / g->win[2] % g->win[1], i % g->win[2]};
      const int64_t reach[3] = {at[0] * g->dil[0] - g->lo[0], at[1] * g->dil[1] - g->lo[1],
                                at[2] * g->dil[2] - g->lo[2]};
      const int64_t shift = (reach[0] * p->height + reach[1]) * p->width + reach[2];
      if ((shift & 7) == lag) p->tap[count++] = (hk_cu_planes_tap){(int)shift - lag, (int)reach[2], (int)reach[1], i};
    }
    if (count > before) p->lag[p->phases] = lag, p->taps[p->phases++] = count - before;
  }
  p->lost = p->lag[0] ? 8 : 0;
  p->chunks = (int)hk_ceil_div(g->c, 64);
}

bool hk_cu_planes_make(const hk_geom *g, const hk_epi *e, bool unaligned, hk_cu_planes *p, char *why) {
  const bool volume = !hk_cu_is_flat(g, 0), one_row = !volume && hk_cu_is_flat(g, 1);
  memset(p, 0, sizeof *p);
  if (!hk_cu_first_takes(g, e, 0, why)) return false;
  if (g->taps > HK_CU_PLANES_TAPS)
    REFUSE("the window may have at most %d taps, it has %lld", HK_CU_PLANES_TAPS, (long long)g->taps);
  if (!planes_aligned(g, &g->x, g->in, g->c))
    REFUSE("the planes of x must be contiguous pixels at multiples of 16 bytes; wgmma_relaid transposes x");
  if ((!one_row && g->out[2] > g->in[2]) || (volume && g->out[1] > g->in[1]))
    REFUSE("y must not have longer rows than x");
  if (g->y.at[2] != 1 && g->out[2] > 1)
    REFUSE("the pixels of y must be contiguous, their stride is %lld", (long long)g->y.at[2]);
  const double span = ((double)g->in[0] + g->out[0]) * ((double)g->in[1] + g->out[1]) * ((double)g->in[2] + g->out[2]);
  if (span > 1 << 29 || (double)g->n * span > 0x1p40 || g->c * g->groups > INT32_MAX / 2)
    REFUSE("an image has more than 2^29 pixels or x more than 2^30 channels");
  for (int d = 0; d < 3; ++d) {
    const int64_t far = g->in[d] + g->out[d];
    if (g->lo[d] > far || g->lo[d] < -far || (g->win[d] - 1) * g->dil[d] > 4 * far)
      REFUSE("the window must stay near x: padding %lld, window %lld, dilation %lld", (long long)g->lo[d],
             (long long)g->win[d], (long long)g->dil[d]);
  }
  p->width = (int)(one_row ? hk_max64(g->in[2], g->out[2]) : g->in[2]);
  p->height = (int)(volume ? g->in[1] : hk_max64(g->in[1], g->out[1]));
  p->flat = (int)(((g->out[0] - 1) * p->height + g->out[1] - 1) * p->width + g->out[2]);
  hk_cu_geom_make(g, e, &p->m.g);
  wraps_make(g, one_row, volume, p);
  phases_make(g, p);
  p->whole = !unaligned && g->pixels == p->flat && g->pixels % 8 == 0 && planes_aligned(g, &g->y, g->out, g->k) &&
             (!e->e.residual || planes_aligned(g, &e->c, g->out, g->k));
  return true;
}

size_t hk_cu_planes_filter_bytes(const hk_cu_planes_row *r, const hk_geom *g) {
  const hk_cu_row rows = hk_cu_first_filter_row(r);
  return hk_cu_igemm_filter_bytes(&rows, g);
}

/* Like hk_cu_row_seconds: clocks per k block, waves, epilogues, bytes. The bound here is L2 bandwidth, 36 bytes per
 * clock and SM. Epilogue steps that are not stored by TMA cost five times as much. Constants are fitted on an H200. */
double hk_cu_planes_seconds(const hk_cu_planes_row *r, const hk_geom *g, const hk_epi *e, const hk_cu_planes *p,
                            int processors) {
  const double waves =
      (double)hk_ceil_div(hk_cu_first_tiles_m(r, g, p) * hk_cu_first_tiles_n(r, g), processors > 0 ? processors : 1);
  const double tensor = r->bm * (double)r->bn / 32, fetched = HK_PLANES_STAGE(r->bm, r->bn) / 36.0;
  const double moves = p->phases - (p->lag[p->phases - 1] == 0);
  const double work = (double)(p->chunks * g->taps) * (tensor > fetched ? tensor : fetched) + moves * 5 * r->mi * r->bn;
  const double heavy = 24.0 * e->transcendental + 24.0 * (e->e.residual != HK_RESIDUAL_NONE);
  const int steps = (int)hk_ceil_div(r->bn, 64), full = p->whole ? (r->bn - p->lost) / 64 : 0;
  const double finish = 400 + r->mi * (200.0 * full + 1000.0 * (steps - full)) + heavy * r->mi * r->bn / 2;
  const double tile = hk_cu_first_tile_clocks(r, waves, work, finish);
  return hk_cu_seconds_of(waves * tile / 1.5e9, g->bytes / 3.4e12);
}

hk_status hk_cu_planes_build(hk_cu_planes_state *s, const hk_cu_planes_row *row, const hk_geom *g, const hk_epi *e,
                             bool unaligned) {
  char why[HK_CU_REASON];
  memset(s, 0, sizeof *s);
  s->row = row;
  hk_cu_planes *p = &s->params.p;
  if (!hk_cu_planes_make(g, e, unaligned, p, why)) return hk_fail(HK_UNSUPPORTED, "wgmma_planes: %s", why);
  const hk_cu_first_box in = {g->in[0] * g->in[1] * g->in[2], g->c, g->x.channel, 64};
  const hk_cu_first_box out = {g->pixels, g->k, g->y.channel, 16};
  hk_status status = hk_cu_first_build(s, g, e, HK_PLANES_SMEM(row->bm, row->nc, row->bn, row->stages));
  if (!status) status = hk_cu_first_map(g, &g->x, in, &p->m.xmap);
  if (!status && p->whole) status = hk_cu_first_map(g, &g->y, out, &p->m.ymap);
  return status;
}

hk_status hk_cu_planes_run(const hk_cu_planes_state *s, const hk_cu_call *call, const void *slopes) {
  hk_cu_planes p = s->params.p;
  if (hk_cu_misaligned(call->x)) return hk_cu_unaligned("x", call->x);
  if (p.whole && hk_cu_misaligned(call->y)) return hk_cu_unaligned("y", call->y);
  if (p.whole && p.m.e.residual && hk_cu_misaligned(call->c)) return hk_cu_unaligned("c", call->c);
  hk_status status = hk_cu_first_bind(&p.m, call, slopes);
  if (!status && p.whole)
    status = hk_cu_check(hk_cu()->map_replace(&p.m.ymap, call->y), "setting the address of a tensor map");
  if (status) return status;
  const hk_cu_planes_row *r = s->row;
  return hk_cu_kernel_run(s->kernel, s->blocks, 128 * (r->nc + 1), 1, HK_PLANES_SMEM(r->bm, r->nc, r->bn, r->stages),
                          call->stream, &p);
}
