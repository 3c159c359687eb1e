/* Host side of the wgmma kernels: parameters are made once, pointers are bound per call. A run copies the
 * parameters, fills in the addresses and launches: no allocation, no synchronisation, legal under graph capture. */
#include "cuda/cuda.h"

#include <math.h>
#include <string.h>

static int64_t k_blocks(const hk_cu_row *r, const hk_geom *g) {
  return hk_ceil_div(g->c * (int64_t)hk_type_bytes(r->type), 128) * g->taps;
}
static int64_t tiles_n(const hk_cu_row *r, const hk_geom *g) { return hk_ceil_div(g->k, r->bn) * g->groups; }

/* The last run of channels may fill at most half of its 128 bytes; its k blocks come last. */
static int whole_blocks(const hk_cu_row *r, const hk_geom *g) {
  const int64_t run = 128 / (int64_t)hk_type_bytes(r->type), tail = g->c % run;
  return (int)(k_blocks(r, g) - (tail && tail <= run / 2 ? g->taps : 0));
}

size_t hk_cu_igemm_filter_bytes(const hk_cu_row *r, const hk_geom *g) {
  return (size_t)(tiles_n(r, g) * k_blocks(r, g) * r->bn * r->parts * 128);
}

/* Whether runs of 8 channels of y (or of the residual) are 16-byte aligned at every pixel. */
static bool rows_vector(const hk_geom *g, const hk_strides *s, int64_t channels_a_group) {
  const int64_t all[] = {s->outer * (g->n > 1), s->at[0] * (g->out[0] > 1), s->at[1] * (g->out[1] > 1),
                         s->at[2] * (g->out[2] > 1), s->group * (g->groups > 1)};
  if (s->channel != 1) return false;
  for (int i = 0; i < HK_COUNT(all); ++i)
    if (all[i] % 8) return false;
  return g->groups == 1 || channels_a_group % 8 == 0;
}

void hk_cu_pack_make(hk_cu_images *to, const hk_cu_row *row, const hk_geom *g, const hk_epi *e,
                     const hk_cu_filters *f) {
  hk_cu_pack *p = &to->pack;
  memset(to, 0, sizeof *to);
  p->view = (hk_cu_view){0, g->f.group, g->f.outer, g->f.channel, {g->f.at[0], g->f.at[1], g->f.at[2]}};
  p->cg = f->channels, p->kg = g->k;
  p->fold = (int)(f->fold[0] * f->fold[1] * f->fold[2]), p->fold_run = (int)f->fold_run;
  if (f->groups != g->groups)
    p->join_c = (int)(f->channels * g->groups / f->groups), p->join_k = (int)(g->k * g->groups / f->groups);
  for (int d = 0; d < 3; ++d) p->win[d] = g->win[d], p->fold_win[d] = (int)f->fold[d];
  p->bn = row->bn;
  p->group_tiles_n = (int)hk_ceil_div(g->k, row->bn);
  p->k_blocks = to->halves = (int)k_blocks(row, g);
  p->parts = row->parts;
  p->blocks = tiles_n(row, g) * p->k_blocks * row->bn * row->parts;
  p->f_type = g->f_type, p->to_type = row->type;
  p->gate = e->e.gate != HK_GATE_NONE;
}

/* Whether a 16-bit y can be stored two pixels at a time: pairs straddle neither images nor 4-byte words. */
static bool rows_pair(const hk_geom *g, const hk_strides *s, int bytes) {
  const int64_t at[] = {s->at[1] * (g->out[1] > 1), s->at[0] * (g->out[0] > 1), s->outer * (g->n > 1), s->channel,
                        s->group * (g->groups > 1)};
  if (s->at[2] != 1) return false;
  for (int i = 0; i < HK_COUNT(at) && bytes == 2; ++i)
    if (at[i] % 2) return false;
  return bytes == 4 || g->out[2] % 2 == 0 ||
         (g->pixels % 2 == 0 && (g->out[1] == 1 || s->at[1] == g->out[2]) &&
          (g->out[0] == 1 || s->at[0] == g->out[1] * g->out[2]));
}

/* Whether pixel m is at m times a stride that TMA accepts. */
static bool rows_even(const hk_geom *g, const hk_strides *s) {
  return hk_cu_is_linear(g, s) && s->at[2] > 0 && s->at[2] % 8 == 0 && (g->groups == 1 || s->group > 0);
}

/* Whether TMA's im2col mode addresses y: positive strides of 16-byte multiples below 2^40, one group. */
static bool rows_pixels(const hk_geom *g, const hk_strides *s) {
  const int64_t size[] = {g->out[2], g->out[1], g->out[0], g->n}, at[] = {s->at[2], s->at[1], s->at[0], s->outer};
  if (g->groups > 1) return false;
  for (int i = 0; i < HK_COUNT(size); ++i)
    if (size[i] > 1 && (at[i] <= 0 || at[i] % 8 || at[i] >= (int64_t)1 << 37)) return false;
  return true;
}

/* Alignment in pixels, 8 or 4, of 16-bit planes of contiguous pixels, else 0. */
static int planes_even(const hk_geom *g, const hk_strides *s) {
  const int64_t all[] = {s->channel, s->group * (g->groups > 1), s->outer * (g->n > 1), g->pixels};
  if (hk_type_bytes(g->y_type) != 2 || s->at[2] != 1 || (g->out[1] > 1 && s->at[1] != g->out[2]) ||
      (g->out[0] > 1 && s->at[0] != g->out[1] * g->out[2]))
    return 0;
  int64_t any = 0;
  for (int i = 0; i < HK_COUNT(all); ++i) any |= all[i];
  return any % 8 == 0 ? 8 : any % 4 == 0 ? 4 : 0;
}

/* Decides whether finish_wide.cuh supports y: f32 or the operands' 16-bit type (bf16 for f32 and e4m3 operands), the
 * activations that it implements, and only clamps after a residual. A split tile is finished in runs of 8 and
 * supports any activation. */
static void wide_make(hk_cu_igemm *p, const hk_cu_row *row, const hk_geom *g, const hk_epi *e, bool unaligned) {
  const hk_type narrow = row->type == HK_F16 ? HK_F16 : HK_BF16;
  const hk_act act = e->e.act;
  const bool clamp = act == HK_ACT_RELU || act == HK_ACT_CLIP || act == HK_ACT_HARDTANH;
  const bool runs = p->vector && g->k % 8 == 0;
  const bool last = e->e.cuda_user2 || e->e.cuda_store; /* implemented by slabs only */
  const bool user = last || e->e.cuda_user;
  p->wide = !e->e.gate && act != HK_ACT_PRELU;
  if (row->split > 1) {
    p->wide = p->wide && runs && !user && (g->y_type == HK_F32 || g->y_type == HK_F16 || g->y_type == HK_BF16);
    return;
  }
  p->slab = runs && rows_even(g, &g->y) && (!e->e.residual || rows_even(g, &e->c));
  if (!p->slab && runs && !e->e.residual && rows_pixels(g, &g->y)) p->slab = 2;
  p->transposed = !p->slab && !unaligned && !last && !e->e.residual ? planes_even(g, &g->y) : 0;
  p->strip = !p->slab && !p->transposed && !last && !e->e.residual && hk_cu_row_strips(row) && g->groups == 1 &&
             g->k <= row->bn && g->y.channel == 1 && hk_type_bytes(g->y_type) == 2 && hk_cu_is_linear(g, &g->y) &&
             g->y.at[2] == g->k;
  if (p->strip && g->k >= 8) p->strip = 2; /* by 16-byte pieces, for an aligned y */
  p->slim = !p->slab && !p->transposed && !p->strip && !last && !e->e.residual && g->y.channel == 1;
  p->tall = p->slab || p->transposed || p->strip || p->slim || last || e->e.residual || g->y.at[2] != 1 ? 0
            : rows_pair(g, &g->y, (int)hk_type_bytes(g->y_type))                                        ? 2
                                                                                                        : 1;
  p->late = clamp && e->e.residual == HK_RESIDUAL_BEFORE;
  p->late_lo = act == HK_ACT_RELU ? 0 : p->e.a;
  p->late_hi = act == HK_ACT_RELU ? INFINITY : p->e.b;
  if (!p->slab && !p->transposed && !p->strip && !p->tall && !p->slim) p->wide = 0;
  if (g->y_type != HK_F32 && g->y_type != narrow) p->wide = 0;
  if (act == HK_ACT_SOFTSIGN || (act == HK_ACT_GELU && g->y_type == HK_F32)) p->wide = 0;
  if (act && e->e.residual == HK_RESIDUAL_BEFORE && !p->late) p->wide = 0;
  p->slab = p->wide ? p->slab : 0;
  p->transposed = p->wide ? p->transposed : 0;
  p->strip = p->wide ? p->strip : 0;
}

/* Blocks of a launch: all that fit at once, or one per tile if there are fewer. */
static hk_status grid(hk_cu_igemm_state *s) {
  const hk_cu_row *r = s->row;
  const int cluster = hk_cu_row_cluster(r), threads = 128 * (r->nc + 1);
  hk_cu_device here;
  const hk_status status = hk_cu_here(&here);
  if (status) return status;
  int slots = here.processors;
  if (cluster > 1) slots = hk_cu_max_clusters(s->kernel, threads, cluster, hk_cu_row_shared(r));
  if (slots < 1) return hk_fail(HK_DEVICE, "device: a cluster of %d blocks does not fit on the device", cluster);
  const int64_t units = hk_ceil_div(s->params.product.tiles_m, r->cm) * hk_ceil_div(s->params.product.tiles_n, r->cn);
  s->blocks = hk_min64(slots, units) * cluster;
  return HK_OK;
}

static bool vector_of(const hk_geom *g, const hk_epi *e, bool unaligned) {
  return !unaligned && !g->fold && rows_vector(g, &g->y, g->k) && (!e->e.residual || rows_vector(g, &e->c, g->k));
}

hk_cu_finish hk_cu_igemm_finish(const hk_cu_row *row, const hk_geom *g, const hk_epi *e, bool unaligned) {
  hk_cu_igemm p;
  memset(&p, 0, sizeof p);
  p.vector = vector_of(g, e, unaligned);
  wide_make(&p, row, g, e, unaligned);
  return !p.wide          ? HK_FINISH_ANY
         : row->split > 1 ? HK_FINISH_SPLIT
         : p.slab         ? HK_FINISH_SLAB
         : p.transposed   ? HK_FINISH_TRANSPOSED
         : p.strip        ? HK_FINISH_STRIP
         : p.slim         ? HK_FINISH_SLIM
                          : HK_FINISH_TALL;
}

/* Strips may end anywhere: where tiles would fill their last wave badly, all take fewer pixels, a multiple of 8, so
 * that 16-bit strips stay aligned. */
int hk_cu_igemm_step(const hk_cu_row *row, const hk_geom *g, hk_cu_finish finish, int processors) {
  const int64_t bm = hk_cu_row_bm(row), all = hk_max64(1, processors);
  const int64_t waves = hk_max64(1, hk_ceil_div(hk_ceil_div(g->gm, bm), all));
  return (int)(finish == HK_FINISH_STRIP ? hk_min64(bm, hk_round_up(hk_ceil_div(g->gm, waves * all), 8)) : bm);
}

hk_status hk_cu_igemm_build(hk_cu_igemm_state *s, const hk_cu_row *row, const hk_geom *g, const hk_epi *e,
                            const hk_cu_filters *filters, hk_cu_igemm_way way) {
  hk_cu_map map;
  char why[HK_CU_REASON];
  hk_status status;
  memset(s, 0, sizeof *s);
  if (!hk_cu_row_takes(row, g, e, why) || !hk_cu_map_make(g, &map, why))
    return hk_fail(HK_UNSUPPORTED, "wgmma: %s", why);
  /* the two parts are made from unrounded f32: TMA must not round to tf32 */
  if (row->parts == 2) map.type = HK_CU_MAP_F32;
  s->row = row;
  hk_cu_igemm *p = &s->params.product;
  hk_cu_geom_make(g, e, &p->g);
  hk_cu_epi_make(e, &p->e);
  p->load = map.load;
  p->gm = g->gm;
  p->group_tiles_n = (int)hk_ceil_div(g->k, row->bn);
  p->tiles_n = (int)tiles_n(row, g);
  p->k_blocks = (int)k_blocks(row, g);
  p->splits = row->split;
  p->whole_blocks = whole_blocks(row, g);
  for (int d = 0; d < 3; ++d) p->by_out[d] = hk_cu_divisor_make(g->out[d]);
  p->by_wide = hk_cu_divisor_make(hk_ceil_div(p->tiles_n, row->cn));
  p->by_group = hk_cu_divisor_make(p->group_tiles_n);
  p->by_k = hk_cu_divisor_make(g->k);
  p->y_linear = hk_cu_is_linear(g, &g->y);
  p->c_linear = hk_cu_is_linear(g, &e->c);
  p->k_inner = g->y.channel == 1;
  p->vector = vector_of(g, e, way.unaligned);
  wide_make(p, row, g, e, way.unaligned);
  s->params.step = way.step;
  s->params.chain = way.chain;
  s->params.fold = (int)g->fold, s->params.fold_step = g->fold_step;
  p->tiles_m = (int)hk_ceil_div(g->gm, s->params.step);
  hk_cu_pack_make(&s->packing, row, g, e, filters);
  if (HK_IGEMM_HALVES(row->type == HK_F8E4M3 ? HK_CU_F8 : HK_CU_BF16, row->parts, row->cm, row->cn))
    s->packing.halves = p->whole_blocks;
  const bool user = e->e.cuda_user || e->e.cuda_user2 || e->e.cuda_store;
  status = user ? hk_cu_user_kernel(row->name, &e->e, hk_cu_row_shared(row), &s->lib, &s->kernel)
                : hk_cu_kernel_find(row->image, row->name, hk_cu_row_shared(row), &s->kernel);
  if (!status) status = hk_cu_pack_find(&s->packing, &s->pack);
  if (!status) status = hk_cu_map_encode(&map, s->params.step / row->cn, false, &p->xmap);
  if (!status && s->packing.halves < p->k_blocks)
    status = hk_cu_map_encode(&map, s->params.step, true, &s->params.xhalf);
  if (!status && p->slab == 1) status = hk_cu_map_encode_rows(g, &g->y, row->bn, hk_cu_row_slot(row), &p->ymap);
  if (!status && p->slab == 2) status = hk_cu_map_encode_pixels(g, &g->y, row->bn, hk_cu_row_slot(row), &p->ymap);
  if (!status && p->slab && e->e.residual)
    status = hk_cu_map_encode_rows(g, &e->c, row->bn, hk_cu_row_slot(row), &s->params.cmap);
  return status ? status : grid(s);
}

void hk_cu_igemm_free(hk_cu_igemm_state *s) {
  if (s->lib) hk_cu()->lib_unload(s->lib);
  s->lib = NULL;
}

/* Whether hk_pack_pieces packs them: 16 bits as they are, in rows of taps and channels. */
static bool by_pieces(const hk_cu_images *p) {
  const hk_cu_pack *k = &p->pack;
  return (k->to_type == HK_CU_BF16 || k->to_type == HK_CU_F16) && k->f_type == k->to_type && k->parts == 1 &&
         !k->gate && !k->fold && !k->join_k && p->apart <= 1 && k->blocks < INT32_MAX / 16;
}

hk_status hk_cu_pack_find(const hk_cu_images *p, hk_cu_kernel *kernel) {
  return hk_cu_kernel_find("pack", by_pieces(p) ? "hk_pack_pieces" : "hk_pack_filters", 0, kernel);
}

hk_status hk_cu_igemm_pack(const hk_cu_igemm_state *s, const void *f, void *to, void *stream) {
  hk_cu_images p = s->packing;
  p.pack.f = f;
  p.pack.out = to;
  const int64_t blocks =
      by_pieces(&p) ? hk_ceil_div(p.pack.blocks * 8, 256) : hk_min64(hk_ceil_div(p.pack.blocks * 32, 256), 132 * 16);
  return hk_cu_kernel_run(s->pack, blocks, 256, 1, 0, stream, &p);
}

hk_status hk_cu_igemm_run(const hk_cu_igemm_state *s, const hk_cu_call *call, const void *slopes) {
  hk_cu_launch all = s->params;
  hk_cu_igemm *p = &all.product;
  if (hk_cu_misaligned(call->x)) return hk_cu_unaligned("x", call->x);
  if (p->tall == 2 && (uintptr_t)call->y % 4) p->tall = 1;
  if (p->strip == 2 && hk_cu_misaligned(call->y)) p->strip = 1;
  const bool pieces = p->vector || p->transposed;
  if (pieces && hk_cu_misaligned(call->y)) return hk_cu_unaligned("y", call->y);
  if (pieces && p->e.residual && hk_cu_misaligned(call->c)) return hk_cu_unaligned("c", call->c);
  p->filters = call->f;
  p->e.y = call->y, p->e.c = call->c;
  p->e.scale = call->scale, p->e.bias = call->bias, p->e.slopes = slopes, p->e.user = call->user;
  all.pairs = ((uintptr_t)call->scale | (uintptr_t)call->bias) % 8 == 0;
  hk_status status =
      hk_cu_check(hk_cu()->map_replace(&p->xmap, (void *)(uintptr_t)call->x), "setting the address of a tensor map");
  if (!status && s->packing.halves < p->k_blocks)
    status = hk_cu_check(hk_cu()->map_replace(&all.xhalf, (void *)(uintptr_t)call->x),
                         "setting the address of a tensor map");
  /* y may be NULL when a user function stores */
  if (!status && p->slab && call->y)
    status = hk_cu_check(hk_cu()->map_replace(&p->ymap, call->y), "setting the address of a tensor map");
  if (!status && p->slab && p->e.residual)
    status =
        hk_cu_check(hk_cu()->map_replace(&all.cmap, (void *)(uintptr_t)call->c), "setting the address of a tensor map");
  if (status) return status;
  return hk_cu_kernel_run_pdl(s->kernel, s->blocks, 128 * (s->row->nc + 1), hk_cu_row_cluster(s->row),
                              hk_cu_row_shared(s->row), call->stream, &all);
}
