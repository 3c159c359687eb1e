/* Host side of the halo kernels: the kernel table, the problem as rows of pixels with gaps, what fits into shared
 * memory, and the estimate. Parameters are made once, pointers are bound per call. */
#include "cuda/igemm/halo.h"

#include <stdio.h>
#include <string.h>

#define HALO(mi, nc, wgs, bn, tag)                                                                                     \
  {"hk_halo_" NAME "_" #tag, "halo_" NAME, TYPE, 64 * (mi) * (wgs), bn, 0, mi, nc, wgs},
const hk_cu_planes_row hk_cu_halo_rows[] = {
#define TYPE HK_BF16
#define NAME "bf16"
#include "cuda/igemm/halo.inc"
#undef TYPE
#undef NAME
#define TYPE HK_F16
#define NAME "f16"
#include "cuda/igemm/halo.inc"
#undef TYPE
#undef NAME
};
const int hk_cu_halo_row_count = HK_COUNT(hk_cu_halo_rows);

#define REFUSE(...) return snprintf(why, HK_CU_REASON, __VA_ARGS__), false

enum { STAGES_LEAST = 3, STAGES_MOST = 8 };

/* Checks for 16-bit planes of contiguous pixels; *apart: after how many channels a plane has the same alignment. */
static bool planes_aligned(const hk_geom *g, int *apart) {
  const hk_strides *s = &g->x;
  const int64_t step[] = {s->channel * (g->c > 1), s->group * (g->groups > 1), s->outer * (g->n > 1)};
  if ((g->in[2] > 1 && s->at[2] != 1) || (g->in[1] > 1 && s->at[1] != g->in[2])) return false;
  for (int i = 0; i < HK_COUNT(step); ++i)
    if (step[i] < 0 || step[i] >= (int64_t)1 << 36 || (i && step[i] % 8)) return false;
  for (*apart = 1; step[0] * *apart % 8;) *apart *= 2;
  return *apart == 1 || (g->c % *apart == 0 && step[0] >= g->in[1] * g->in[2] && step[0] < INT32_MAX / 16);
}

/* Pixels of y or of the residual per access: 4 or 2 where planes are contiguous and aligned to as many, else 1. */
static int unit_of(const hk_geom *g, const hk_strides *s) {
  const int64_t all = s->channel * (g->k > 1) | s->group * (g->groups > 1) | s->outer * (g->n > 1);
  if (g->out[1] > 1 && s->at[1] != g->out[2]) return 1;
  return all % 4 == 0 ? 4 : all % 2 == 0 ? 2 : 1;
}

/* The gap between rows is as wide as the wider padding: it is the right padding of one row and the left padding of
 * the next. */
static void place_make(const hk_geom *g, hk_cu_halo *h) {
  hk_cu_planes *p = &h->p;
  const int64_t right = g->out[2] + (g->win[2] - 1) * g->dil[2] - g->lo[2] - g->in[2];
  const int64_t gap = hk_max64(hk_max64(g->lo[2], right), 0), pitch = hk_max64(g->in[2] + gap, g->out[2]);
  p->width = (int)pitch, p->height = (int)g->out[1];
  p->flat = (int)((g->out[1] - 1) * pitch + g->out[2]);
  h->wide = (int)g->in[2], h->plane = (int)(g->in[1] * g->in[2]);
  h->before = (int)(g->lo[1] * pitch + g->lo[2]);
  p->phases = 1, p->taps[0] = (int)g->taps, p->chunks = (int)hk_ceil_div(g->c, 64);
  for (int i = 0; i < g->taps; ++i) {
    const int64_t start = i / g->win[2] * g->dil[1] * pitch + i % g->win[2] * g->dil[2];
    p->tap[i] = (hk_cu_planes_tap){.start = (int)start, .index = i};
  }
  h->by_wide = hk_cu_divisor_make(h->wide);
}

bool hk_cu_halo_make(const hk_geom *g, const hk_epi *e, hk_cu_halo *h, char *why) {
  memset(h, 0, sizeof *h);
  if (!hk_cu_is_flat(g, 0)) REFUSE("the problem must have one or two dimensions; wgmma_planes takes three");
  if (!hk_cu_first_takes(g, e, 1, why)) return false;
  if (g->taps < 2 || g->taps > HK_CU_PLANES_TAPS)
    REFUSE("the window must have 2 to %d taps, it has %lld", HK_CU_PLANES_TAPS, (long long)g->taps);
  if (!planes_aligned(g, &h->apart))
    REFUSE("the planes of x must be contiguous pixels, its images at multiples of 16 bytes; wgmma_relaid transposes x");
  if (g->y.at[2] != 1 && g->out[2] > 1)
    REFUSE("the pixels of y must be contiguous, their stride is %lld", (long long)g->y.at[2]);
  for (int d = 1; d < 3; ++d) {
    const int64_t far = g->in[d] + g->out[d];
    if (far > 1 << 20 || g->lo[d] > far || g->lo[d] < -far || (g->win[d] - 1) * g->dil[d] > 4 * far)
      REFUSE("the window must stay near x, whose sides are at most 2^20: padding %lld, window %lld, dilation %lld",
             (long long)g->lo[d], (long long)g->win[d], (long long)g->dil[d]);
  }
  const double span = ((double)g->in[1] + g->out[1]) * 2 * ((double)g->in[2] + g->out[2]);
  if (span > 1 << 26 || (double)g->n * span > 0x1p40 || g->c * g->groups > INT32_MAX / 2)
    REFUSE("an image has more than 2^26 pixels or x more than 2^30 channels");
  place_make(g, h);
  h->step = (int)(h->apart > 1 ? g->x.channel : 0);
  hk_cu_geom_make(g, e, &h->p.m.g);
  h->unit = (int)hk_min64(unit_of(g, &g->y), e->e.residual ? unit_of(g, &e->c) : 4);
  h->p.m.by_out[2] = hk_cu_divisor_make(g->out[2]);
  return true;
}

/* Makes tiles whole rows where that needs no more tiles: most runs of y then start and end at whole units. */
static void span_make(const hk_cu_planes_row *r, const hk_geom *g, hk_cu_halo *h) {
  const int64_t pitch = h->p.width, rows = r->bn / pitch;
  const bool whole = rows && hk_ceil_div(g->out[1], rows) == hk_ceil_div(h->p.flat, r->bn);
  h->p.lost = whole ? (int)(r->bn - rows * pitch) : 0;
}

bool hk_cu_halo_fit(const hk_cu_planes_row *r, const hk_geom *g, hk_cu_halo *h, char *why) {
  h->rows = r->bn + h->p.tap[g->taps - 1].start;
  h->hold = (int)hk_round_up(h->rows + 1, 8);
  span_make(r, g, h);
  for (h->slots = HK_CU_HALO_SLOTS; h->slots > 0; --h->slots)
    for (h->stages = STAGES_MOST; h->stages >= STAGES_LEAST + (h->slots > 1); --h->stages)
      if (h->rows < 1 << 13 &&
          HK_HALO_SMEM(r->bm, r->bn, r->nc, h->stages, h->slots, h->apart, h->rows, h->hold) <= HK_IGEMM_SMEM_MAX)
        return true;
  REFUSE("a tile of %d pixels and its halo of %d exceed the shared memory of %d bytes", r->bn, h->rows - r->bn,
         HK_IGEMM_SMEM_MAX);
}

/* Like hk_cu_planes_seconds, but each pixel is fetched once for all taps, and three warps transpose the blocks at 21
 * clocks per row. Constants are fitted on an H200. */
double hk_cu_halo_seconds(const hk_cu_planes_row *r, const hk_geom *g, const hk_epi *e, const hk_cu_halo *h,
                          int processors) {
  const double waves = (double)hk_ceil_div(hk_cu_first_tiles_m(r, g, &h->p) * hk_cu_first_tiles_n(r, g),
                                           processors > 0 ? processors : 1);
  const double tensor = (double)g->taps * r->bm * r->bn / 32, moved = 21.0 * h->rows, boxes = HK_HALO_BOXES(h->rows);
  const double fetched = ((double)g->taps * HK_HALO_STAGE(r->bm) + boxes * 8192) / 36,
               least = tensor > fetched ? tensor : fetched;
  const double work = h->p.chunks * (least > moved ? least : moved);
  const double heavy = 24.0 * e->transcendental + 48.0 * (e->e.residual != HK_RESIDUAL_NONE);
  const double finish = r->mi * (1000 + (h->unit == 1 ? 40.0 : 17.0) * r->bn + heavy * r->bn / 2);
  const double tile = hk_cu_first_tile_clocks(r, waves, work, finish);
  return hk_cu_seconds_of((waves * tile + 2500) / 1.6e9, g->bytes / 3.4e12);
}

hk_status hk_cu_halo_build(hk_cu_halo_state *s, const hk_cu_planes_row *row, const hk_geom *g, const hk_epi *e) {
  char why[HK_CU_REASON];
  memset(s, 0, sizeof *s);
  s->row = row;
  hk_cu_halo *h = &s->params;
  if (!hk_cu_halo_make(g, e, h, why) || !hk_cu_halo_fit(row, g, h, why))
    return hk_fail(HK_UNSUPPORTED, "wgmma_halo: %s", why);
  /* A row of the map holds the planes of `apart` channels, one after another. */
  const int64_t pixels = g->in[1] * g->in[2] + (h->apart > 1 ? (h->apart - 1) * g->x.channel : 0);
  const hk_cu_first_box in = {pixels, g->c / h->apart, g->x.channel * h->apart, 64 / h->apart};
  const hk_status status = hk_cu_first_build(s, g, e, HK_IGEMM_SMEM_MAX);
  return status ? status : hk_cu_first_map(g, &g->x, in, &h->p.m.xmap);
}

hk_status hk_cu_halo_run(const hk_cu_halo_state *s, const hk_cu_call *call, const void *slopes) {
  hk_cu_halo h = s->params;
  if (hk_cu_misaligned(call->x)) return hk_cu_unaligned("x", call->x);
  while (((uintptr_t)call->y | (uintptr_t)call->c) % (unsigned)(h.unit * 2)) h.unit /= 2;
  const hk_status status = hk_cu_first_bind(&h.p.m, call, slopes);
  if (status) return status;
  const hk_cu_planes_row *r = s->row;
  const int shared = HK_HALO_SMEM(r->bm, r->bn, r->nc, h.stages, h.slots, h.apart, h.rows, h.hold);
  return hk_cu_kernel_run_pdl(s->kernel, s->blocks, 128 * (r->nc + 1), 1, shared, call->stream, &h);
}
