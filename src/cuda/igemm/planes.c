/* Host side of the planes kernels: the rows, the problem as one run of pixels an image, the estimate, parameters once and pointers each call. */
#include "cuda/igemm/planes.h"

#include <stdio.h>
#include <string.h>

#define PLANES(mi, nc, wgs, bn, stages, tag) {"hk_planes_" NAME "_" #tag, "planes_" NAME, TYPE, 64 * (mi) * (wgs), bn, stages, mi, nc, wgs},
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
#define PLANES(mi, nc, wgs, bn, stages, tag)                                                                                   \
  _Static_assert(HK_PLANES_SMEM(64 * (mi) * (wgs), nc, bn, stages) <= HK_IGEMM_SMEM_MAX && 24 * (stages) <= 256 && (bn) % 8 == 0 && \
                     (bn) > 8 && (bn) <= 256, "tile " #tag " does not fit");
#include "cuda/igemm/planes.inc"

#define REFUSE(...) return snprintf(why, HK_CU_REASON, __VA_ARGS__), false

/* 16-bit pixels contiguous in planes that 16-byte accesses may start at. */
static bool planes_lie(const hk_geom *g, const hk_strides *s, const int64_t size[3], int64_t channels) {
  const int64_t step[] = {s->channel * (channels > 1), s->group * (g->groups > 1), s->outer * (g->n > 1)};
  if ((size[2] > 1 && s->at[2] != 1) || (size[1] > 1 && s->at[1] != size[2]) || (size[0] > 1 && s->at[0] != size[1] * size[2])) return false;
  for (int i = 0; i < HK_COUNT(step); ++i)
    if (step[i] < 0 || step[i] % 8 || step[i] >= (int64_t)1 << 39) return false;
  return true;
}

bool hk_cu_planes_finishes(const hk_geom *g, const hk_epi *e, char *why) {
  const hk_act act = e->e.act;
  if (e->e.gate) REFUSE("fuses no gate");
  if (e->e.cuda_user || e->e.cuda_user2 || e->e.cuda_store) REFUSE("fuses no user function");
  if (act == HK_ACT_SOFTSIGN) REFUSE("has no such activation");
  if (g->y_type != g->x_type) REFUSE("stores %s, not %s", hk_type_name(g->x_type), hk_type_name(g->y_type));
  return true;
}

/* Rows end where the next begins: which taps read over those ends. */
static void wraps_make(const hk_geom *g, bool one_row, bool volume, hk_cu_planes *p) {
  const int64_t right = g->out[2] - 1 + (g->win[2] - 1) * g->dil[2] - g->lo[2], down = g->out[1] - 1 + (g->win[1] - 1) * g->dil[1] - g->lo[1];
  if (!one_row && (g->lo[2] > 0 || right >= g->in[2])) p->wraps |= HK_CU_WRAP_COLUMNS;
  if (volume && (g->lo[1] > 0 || down >= g->in[1])) p->wraps |= HK_CU_WRAP_ROWS;
}

/* Taps by the remainder of their distance by eight, the largest first. */
static void phases_make(const hk_geom *g, hk_cu_planes *p) {
  int count = 0;
  for (int lag = 7; lag >= 0; --lag) {
    const int before = count;
    for (int i = 0; i < g->taps; ++i) {
      const int64_t at[3] = {i / g->win[2] / g->win[1], i / g->win[2] % g->win[1], i % g->win[2]};
      const int64_t reach[3] = {at[0] * g->dil[0] - g->lo[0], at[1] * g->dil[1] - g->lo[1], at[2] * g->dil[2] - g->lo[2]};
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
  if (g->x_type != g->f_type || (g->x_type != HK_BF16 && g->x_type != HK_F16)) REFUSE("takes bf16 and f16");
  if (!g->gm || !g->gn || !g->gk) REFUSE("nothing to multiply");
  if (!hk_cu_planes_finishes(g, e, why)) return false;
  if (g->batch_grouped) REFUSE("batch groups");
  for (int d = 0; d < 3; ++d) {
    if (g->in_dil[d] != 1 || g->in[d] < 1) REFUSE("input dilation or an empty x");
    if (g->stride[d] != 1 && g->out[d] > 1) REFUSE("a stride of %lld", (long long)g->stride[d]);
  }
  if (g->taps > HK_CU_PLANES_TAPS) REFUSE("a window of more than %d taps", HK_CU_PLANES_TAPS);
  if (!planes_lie(g, &g->x, g->in, g->c)) REFUSE("x's planes are not contiguous pixels at multiples of 16 bytes");
  if ((!one_row && g->out[2] > g->in[2]) || (volume && g->out[1] > g->in[1])) REFUSE("y has longer rows than x");
  if (g->y.at[2] != 1 && g->out[2] > 1) REFUSE("y's pixels are not contiguous");
  const double span = ((double)g->in[0] + g->out[0]) * ((double)g->in[1] + g->out[1]) * ((double)g->in[2] + g->out[2]);
  if (span > 1 << 29 || (double)g->n * span > 0x1p40 || g->c * g->groups > INT32_MAX / 2) REFUSE("an image of more than 2^29 pixels");
  for (int d = 0; d < 3; ++d) {
    const int64_t far = g->in[d] + g->out[d];
    if (g->lo[d] > far || g->lo[d] < -far || (g->win[d] - 1) * g->dil[d] > 4 * far) REFUSE("a window far beyond x");
  }
  p->width = (int)(one_row ? hk_max64(g->in[2], g->out[2]) : g->in[2]);
  p->height = (int)(volume ? g->in[1] : hk_max64(g->in[1], g->out[1]));
  p->flat = (int)(((g->out[0] - 1) * p->height + g->out[1] - 1) * p->width + g->out[2]);
  hk_cu_geom_make(g, e, &p->m.g);
  wraps_make(g, one_row, volume, p);
  phases_make(g, p);
  p->whole = !unaligned && g->pixels == p->flat && g->pixels % 8 == 0 && planes_lie(g, &g->y, g->out, g->k) &&
             (!e->e.residual || planes_lie(g, &e->c, g->out, g->k));
  return true;
}

static hk_cu_row filter_row(const hk_cu_planes_row *r) { return (hk_cu_row){.type = r->type, .bn = r->bm, .parts = 1}; }

size_t hk_cu_planes_filter_bytes(const hk_cu_planes_row *r, const hk_geom *g) {
  const hk_cu_row rows = filter_row(r);
  return hk_cu_igemm_filter_bytes(&rows, g);
}

static int64_t tiles_m(const hk_cu_planes_row *r, const hk_geom *g, const hk_cu_planes *p) { return g->n * hk_ceil_div(p->flat, r->bn - p->lost); }
static int64_t tiles_n(const hk_cu_planes_row *r, const hk_geom *g) { return g->groups * hk_ceil_div(g->k, r->bm); }

/* As hk_cu_row_seconds: clocks of a k block, waves, epilogues, bytes. What bounds a block here is its way from the L2, at 36 bytes a clock and processor.
 * Steps of an epilogue that do not leave by the copy engine cost five times as much. Constants fitted on an H200. */
double hk_cu_planes_seconds(const hk_cu_planes_row *r, const hk_geom *g, const hk_epi *e, const hk_cu_planes *p, int processors) {
  const double waves = (double)hk_ceil_div(tiles_m(r, g, p) * tiles_n(r, g), processors > 0 ? processors : 1);
  const double tensor = r->bm * (double)r->bn / 32, fetched = HK_PLANES_STAGE(r->bm, r->bn) / 36.0;
  const double moves = p->phases - (p->lag[p->phases - 1] == 0);
  const double work = (double)(p->chunks * g->taps) * (tensor > fetched ? tensor : fetched) + moves * 5 * r->mi * r->bn;
  const double heavy = 24.0 * e->transcendental + 24.0 * (e->e.residual != HK_RESIDUAL_NONE);
  const int steps = (int)hk_ceil_div(r->bn, 64), full = p->whole ? (r->bn - p->lost) / 64 : 0;
  const double finish = 400 + r->mi * (200.0 * full + 1000.0 * (steps - full)) + heavy * r->mi * r->bn / 2;
  const bool ping_pong = r->wgs < r->nc;
  const double tile = ping_pong ? (work > finish / 2 ? work : finish / 2) + finish / waves : work + finish;
  const double least = g->bytes / 3.4e12, busy = waves * tile / 1.5e9;
  return 3e-6 + (busy > least ? busy + 0.05 * least : least + 0.05 * busy);
}

/* {pixels, channels of a group, groups, images}, boxes of 64 pixels x `box` channels. */
static hk_status map_encode(const hk_geom *g, const hk_strides *s, int64_t plane, int64_t channels, int box, hk_cu_tmap *to) {
  enum { UINT16 = 1, INTERLEAVE_NONE = 0, SWIZZLE_128 = 3, PROMOTE_256 = 3, FILL_ZERO = 0 };
  static const unsigned steps[4] = {1, 1, 1, 1};
  const uint64_t any = (uint64_t)hk_round_up(plane * 2, 16); /* the stride of a dimension of size 1 is never used */
  const uint64_t dims[4] = {(uint64_t)plane, (uint64_t)channels, (uint64_t)g->groups, (uint64_t)g->n};
  const uint64_t strides[3] = {channels > 1 ? (uint64_t)(s->channel * 2) : any, g->groups > 1 ? (uint64_t)(s->group * 2) : any,
                               g->n > 1 ? (uint64_t)(s->outer * 2) : any};
  const unsigned boxes[4] = {64, (unsigned)box, 1, 1};
  const hk_cu_driver *cu = hk_cu();
  if (!cu) return HK_DEVICE;
  return hk_cu_check(cu->map_tiled(to, UINT16, 4, (void *)(uintptr_t)4096, dims, strides, boxes, steps, INTERLEAVE_NONE, SWIZZLE_128, PROMOTE_256,
                                   FILL_ZERO), "encoding a map of planes");
}

hk_status hk_cu_planes_build(hk_cu_planes_state *s, const hk_cu_planes_row *row, const hk_geom *g, const hk_epi *e, bool unaligned) {
  const hk_cu_row rows = filter_row(row);
  const hk_cu_filters plain = {.groups = g->groups, .channels = g->c};
  hk_cu_device here;
  char why[HK_CU_REASON];
  memset(s, 0, sizeof *s);
  s->row = row;
  hk_cu_planes *p = &s->params;
  if (!hk_cu_planes_make(g, e, unaligned, p, why)) return hk_fail(HK_UNSUPPORTED, "wgmma_planes: %s", why);
  hk_cu_epi_make(e, &p->m.e);
  p->m.tiles_m = (int)tiles_m(row, g, p), p->m.tiles_n = (int)tiles_n(row, g);
  p->m.group_tiles_n = (int)hk_ceil_div(g->k, row->bm);
  hk_cu_pack_make(&s->filters.packing, &rows, g, e, &plain);
  p->m.k_blocks = s->filters.packing.pack.k_blocks;
  p->m.by_wide = hk_cu_divisor_make(p->m.tiles_n), p->m.by_group = hk_cu_divisor_make(p->m.group_tiles_n);
  p->by_tiles = hk_cu_divisor_make(p->m.tiles_m / g->n);
  p->by_width = hk_cu_divisor_make(p->width), p->by_height = hk_cu_divisor_make(p->height);
  hk_status status = hk_cu_here(&here);
  s->blocks = hk_min64(here.processors, (int64_t)p->m.tiles_m * p->m.tiles_n);
  if (!status) status = hk_cu_kernel_find(row->image, row->name, HK_PLANES_SMEM(row->bm, row->nc, row->bn, row->stages), &s->kernel);
  if (!status) status = hk_cu_kernel_find("pack", "hk_pack_filters", 0, &s->filters.pack);
  if (!status) status = map_encode(g, &g->x, g->in[0] * g->in[1] * g->in[2], g->c, 64, &p->m.xmap);
  if (!status && p->whole) status = map_encode(g, &g->y, g->pixels, g->k, 16, &p->m.ymap);
  return status;
}

static bool misaligned(const void *p) { return (uintptr_t)p % 16 != 0; }

hk_status hk_cu_planes_run(const hk_cu_planes_state *s, const hk_cu_call *call, const void *slopes) {
  hk_cu_planes p = s->params;
  hk_cu_epi *e = &p.m.e;
  if (misaligned(call->x) || (p.whole && (misaligned(call->y) || (e->residual && misaligned(call->c)))))
    return hk_fail(HK_INVALID, "x, y or c: not 16-byte aligned; hk_options.unaligned plans for that");
  p.m.filters = call->f;
  e->y = call->y, e->c = call->c, e->scale = call->scale, e->bias = call->bias, e->slopes = slopes;
  hk_status status = hk_cu_check(hk_cu()->map_replace(&p.m.xmap, (void *)(uintptr_t)call->x), "placing a tensor map");
  if (!status && p.whole) status = hk_cu_check(hk_cu()->map_replace(&p.m.ymap, call->y), "placing a tensor map");
  if (status) return status;
  const hk_cu_planes_row *r = s->row;
  return hk_cu_kernel_run(s->kernel, s->blocks, 128 * (r->nc + 1), 1, HK_PLANES_SMEM(r->bm, r->nc, r->bn, r->stages), call->stream, &p);
}
