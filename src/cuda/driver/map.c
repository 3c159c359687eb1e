/* Tensor-map parameters of a geometry: how TMA reads x, or why it cannot.
 *
 * The channels of x must be contiguous and every other stride a positive multiple of 16 bytes. A 1x1 problem without
 * stride or padding over a dense x is a plain matrix (tiled map). Anything else is an im2col map of rank 3, 4 or 5:
 * the box of first-tap positions [lower, in - 1 + upper] stepped by the stride, one run of channels per pixel, taps
 * as offsets. Corners are innermost first, like dimensions and coordinates. */
#include "cuda/cuda.h"

#include <stdio.h>
#include <string.h>

#define REFUSE(...) return snprintf(why, HK_CU_REASON, __VA_ARGS__), false

static bool channels_fit(const hk_geom *g, int bytes, char *why) {
  if (g->x.channel != 1 && g->c * g->groups > 1)
    REFUSE("the channels of x must be contiguous, their stride is %lld", (long long)g->x.channel);
  if (g->groups > 1) {
    if (g->batch_grouped) REFUSE("batch groups need x transposed, see wgmma_relaid");
    if (g->x.group != g->c)
      REFUSE("the groups of x must be contiguous: stride %lld, not %lld", (long long)g->x.group, (long long)g->c);
    if (g->c * bytes % 128)
      REFUSE("channels per group must be a multiple of %d, they are %lld", 128 / bytes, (long long)g->c);
  }
  return true;
}

/* The stride of a dimension of size 1 is never used; any legal value will do. */
static bool stride_fits(const hk_geom *g, int64_t size, int64_t stride, int bytes, uint64_t *to, char *why) {
  if (size == 1) return *to = (uint64_t)hk_round_up(g->c * g->groups * bytes, 16), true;
  if (stride <= 0 || stride * bytes % 16)
    REFUSE("strides of x must be positive multiples of 16 bytes, one is %lld elements", (long long)stride);
  if (stride >= ((int64_t)1 << 40) / bytes)
    REFUSE("strides of x must be below 2^40 bytes, one is %lld elements", (long long)stride);
  *to = (uint64_t)(stride * bytes);
  return true;
}

static bool tiled(const hk_geom *g, hk_cu_map *m) {
  for (int d = 0; d < 3; ++d)
    if (g->win[d] != 1 || g->stride[d] != 1 || g->lo[d] || g->out[d] != g->in[d]) return false;
  if (!hk_cu_is_linear(g, &g->x) || g->x.at[2] <= 0 || g->x.at[2] * m->bytes % 16) return false;
  m->load = HK_CU_LOAD_TILED;
  m->rank = 2;
  m->dims[1] = (uint64_t)g->gm;
  m->strides[0] = (uint64_t)(g->x.at[2] * m->bytes);
  m->steps[0] = m->steps[1] = 1;
  return true;
}

static bool im2col(const hk_geom *g, hk_cu_map *m, char *why) {
  const int space = !hk_cu_is_flat(g, 0) ? 3 : !hk_cu_is_flat(g, 1) ? 2 : 1;
  const int limit = space == 1 ? 32768 : space == 2 ? 128 : 16;
  m->load = HK_CU_LOAD_1D + space - 1;
  m->rank = space + 2;
  m->steps[0] = m->steps[space + 1] = 1;
  for (int i = 0; i < space; ++i) {
    const int d = 2 - i;
    const int64_t lower = -g->lo[d], upper = g->hi[d] - (g->win[d] - 1) * g->dil[d],
                  reach = (g->win[d] - 1) * g->dil[d];
    if (g->stride[d] > 8) REFUSE("stride must not exceed TMA's limit of 8, it is %lld", (long long)g->stride[d]);
    if (lower < -limit || lower >= limit || upper < -limit || upper >= limit || reach >= 2 * limit)
      REFUSE("padding and dilated window (corners %lld, %lld) exceed TMA's limit of %d", (long long)lower,
             (long long)upper, limit);
    m->dims[i + 1] = (uint64_t)g->in[d];
    m->lower[i] = (int)lower;
    m->upper[i] = (int)upper;
    m->steps[i + 1] = (unsigned)g->stride[d];
    if (!stride_fits(g, g->in[d], g->x.at[d], m->bytes, &m->strides[i], why)) return false;
  }
  m->dims[space + 1] = (uint64_t)g->n;
  return stride_fits(g, g->n, g->x.outer, m->bytes, &m->strides[space], why);
}

bool hk_cu_map_make(const hk_geom *g, hk_cu_map *m, char *why) {
  enum { UINT8 = 0, UINT16 = 1, TFLOAT32 = 11 };
  memset(m, 0, sizeof *m);
  m->bytes = (int)hk_type_bytes(g->x_type);
  m->type = m->bytes == 1 ? UINT8 : m->bytes == 2 ? UINT16 : TFLOAT32;
  m->channels = 128 / (unsigned)m->bytes;
  for (int d = 0; d < 3; ++d) {
    if (g->in_dil[d] != 1) REFUSE("input dilation must be 1, it is %lld; see wgmma_relaid", (long long)g->in_dil[d]);
    if (g->in[d] < 1) REFUSE("x is empty");
    if (g->in[d] >= INT32_MAX || g->out[d] >= INT32_MAX / 16) REFUSE("dimension %d has a size above 2^31 / 16", d);
  }
  if (g->gm >= INT32_MAX - 1024 || g->n >= INT32_MAX) REFUSE("y has %lld pixels, more than 2^31", (long long)g->gm);
  if (g->c * g->groups > INT32_MAX) REFUSE("x has %lld channels, more than 2^31", (long long)(g->c * g->groups));
  if (!channels_fit(g, m->bytes, why)) return false;
  m->dims[0] = (uint64_t)(g->c * g->groups);
  return tiled(g, m) || im2col(g, m, why);
}

hk_status hk_cu_map_encode(const hk_cu_map *m, int pixels, bool half, hk_cu_tmap *to) {
  enum { INTERLEAVE_NONE = 0, SWIZZLE_64 = 2, SWIZZLE_128 = 3, PROMOTE_256 = 3, FILL_ZERO = 0 };
  const int swizzle = half ? SWIZZLE_64 : SWIZZLE_128;
  const unsigned channels = m->channels / (half ? 2 : 1);
  const hk_cu_driver *cu = hk_cu();
  void *anywhere = (void *)(uintptr_t)4096; /* execute replaces the address */
  if (!cu) return HK_DEVICE;
  if (m->load == HK_CU_LOAD_TILED) {
    const unsigned box[2] = {channels, (unsigned)pixels};
    return hk_cu_check(cu->map_tiled(to, m->type, 2, anywhere, m->dims, m->strides, box, m->steps, INTERLEAVE_NONE,
                                     swizzle, PROMOTE_256, FILL_ZERO), "encoding a tiled tensor map");
  }
  return hk_cu_check(cu->map_im2col(to, m->type, (unsigned)m->rank, anywhere, m->dims, m->strides, m->lower, m->upper,
                                    channels, (unsigned)pixels, m->steps, INTERLEAVE_NONE, swizzle, PROMOTE_256,
                                    FILL_ZERO), "encoding an im2col tensor map");
}

/* The widest slab that divides a tile of bn channels, in bytes, and its swizzle. */
static int slab_span(int bn, int bytes, int *swizzle) {
  int span = 128;
  for (*swizzle = 3; bn * bytes % span; --*swizzle) span /= 2;
  return span;
}

hk_status hk_cu_map_encode_pixels(const hk_geom *g, const hk_strides *s, int bn, int rows, hk_cu_tmap *to) {
  enum { UINT16 = 1, UINT32 = 2, INTERLEAVE_NONE = 0, PROMOTE_128 = 2, FILL_ZERO = 0 };
  static const unsigned steps[5] = {1, 1, 1, 1, 1};
  static const int corner[3] = {0, 0, 0};
  const hk_cu_driver *cu = hk_cu();
  int swizzle;
  const int bytes = (int)hk_type_bytes(g->y_type), span = slab_span(bn, bytes, &swizzle);
  const int64_t size[4] = {g->out[2], g->out[1], g->out[0], g->n}, at[4] = {s->at[2], s->at[1], s->at[0], s->outer};
  uint64_t dims[5] = {(uint64_t)g->k}, strides[4];
  for (int i = 0; i < 4; ++i) {
    dims[i + 1] = (uint64_t)size[i];
    strides[i] = (uint64_t)((size[i] > 1 ? at[i] : g->k) * bytes); /* k is a multiple of 8, as legal strides are */
  }
  if (!cu) return HK_DEVICE;
  return hk_cu_check(cu->map_im2col(to, bytes == 4 ? UINT32 : UINT16, 5, (void *)(uintptr_t)4096, dims, strides, corner,
                                    corner, (unsigned)(span / bytes), (unsigned)rows, steps, INTERLEAVE_NONE, swizzle,
                                    PROMOTE_128, FILL_ZERO), "encoding the im2col tensor map of y");
}

hk_status hk_cu_map_encode_rows(const hk_geom *g, const hk_strides *s, int bn, int rows, hk_cu_tmap *to) {
  enum { UINT16 = 1, UINT32 = 2, INTERLEAVE_NONE = 0, PROMOTE_128 = 2, FILL_ZERO = 0 };
  static const unsigned steps[3] = {1, 1, 1};
  const hk_cu_driver *cu = hk_cu();
  int swizzle;
  const int bytes = (int)hk_type_bytes(g->y_type), span = slab_span(bn, bytes, &swizzle);
  const uint64_t dims[3] = {(uint64_t)g->k, (uint64_t)g->groups, (uint64_t)g->gm};
  const uint64_t pixel = (uint64_t)(s->at[2] * bytes),
                 strides[2] = {g->groups > 1 ? (uint64_t)(s->group * bytes) : pixel, pixel};
  const unsigned box[3] = {(unsigned)(span / bytes), 1, (unsigned)rows};
  if (!cu) return HK_DEVICE;
  return hk_cu_check(cu->map_tiled(to, bytes == 4 ? UINT32 : UINT16, 3, (void *)(uintptr_t)4096, dims, strides, box,
                                   steps, INTERLEAVE_NONE, swizzle, PROMOTE_128, FILL_ZERO),
                     "encoding the tensor map of y or c");
}
