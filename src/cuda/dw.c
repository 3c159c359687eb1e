/* Host side of the depthwise and grouped kernels: a tiling becomes kernels found and parameters filled, weights are packed,
 * a call is launched. */
#include "cuda/dw.h"

#include <string.h>

hk_status hk_cu_dw_build(hk_cu_dw_state *s, const hk_geom *g, const hk_epi *e) {
  hk_cu_geom_make(g, e, &s->tiling.params.g);
  hk_cu_epi_make(e, &s->tiling.params.e);
  hk_status st = hk_cu_kernel_find(s->tiling.image, s->tiling.kernel, s->tiling.shared_bytes, &s->kernel);
  if (!st && s->tiling.packed_bytes) st = hk_cu_kernel_find("dw_pack", "hk_dw_pack", 0, &s->pack);
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

static bool misaligned(const void *p) { return ((uintptr_t)p & 15) != 0; }

hk_status hk_cu_dw_run(const hk_cu_dw_state *s, const hk_cu_call *call, const void *packed, const void *slopes) {
  hk_cu_dw p = s->tiling.params;
  if (s->tiling.aligned && (misaligned(call->x) || misaligned(call->y) || (p.e.residual && misaligned(call->c))))
    return hk_fail(HK_INVALID, "args.x, y and c must be 16-byte aligned unless the plan was made with options.unaligned");
  p.x = call->x, p.f = call->f, p.packed = packed;
  p.e.y = call->y, p.e.c = call->c, p.e.slopes = slopes, p.e.user = call->user;
  p.e.scale = call->scale, p.e.bias = call->bias;
  return hk_cu_kernel_run(s->kernel, s->tiling.blocks, s->tiling.threads, 1, s->tiling.shared_bytes, call->stream, &p);
}
