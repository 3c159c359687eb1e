/* Host side of the halo kernels: the rows, the problem as rows of pixels with gaps, what fits into shared memory, the estimate, parameters once and
 * pointers each call. */
#include "cuda/igemm/halo.h"

#include <stdio.h>
#include <string.h>

#define HALO(mi, nc, wgs, bn, tag) {"hk_halo_" NAME "_" #tag, "halo_" NAME, TYPE, 64 * (mi) * (wgs), bn, 0, mi, nc, wgs},
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

/* 16-bit planes of contiguous pixels; *apart: how many channels on the next plane is aligned alike. */
static bool planes_lie(const hk_geom *g, int *apart) {
  const hk_strides *s = &g->x;
  const int64_t step[] = {s->channel * (g->c > 1), s->group * (g->groups > 1), s->outer * (g->n > 1)};
  if ((g->in[2] > 1 && s->at[2] != 1) || (g->in[1] > 1 && s->at[1] != g->in[2])) return false;
  for (int i = 0; i < HK_COUNT(step); ++i)
    if (step[i] < 0 || step[i] >= (int64_t)1 << 36 || (i && step[i] % 8)) return false;
  for (*apart = 1; step[0] * *apart % 8;) *apart *= 2;
  return *apart == 1 || (g->c % *apart == 0 && step[0] >= g->in[1] * g->in[2] && step[0] < INT32_MAX / 16);
}

/* How many pixels of y, or of the residual, may be taken at a time: 4 or 2 where planes are runs of pixels from a multiple of as many on, else 1. */
static int unit_of(const hk_geom *g, const hk_strides *s) {
  const int64_t all = s->channel * (g->k > 1) | s->group * (g->groups > 1) | s->outer * (g->n > 1);
  if (g->out[1] > 1 && s->at[1] != g->out[2]) return 1;
  return all % 4 == 0 ? 4 : all % 2 == 0 ? 2 : 1;
}

/* The gap between rows is as wide as the wider padding: it ends one row and begins the next. */
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
  p->by_width = hk_cu_divisor_make(pitch), p->by_height = hk_cu_divisor_make(p->height);
  h->by_wide = hk_cu_divisor_make(h->wide);
}

bool hk_cu_halo_make(const hk_geom *g, const hk_epi *e, hk_cu_halo *h, char *why) {
  memset(h, 0, sizeof *h);
  if (g->x_type != g->f_type || (g->x_type != HK_BF16 && g->x_type != HK_F16)) REFUSE("takes bf16 and f16");
  if (!g->gm || !g->gn || !g->gk) REFUSE("nothing to multiply");
  if (!hk_cu_planes_finishes(g, e, why)) return false;
  if (g->batch_grouped) REFUSE("batch groups");
  if (!hk_cu_is_flat(g, 0)) REFUSE("three dimensions");
  for (int d = 1; d < 3; ++d) {
    if (g->in_dil[d] != 1 || g->in[d] < 1) REFUSE("input dilation or an empty x");
    if (g->stride[d] != 1 && g->out[d] > 1) REFUSE("a stride of %lld", (long long)g->stride[d]);
  }
  if (g->taps < 2 || g->taps > HK_CU_PLANES_TAPS) REFUSE("a window of 2 to %d taps", HK_CU_PLANES_TAPS);
  if (!planes_lie(g, &h->apart)) REFUSE("x's planes are not contiguous pixels whose images lie at multiples of 16 bytes");
  if (g->y.at[2] != 1 && g->out[2] > 1) REFUSE("y's pixels are not contiguous");
  for (int d = 1; d < 3; ++d) {
    const int64_t far = g->in[d] + g->out[d];
    if (far > 1 << 20 || g->lo[d] > far || g->lo[d] < -far || (g->win[d] - 1) * g->dil[d] > 4 * far) REFUSE("a window far beyond x, or 2^20 pixels a side");
  }
  const double span = ((double)g->in[1] + g->out[1]) * 2 * ((double)g->in[2] + g->out[2]);
  if (span > 1 << 26 || (double)g->n * span > 0x1p40 || g->c * g->groups > INT32_MAX / 2) REFUSE("an image of more than 2^26 pixels");
  place_make(g, h);
  h->step = (int)(h->apart > 1 ? g->x.channel : 0);
  hk_cu_geom_make(g, e, &h->p.m.g);
  h->unit = (int)hk_min64(unit_of(g, &g->y), e->e.residual ? unit_of(g, &e->c) : 4);
  h->p.m.by_out[2] = hk_cu_divisor_make(g->out[2]);
  return true;
}

/* Tiles of whole rows where that makes no more of them: their runs in y mostly start and end at whole units. */
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
      if (h->rows < 1 << 13 && HK_HALO_SMEM(r->bm, r->bn, r->nc, h->stages, h->slots, h->apart, h->rows, h->hold) <= HK_IGEMM_SMEM_MAX) return true;
  REFUSE("a tile of %d pixels and the %d that taps reach beside them take more than the shared memory", r->bn, h->rows - r->bn);
}

static int64_t tiles_m(const hk_cu_planes_row *r, const hk_geom *g, const hk_cu_halo *h) { return g->n * hk_ceil_div(h->p.flat, r->bn - h->p.lost); }
static int64_t tiles_n(const hk_cu_planes_row *r, const hk_geom *g) { return g->groups * hk_ceil_div(g->k, r->bm); }

/* As hk_cu_planes_seconds, but pixels are fetched once for all taps, and three warps make the blocks: 21 clocks a row. Constants fitted on an H200. */
double hk_cu_halo_seconds(const hk_cu_planes_row *r, const hk_geom *g, const hk_epi *e, const hk_cu_halo *h, int processors) {
  const double waves = (double)hk_ceil_div(tiles_m(r, g, h) * tiles_n(r, g), processors > 0 ? processors : 1);
  const double tensor = (double)g->taps * r->bm * r->bn / 32, moved = 21.0 * h->rows, boxes = HK_HALO_BOXES(h->rows);
  const double fetched = ((double)g->taps * HK_HALO_STAGE(r->bm) + boxes * 8192) / 36, least = tensor > fetched ? tensor : fetched;
  const double work = h->p.chunks * (least > moved ? least : moved);
  const double heavy = 24.0 * e->transcendental + 48.0 * (e->e.residual != HK_RESIDUAL_NONE);
  const double finish = r->mi * (1000 + (h->unit == 1 ? 40.0 : 17.0) * r->bn + heavy * r->bn / 2);
  const bool ping_pong = r->wgs < r->nc;
  const double tile = ping_pong ? (work > finish / 2 ? work : finish / 2) + finish / waves : work + finish;
  const double bytes = g->bytes / 3.4e12, busy = (waves * tile + 2500) / 1.6e9;
  return 3e-6 + (busy > bytes ? busy + 0.05 * bytes : bytes + 0.05 * busy);
}

/* {pixels, channels, groups, images} of channels `apart` channels from each other; boxes of 64 pixels. */
static hk_status map_encode(const hk_geom *g, int apart, hk_cu_tmap *to) {
  enum { UINT16 = 1, INTERLEAVE_NONE = 0, SWIZZLE_128 = 3, PROMOTE_256 = 3, FILL_ZERO = 0 };
  static const unsigned steps[4] = {1, 1, 1, 1};
  const hk_strides *s = &g->x;
  const int64_t plane = g->in[1] * g->in[2] + (apart > 1 ? (apart - 1) * s->channel : 0);
  const uint64_t any = (uint64_t)hk_round_up(plane * 2, 16); /* the stride of a dimension of size 1 is never used */
  const uint64_t dims[4] = {(uint64_t)plane, (uint64_t)(g->c / apart), (uint64_t)g->groups, (uint64_t)g->n};
  const uint64_t strides[3] = {g->c > apart ? (uint64_t)(s->channel * apart * 2) : any, g->groups > 1 ? (uint64_t)(s->group * 2) : any,
                               g->n > 1 ? (uint64_t)(s->outer * 2) : any};
  const unsigned boxes[4] = {64, 64 / (unsigned)apart, 1, 1};
  const hk_cu_driver *cu = hk_cu();
  if (!cu) return HK_DEVICE;
  return hk_cu_check(cu->map_tiled(to, UINT16, 4, (void *)(uintptr_t)4096, dims, strides, boxes, steps, INTERLEAVE_NONE, SWIZZLE_128, PROMOTE_256,
                                   FILL_ZERO), "encoding a map of planes");
}

hk_status hk_cu_halo_build(hk_cu_halo_state *s, const hk_cu_planes_row *row, const hk_geom *g, const hk_epi *e) {
  const hk_cu_row rows = {.type = row->type, .bn = row->bm, .parts = 1};
  const hk_cu_filters plain = {.groups = g->groups, .channels = g->c};
  hk_cu_device here;
  char why[HK_CU_REASON];
  memset(s, 0, sizeof *s);
  s->row = row;
  hk_cu_halo *h = &s->params;
  hk_cu_igemm *m = &h->p.m;
  if (!hk_cu_halo_make(g, e, h, why) || !hk_cu_halo_fit(row, g, h, why)) return hk_fail(HK_UNSUPPORTED, "wgmma_halo: %s", why);
  hk_cu_epi_make(e, &m->e);
  m->tiles_m = (int)tiles_m(row, g, h), m->tiles_n = (int)tiles_n(row, g);
  m->group_tiles_n = (int)hk_ceil_div(g->k, row->bm);
  hk_cu_pack_make(&s->filters.packing, &rows, g, e, &plain);
  s->filters.packing.apart = h->apart;
  m->k_blocks = s->filters.packing.pack.k_blocks;
  m->by_wide = hk_cu_divisor_make(m->tiles_n), m->by_group = hk_cu_divisor_make(m->group_tiles_n);
  h->p.by_tiles = hk_cu_divisor_make(m->tiles_m / g->n);
  hk_status status = hk_cu_here(&here);
  s->blocks = hk_min64(here.processors, (int64_t)m->tiles_m * m->tiles_n);
  if (!status) status = hk_cu_kernel_find(row->image, row->name, HK_IGEMM_SMEM_MAX, &s->kernel);
  if (!status) status = hk_cu_kernel_find("pack", "hk_pack_filters", 0, &s->filters.pack);
  return status ? status : map_encode(g, h->apart, &m->xmap);
}

hk_status hk_cu_halo_run(const hk_cu_halo_state *s, const hk_cu_call *call, const void *slopes) {
  hk_cu_halo h = s->params;
  hk_cu_epi *e = &h.p.m.e;
  if ((uintptr_t)call->x % 16) return hk_fail(HK_INVALID, "x: not 16-byte aligned; hk_options.unaligned plans for that");
  while (((uintptr_t)call->y | (uintptr_t)call->c) % (unsigned)(h.unit * 2)) h.unit /= 2;
  h.p.m.filters = call->f;
  e->y = call->y, e->c = call->c, e->scale = call->scale, e->bias = call->bias, e->slopes = slopes;
  const hk_status status = hk_cu_check(hk_cu()->map_replace(&h.p.m.xmap, (void *)(uintptr_t)call->x), "placing a tensor map");
  const hk_cu_planes_row *r = s->row;
  return status ? status : hk_cu_kernel_run_pdl(s->kernel, s->blocks, 128 * (r->nc + 1), 1, HK_HALO_SMEM(r->bm, r->bn, r->nc, h.stages, h.slots, h.apart, h.rows, h.hold), call->stream, &h);
}
