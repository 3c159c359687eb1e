/* Host side of the depthwise and grouped kernels: finds the kernels of a tiling and fills in its parameters, packs
 * weights, launches a call. */
#include "cuda/depthwise/depthwise.h"

#include <string.h>

/* Encodes {channels, columns, rows, images} of x or y in boxes of all slabs of a block by `columns` by `rows`. */
static hk_status map_encode(const hk_geom *g, const hk_strides *s, const int64_t *size, int slabs, int columns,
                            int rows, hk_cu_tmap *to) {
  enum { UINT16 = 1, INTERLEAVE_NONE = 0, PROMOTE_256 = 3, FILL_ZERO = 0 };
  static const unsigned steps[4] = {1, 1, 1, 1};
  const int64_t channels = g->k * g->groups;
  const uint64_t dims[4] = {(uint64_t)channels, (uint64_t)size[2], (uint64_t)size[1], (uint64_t)g->n};
  const uint64_t any = (uint64_t)channels * 2; /* a legal stride for dimensions of size 1 */
  const uint64_t strides[3] = {size[2] > 1 ? (uint64_t)s->at[2] * 2 : any, size[1] > 1 ? (uint64_t)s->at[1] * 2 : any,
                               g->n > 1 ? (uint64_t)s->outer * 2 : any};
  const unsigned box[4] = {(unsigned)slabs * 8, (unsigned)columns, (unsigned)rows, 1};
  const int swizzle = slabs == 8 ? 3 : slabs == 4 ? 2 : slabs == 2 ? 1 : 0;
  const hk_cu_driver *cu = hk_cu();
  if (!cu) return HK_DEVICE;
  return hk_cu_check(cu->map_tiled(to, UINT16, 4, (void *)(uintptr_t)4096, dims, strides, box, steps, INTERLEAVE_NONE,
                                   swizzle, PROMOTE_256, FILL_ZERO),
                     "encoding a tensor map");
}

hk_status hk_cu_dw_build(hk_cu_dw_state *s, const hk_geom *g, const hk_epi *e) {
  hk_cu_geom_make(g, e, &s->tiling.params.g);
  hk_cu_epi_make(e, &s->tiling.params.e);
  hk_status st = hk_cu_kernel_find(s->tiling.image, s->tiling.kernel, s->tiling.shared_bytes, &s->kernel);
  if (!st && s->tiling.packed_bytes) st = hk_cu_kernel_find("dw_pack", "hk_dw_pack", 0, &s->pack);
  hk_cu_dw *p = &s->tiling.params;
  /* Launch early only if the grid fills the device; otherwise early blocks pile up on a few SMs. */
  if (!st) st = hk_cu_kernel_fills(s->kernel, s->tiling.blocks, s->tiling.threads, s->tiling.shared_bytes, &s->pdl);
  if (!st && s->tiling.mapped)
    st = map_encode(g, &g->x, g->in, p->octet.slabs, p->octet.patch_length, 1, &p->octet.xmap);
  if (!st && s->tiling.mapped)
    st = map_encode(g, &g->y, g->out, p->octet.slabs, p->octet.tile_length, 2, &p->octet.ymap);
  return st;
}

hk_status hk_cu_dw_pack(const hk_cu_dw_state *s, const void *f, void *to, void *stream) {
  hk_cu_dw p = s->tiling.params;
  if (!s->tiling.packed_bytes) return HK_OK;
  p.f = f;
  p.packed = to;
  const int64_t blocks = hk_min64(2048, (int64_t)s->tiling.packed_bytes / 1024 + 1);
  return hk_cu_kernel_run(s->pack, blocks, 256, 1, 0, stream, &p);
}

hk_status hk_cu_dw_run(const hk_cu_dw_state *s, const hk_cu_call *call, const void *packed, const void *slopes) {
  hk_cu_dw p = s->tiling.params;
  const bool aligned = s->tiling.aligned;
  if (aligned && hk_cu_misaligned(call->x)) return hk_cu_unaligned("x", call->x);
  if (aligned && hk_cu_misaligned(call->y)) return hk_cu_unaligned("y", call->y);
  if (aligned && p.e.residual && hk_cu_misaligned(call->c)) return hk_cu_unaligned("c", call->c);
  p.x = call->x, p.f = call->f, p.packed = packed;
  p.e.y = call->y, p.e.c = call->c, p.e.slopes = slopes, p.e.user = call->user;
  p.e.scale = call->scale, p.e.bias = call->bias;
  if (s->tiling.mapped) {
    hk_status st = hk_cu_check(hk_cu()->map_replace(&p.octet.xmap, (void *)(uintptr_t)call->x),
                               "setting the address of a tensor map");
    if (!st) st = hk_cu_check(hk_cu()->map_replace(&p.octet.ymap, call->y), "setting the address of a tensor map");
    if (st) return st;
  }
  return (s->pdl ? hk_cu_kernel_run_pdl : hk_cu_kernel_run)(s->kernel, s->tiling.blocks, s->tiling.threads, 1,
                                                            s->tiling.shared_bytes, call->stream, &p);
}
