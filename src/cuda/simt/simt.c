/* Host side of the SIMT kernels: tiles, the order of rows and products, slices, cost. */
#include "cuda/simt/simt.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define PROCESSORS 132 /* slices are chosen for so many SMs, whatever the device has: they decide the bits */
#define MOST_SLICES 256
#define LEAST_STEPS 16 /* per slice: a block loads its first operands in the time of about 4 */
#define CLOCK 1.7e9
#define REFUSE(...) return snprintf(why, HK_CU_REASON, __VA_ARGS__), false

#define TILE(image, type, name, mixed, bm, bn, rate)                                                                   \
  { "simt_" #image, "hk_simt_" #name "_" #bm "x" #bn, "hk_simt_slices_" #image, HK_##type, mixed, bm, bn, rate }
const hk_cu_simt_tile hk_cu_simt_tiles[] = {
    TILE(f32, F32, f32, false, 128, 128, 70),  TILE(f32, F32, f32, false, 128, 64, 45),
    TILE(f32, F32, f32, false, 64, 64, 42),    TILE(f32, F32, f32, false, 128, 16, 24),
    TILE(f32, F32, mixed, true, 128, 128, 56), TILE(f32, F32, mixed, true, 64, 64, 34),
    TILE(f32, F32, mixed, true, 128, 16, 18),  TILE(f64, F64, f64, true, 64, 64, 25),
    TILE(f64, F64, f64, true, 64, 16, 14),     TILE(s32, S32, s32, true, 128, 128, 40),
    TILE(s32, S32, s32, true, 64, 64, 26),     TILE(s32, S32, s32, true, 128, 16, 16)};
const int hk_cu_simt_tile_count = HK_COUNT(hk_cu_simt_tiles);

bool hk_cu_simt_takes(const hk_geom *g, const hk_epi *e, char *why) {
  const int64_t rows = g->n * g->pixels;
  if (e->e.gate) REFUSE("a gate needs both halves of a channel pair in one tile; see finish / cuda_simt");
  if (e->e.cuda_user || e->e.cuda_user2 || e->e.cuda_store) REFUSE("takes no user functions; see finish / cuda_simt");
  if (rows == 0 || g->k == 0 || g->gk == 0) REFUSE("x, f or y is empty");
  if (rows > 1 << 30 || g->gk > 1 << 30 || g->k * g->groups > 1 << 30)
    REFUSE("y has %lld positions of sums of %lld products; both must be at most 2^30", (long long)rows,
           (long long)g->gk);
  for (int d = 0; d < 3; ++d)
    if (g->in[d] * g->in_dil[d] + g->win[d] * g->dil[d] + g->out[d] * g->stride[d] + llabs(g->lo[d]) > 1 << 28)
      REFUSE("positions of x in dimension %d do not fit into 2^28", d);
  return true;
}

bool hk_cu_simt_tile_takes(const hk_cu_simt_tile *t, const hk_geom *g) {
  const bool f32 = g->x_type == HK_F32 && g->f_type == HK_F32;
  return t->sum == g->acc_type && (t->mixed ? t->sum != HK_F32 || !f32 : f32);
}

/* The stride of x from row to row, where rows differ in the image or in the last dimension that has several outputs. */
static int64_t row_stride(const hk_geom *g, bool images) {
  if (images) return llabs(g->x.outer);
  for (int d = 2; d >= 0; --d)
    if (g->out[d] > 1) return llabs(g->x.at[d] * g->stride[d]);
  return llabs(g->x.outer);
}

static int64_t tap_stride(const hk_geom *g) {
  for (int d = 2; d >= 0; --d)
    if (g->win[d] > 1) return llabs(g->x.at[d] * g->dil[d]);
  return INT64_MAX;
}

hk_cu_simt_order hk_cu_simt_order_of(const hk_geom *g) {
  hk_cu_simt_order o;
  o.images_inner = g->n > 1 && row_stride(g, true) < row_stride(g, false);
  o.taps_inner = g->taps > 1 && (g->c == 1 || tap_stride(g) < llabs(g->x.channel));
  const int64_t product = o.taps_inner ? tap_stride(g) : g->c > 1 ? llabs(g->x.channel) : INT64_MAX;
  int64_t f_product = llabs(g->f.channel);
  for (int d = 0; d < 3 && o.taps_inner; ++d)
    if (g->win[d] > 1) f_product = llabs(g->f.at[d]);
  o.x_rows = row_stride(g, o.images_inner) <= product; /* rows are longer than windows */
  o.f_columns = llabs(g->f.outer) < f_product;
  return o;
}

int64_t hk_cu_simt_steps(const hk_geom *g) { return hk_ceil_div(g->gk, HK_SIMT_STEP); }

static int64_t blocks_of(const hk_cu_simt_tile *t, const hk_geom *g) {
  return hk_ceil_div(g->n * g->pixels, t->bm) * hk_ceil_div(g->k, t->bn) * g->groups;
}

size_t hk_cu_simt_partial_bytes(const hk_cu_simt_tile *t, const hk_geom *g, int slices) {
  return slices > 1 ? (size_t)slices * (size_t)(g->n * g->pixels * g->k * g->groups) * hk_type_bytes(t->sum) : 0;
}

int hk_cu_simt_slices(const hk_cu_simt_tile *t, const hk_geom *g, size_t limit) {
  const int64_t most = hk_min64(hk_cu_simt_steps(g) / LEAST_STEPS, MOST_SLICES);
  int64_t slices = hk_max64(1, hk_min64(most, 2 * PROCESSORS / blocks_of(t, g)));
  while (slices > 1 && hk_cu_simt_partial_bytes(t, g, (int)slices) > limit) slices--;
  return (int)slices;
}

/* Runs of 4 channels start at multiples of 16 bytes from the tensor's first element. */
static bool runs(const hk_geom *g, const hk_strides *s, int64_t outer, const int64_t *at) {
  if (g->c % 4 || s->channel != 1 || s->offset % 4 || (g->groups > 1 && s->group % 4) || (outer > 1 && s->outer % 4))
    return false;
  for (int d = 0; d < 3; ++d)
    if (at[d] > 1 && s->at[d] % 4) return false;
  return true;
}

double hk_cu_simt_seconds(const hk_cu_simt_tile *t, const hk_geom *g, int slices, int processors) {
  const double steps = (double)hk_ceil_div(hk_cu_simt_steps(g), slices), tile = (double)t->bm * t->bn;
  const double each = ceil((double)blocks_of(t, g) * slices / processors); /* blocks per SM */
  /* a lone block waits for its loads: 700 clocks per step at least */
  const double pace = runs(g, &g->x, g->n, g->in) ? 1.0 : 1.2; /* loads one by one */
  const double step = fmax(pace * tile * HK_SIMT_STEP / t->rate, 700.0 / fmin(each, 2.0));
  const double clocks = each * (steps * step + 1500.0 + tile * 0.25);
  const double outputs = (double)(g->n * g->pixels * g->k * g->groups);
  const double added = slices > 1 ? 3e-6 + (slices + 1.0) * outputs * (double)hk_type_bytes(t->sum) / 2e12 : 0.0;
  return hk_cu_seconds_of(clocks / CLOCK, g->bytes / 3e12) + added;
}

static void params_make(hk_cu_simt *p, const hk_geom *g, const hk_epi *e, hk_cu_simt_order o) {
  memset(p, 0, sizeof *p);
  hk_cu_direct_state whole;
  hk_cu_direct_params(&whole, g, e);
  p->d = whole.params;
  p->rows = (int)(g->n * g->pixels), p->gk = (int)g->gk;
  p->steps = (int)hk_cu_simt_steps(g);
  p->images_inner = o.images_inner, p->taps_inner = o.taps_inner, p->x_rows = o.x_rows, p->f_columns = o.f_columns;
  const bool f32 = g->x_type == HK_F32 && g->f_type == HK_F32 && !o.taps_inner;
  p->x_vector = f32 && !o.x_rows && runs(g, &g->x, g->n, g->in);
  p->f_vector = f32 && !o.f_columns && runs(g, &g->f, g->k, g->win);
  p->by_n = hk_cu_divisor_make(g->n), p->by_c = hk_cu_divisor_make(g->c), p->by_taps = hk_cu_divisor_make(g->taps);
  for (int d = 0; d < 3; ++d) {
    p->by_out[d] = hk_cu_divisor_make(g->out[d]), p->by_win[d] = hk_cu_divisor_make(g->win[d]);
    p->by_in_dil[d] = hk_cu_divisor_make(g->in_dil[d]);
    p->dilated |= g->in_dil[d] > 1;
  }
}

hk_status hk_cu_simt_build(hk_cu_simt_state *s, const hk_cu_simt_tile *t, const hk_geom *g, const hk_epi *e,
                           hk_cu_simt_order order, int slices) {
  memset(s, 0, sizeof *s);
  params_make(&s->params, g, e, order);
  s->tile = t;
  s->params.tiles_m = (int)hk_ceil_div(g->n * g->pixels, t->bm), s->params.tiles_n = (int)hk_ceil_div(g->k, t->bn);
  s->params.slices = slices;
  s->blocks = blocks_of(t, g) * slices;
  s->add_blocks = hk_min64(hk_ceil_div(s->params.d.outputs, 256), PROCESSORS * 16);
  const int shared = HK_SIMT_SMEM(t->bm, t->bn, (int)hk_type_bytes(t->sum));
  const hk_status status = hk_cu_kernel_find(t->image, t->name, shared, &s->kernel);
  return status || slices == 1 ? status : hk_cu_kernel_find(t->image, t->slices, 0, &s->add);
}

hk_status hk_cu_simt_run(const hk_cu_simt_state *s, const hk_cu_call *call, const void *slopes,
                         const int32_t *f_zeros) {
  hk_cu_simt p = s->params;
  hk_cu_epi *e = &p.d.e;
  p.d.x = call->x, p.d.f = call->f;
  e->y = call->y, e->c = call->c, e->scale = call->scale, e->bias = call->bias, e->user = call->user;
  e->slopes = slopes, e->f_zeros = f_zeros;
  p.x_vector &= !hk_cu_misaligned(call->x), p.f_vector &= !hk_cu_misaligned(call->f);
  p.partial = p.slices > 1 ? call->workspace : NULL;
  const int shared = HK_SIMT_SMEM(s->tile->bm, s->tile->bn, (int)hk_type_bytes(s->tile->sum));
  const hk_status status = hk_cu_kernel_run(s->kernel, s->blocks, HK_SIMT_THREADS, 1, shared, call->stream, &p);
  if (status || p.slices == 1) return status;
  return hk_cu_kernel_run(s->add, s->add_blocks, 256, 1, 0, call->stream, &p);
}
