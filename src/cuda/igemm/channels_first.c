/* Host side that the planes and the halo kernels share. */
#include "cuda/igemm/channels_first.h"

#include <stdio.h>

#define REFUSE(...) return snprintf(why, HK_CU_REASON, __VA_ARGS__), false

static bool epilogue_fits(const hk_geom *g, const hk_epi *e, char *why) {
  if (e->e.gate) REFUSE("gates are not fused; wgmma fuses them");
  if (e->e.cuda_user || e->e.cuda_user2 || e->e.cuda_store) REFUSE("user functions are not fused; wgmma fuses them");
  if (e->e.act == HK_ACT_SOFTSIGN) REFUSE("the activation softsign is not fused");
  if (g->y_type != g->x_type)
    REFUSE("y is %s, the kernel stores %s, the type of x", hk_type_name(g->y_type), hk_type_name(g->x_type));
  return true;
}

bool hk_cu_first_takes(const hk_geom *g, const hk_epi *e, int d0, char *why) {
  if (g->x_type != g->f_type || (g->x_type != HK_BF16 && g->x_type != HK_F16))
    REFUSE("x and f must both be bf16 or both f16, they are %s and %s", hk_type_name(g->x_type),
           hk_type_name(g->f_type));
  if (!g->gm || !g->gn || !g->gk) REFUSE("the problem has no products: a size is 0");
  if (!epilogue_fits(g, e, why)) return false;
  if (g->batch_grouped) REFUSE("batch groups are not supported");
  for (int d = d0; d < 3; ++d) {
    if (g->in_dil[d] != 1) REFUSE("input dilation must be 1, it is %lld", (long long)g->in_dil[d]);
    if (g->in[d] < 1) REFUSE("x is empty");
    if (g->stride[d] != 1 && g->out[d] > 1) REFUSE("stride must be 1, it is %lld", (long long)g->stride[d]);
  }
  return true;
}

hk_cu_row hk_cu_first_filter_row(const hk_cu_planes_row *r) {
  return (hk_cu_row){.type = r->type, .bn = r->bm, .parts = 1};
}

int64_t hk_cu_first_tiles_m(const hk_cu_planes_row *r, const hk_geom *g, const hk_cu_planes *p) {
  return g->n * hk_ceil_div(p->flat, r->bn - p->lost);
}
int64_t hk_cu_first_tiles_n(const hk_cu_planes_row *r, const hk_geom *g) {
  return g->groups * hk_ceil_div(g->k, r->bm);
}

double hk_cu_first_tile_clocks(const hk_cu_planes_row *r, double waves, double work, double finish) {
  const bool ping_pong = r->wgs < r->nc;
  return ping_pong ? (work > finish / 2 ? work : finish / 2) + finish / waves : work + finish;
}

hk_status hk_cu_first_map(const hk_geom *g, const hk_strides *s, hk_cu_first_box b, hk_cu_tmap *to) {
  enum { UINT16 = 1, INTERLEAVE_NONE = 0, SWIZZLE_128 = 3, PROMOTE_256 = 3, FILL_ZERO = 0 };
  static const unsigned steps[4] = {1, 1, 1, 1};
  const uint64_t any = (uint64_t)hk_round_up(b.pixels * 2, 16); /* a legal stride for dimensions of size 1 */
  const uint64_t dims[4] = {(uint64_t)b.pixels, (uint64_t)b.channels, (uint64_t)g->groups, (uint64_t)g->n};
  const uint64_t strides[3] = {b.channels > 1 ? (uint64_t)(b.step * 2) : any,
                               g->groups > 1 ? (uint64_t)(s->group * 2) : any,
                               g->n > 1 ? (uint64_t)(s->outer * 2) : any};
  const unsigned boxes[4] = {64, (unsigned)b.box, 1, 1};
  const hk_cu_driver *cu = hk_cu();
  void *anywhere = (void *)(uintptr_t)4096; /* hk_cu_first_bind replaces the address */
  if (!cu) return HK_DEVICE;
  return hk_cu_check(cu->map_tiled(to, UINT16, 4, anywhere, dims, strides, boxes, steps, INTERLEAVE_NONE, SWIZZLE_128,
                                   PROMOTE_256, FILL_ZERO), "encoding a tensor map of channel planes");
}

hk_status hk_cu_first_build(hk_cu_first_state *s, const hk_geom *g, const hk_epi *e, int shared_bytes) {
  const hk_cu_planes_row *row = s->row;
  const hk_cu_row filters = hk_cu_first_filter_row(row);
  const hk_cu_filters plain = {.groups = g->groups, .channels = g->c};
  hk_cu_planes *p = &s->params.p;
  hk_cu_igemm *m = &p->m;
  hk_cu_device here;
  hk_cu_epi_make(e, &m->e);
  hk_cu_pack_make(&s->filters.packing, &filters, g, e, &plain);
  s->filters.packing.apart = s->params.apart;
  m->tiles_m = (int)hk_cu_first_tiles_m(row, g, p), m->tiles_n = (int)hk_cu_first_tiles_n(row, g);
  m->group_tiles_n = (int)hk_ceil_div(g->k, row->bm);
  m->k_blocks = s->filters.packing.pack.k_blocks;
  m->by_wide = hk_cu_divisor_make(m->tiles_n), m->by_group = hk_cu_divisor_make(m->group_tiles_n);
  p->by_tiles = hk_cu_divisor_make(m->tiles_m / g->n);
  p->by_width = hk_cu_divisor_make(p->width), p->by_height = hk_cu_divisor_make(p->height);
  hk_status status = hk_cu_here(&here);
  if (!status) s->blocks = hk_min64(here.processors, (int64_t)m->tiles_m * m->tiles_n);
  if (!status) status = hk_cu_kernel_find(row->image, row->name, shared_bytes, &s->kernel);
  return status ? status : hk_cu_pack_find(&s->filters.packing, &s->filters.pack);
}

hk_status hk_cu_first_bind(hk_cu_igemm *m, const hk_cu_call *call, const void *slopes) {
  hk_cu_epi *e = &m->e;
  m->filters = call->f;
  e->y = call->y, e->c = call->c, e->scale = call->scale, e->bias = call->bias, e->slopes = slopes;
  return hk_cu_check(hk_cu()->map_replace(&m->xmap, (void *)(uintptr_t)call->x), "setting the address of a tensor map");
}
