/* Host side of the filter-gradient kernels: the problem as a forward convolution, parameters made once, pointers bound
 * per call. A run copies the parameters, fills in the addresses and launches once or twice. */
#include "cuda/gradient/outer.h"

#include <stdio.h>
#include <string.h>

#define REFUSE(...) return snprintf(why, HK_CU_REASON, __VA_ARGS__), false

static bool types_fit(const hk_geom *g, const hk_epi *e, char *why) {
  if (g->x_type != g->f_type || (g->x_type != HK_BF16 && g->x_type != HK_F16))
    REFUSE("x and f must both be bf16 or f16, they are %s and %s", hk_type_name(g->x_type), hk_type_name(g->f_type));
  if (g->y_type != HK_F32 && g->y_type != HK_BF16 && g->y_type != HK_F16)
    REFUSE("y is %s; f32, bf16 and f16 are supported", hk_type_name(g->y_type));
  if (e->e.gate || e->e.cuda_user || e->e.cuda_user2 || e->e.cuda_store)
    REFUSE("gates and user functions are not supported");
  if (!g->gm || !g->gn || !g->gk) REFUSE("the problem has no products: a size is 0");
  return true;
}

/* Images, and with them channels, must be what is contiguous in x, output channels in f. */
static bool layout_fits(const hk_geom *g, char *why) {
  if (g->x.outer != 1 && g->n > 1)
    REFUSE("the images of x must be contiguous, as the channels of a filter gradient are; their stride is %lld",
           (long long)g->x.outer);
  if (g->f.outer != 1 && g->k > 1)
    REFUSE("the output channels of f must be contiguous, as those of dy are; their stride is %lld",
           (long long)g->f.outer);
  if (g->groups > 1 && (g->x.group != g->n || g->f.group != g->k))
    REFUSE("groups must be contiguous in x and f: strides %lld and %lld, not %lld and %lld", (long long)g->x.group,
           (long long)g->f.group, (long long)g->n, (long long)g->k);
  if (g->f.offset * (int64_t)hk_type_bytes(g->f_type) % 16)
    REFUSE("f.offset = %lld must be a multiple of 16 bytes", (long long)g->f.offset);
  return true;
}

/* The forward convolution: its channels are the images of g, its images the channels, its window y's positions. */
static hk_geom forward_geom(const hk_geom *g) {
  hk_geom to = *g;
  to.n = g->c, to.c = g->n * g->groups;
  to.groups = 1, to.batch_grouped = false;
  to.x.outer = g->x.channel, to.x.channel = 1, to.x.group = 0;
  to.pixels = to.taps = 1;
  for (int d = 0; d < 3; ++d) {
    to.out[d] = g->win[d], to.win[d] = g->out[d];
    to.stride[d] = g->dil[d], to.dil[d] = g->stride[d];
    /* windows end where the last one does */
    to.hi[d] = (to.out[d] - 1) * to.stride[d] + (to.win[d] - 1) * to.dil[d] - to.lo[d] - to.in[d] + 1;
    to.pixels *= to.out[d], to.taps *= to.win[d];
  }
  to.gm = to.n * to.pixels;
  return to;
}

static hk_geom dy_geom(const hk_geom *g) {
  hk_geom to = *g;
  to.n = g->c, to.c = g->k * g->groups;
  to.groups = 1, to.batch_grouped = false;
  to.x = g->f;
  to.x.outer = g->f.channel, to.x.channel = 1, to.x.group = 0;
  to.pixels = g->taps, to.taps = 1;
  for (int d = 0; d < 3; ++d) {
    to.in[d] = to.in_span[d] = to.out[d] = g->win[d];
    to.win[d] = to.stride[d] = to.dil[d] = to.in_dil[d] = 1;
    to.lo[d] = to.hi[d] = 0;
  }
  to.gm = to.n * to.pixels;
  return to;
}

/* Whether runs of `count` columns are adjacent channels of y, at addresses that are multiples of the run. */
static bool runs_of(const hk_geom *g, int64_t count) {
  const int64_t all[] = {g->y.group * (g->groups > 1), g->y.channel * (g->k > 1),    g->y.at[0] * (g->out[0] > 1),
                         g->y.at[1] * (g->out[1] > 1), g->y.at[2] * (g->out[2] > 1), g->n};
  if (g->y.outer != 1) return false;
  for (int i = 0; i < HK_COUNT(all); ++i)
    if (all[i] % count) return false;
  return true;
}

/* What the padding takes is not loaded. */
static double inside_share(const hk_geom *to) {
  double share = 1;
  for (int d = 0; d < 3; ++d) {
    int64_t inside = 0;
    for (int64_t tap = 0; tap < to->win[d]; ++tap) {
      const int64_t at = tap * to->dil[d] - to->lo[d], left = to->in[d] - at;
      const int64_t from = at < 0 ? hk_ceil_div(-at, to->stride[d]) : 0;
      const int64_t end = left > 0 ? hk_min64(to->out[d], hk_ceil_div(left, to->stride[d])) : 0;
      inside += hk_max64(0, end - from);
    }
    share *= (double)inside / ((double)to->out[d] * (double)to->win[d]);
  }
  return share;
}

/* Bytes of x that windows shorter than their stride skip. */
static double skipped_bytes(const hk_geom *to) {
  double all = (double)to->n * (double)to->c * (double)hk_type_bytes(to->x_type), read = 1;
  for (int d = 0; d < 3; ++d) {
    all *= (double)to->in[d];
    if (to->win[d] < to->stride[d]) read *= (double)to->win[d] / (double)to->stride[d];
  }
  return all * (1 - read);
}

bool hk_cu_outer_shape_make(const hk_geom *g, const hk_epi *e, hk_cu_outer_shape *s, char *why) {
  char reason[HK_CU_REASON];
  hk_cu_map map;
  memset(s, 0, sizeof *s);
  if (!types_fit(g, e, why) || !layout_fits(g, why)) return false;
  s->x = forward_geom(g);
  s->f = dy_geom(g);
  if (!hk_cu_map_make(&s->x, &map, why)) return false;
  if (!hk_cu_map_make(&s->f, &map, reason)) REFUSE("f, read as x is: %.120s", reason);
  s->join = hk_max64(1, hk_min64(g->groups, 64 / hk_max64(g->n, g->k)));
  s->groups = hk_ceil_div(g->groups, s->join);
  s->rows = s->join * g->k;
  s->chunks = hk_ceil_div(s->join * g->n, 64);
  if ((double)s->rows * (double)s->chunks * 64 * (double)s->x.taps * (double)s->groups > 0x1p30)
    REFUSE("y has more than 2^30 elements, padded to whole blocks of 64 channels");
  s->columns = s->chunks * 64 * s->x.taps;
  s->pixels = s->x.gm;
  s->plain = !e->e.act;
  for (int d = 0; d < 3; ++d) s->leaves |= hk_geom_leaves(g, d);
  s->bytes = g->bytes - skipped_bytes(&s->x);
  s->inside = inside_share(&s->x);
  s->bare = s->plain && !e->e.scale && !e->e.bias && !e->e.residual && g->n >= 32 && runs_of(g, 4);
  return true;
}

static void strip_make(hk_cu_outer *p, const hk_cu_outer_row *r, const hk_cu_outer_shape *s) {
  const hk_cu_outer_strip strip = hk_cu_outer_strip_make(r, s);
  p->strip = 1;
  p->again = 1; /* pixels past the end of a line meet zeros of dy */
  p->wide = (int)strip.wide, p->lines = (int)strip.lines, p->pieces = (int)strip.pieces;
  p->x_wide = (int)strip.x_wide, p->x_line = (int)strip.x_line;
  p->stages = (int)strip.stages, p->stage_bytes = (int)strip.stage_bytes;
  p->by_pieces = hk_cu_divisor_make(p->pieces);
}

/* A map of all pixels as they lie, by pieces of a line of so many. */
static hk_status encode_lines(const hk_geom *g, int64_t pixels, hk_cu_tmap *to) {
  enum { UINT16 = 1, INTERLEAVE_NONE = 0, SWIZZLE_128 = 3, PROMOTE_256 = 3, FILL_ZERO = 0 };
  static const unsigned steps[5] = {1, 1, 1, 1, 1};
  const uint64_t dims[5] = {(uint64_t)g->c, (uint64_t)g->in[2], (uint64_t)g->in[1], (uint64_t)g->in[0], (uint64_t)g->n};
  const int64_t step[4] = {g->x.at[2], g->x.at[1], g->x.at[0], g->x.outer};
  const unsigned box[5] = {64, (unsigned)pixels, 1, 1, 1};
  uint64_t strides[4];
  /* the stride of a dimension of size 1 is never used; any legal value will do */
  for (int i = 0; i < 4; ++i) strides[i] = (uint64_t)(dims[i + 1] == 1 ? hk_round_up(g->c * 2, 16) : step[i] * 2);
  if (!hk_cu()) return HK_DEVICE;
  return hk_cu_check(hk_cu()->map_tiled(to, UINT16, 5, (void *)(uintptr_t)4096, dims, strides, box, steps,
                                        INTERLEAVE_NONE, SWIZZLE_128, PROMOTE_256, FILL_ZERO),
                     "encoding a tensor map of lines");
}

static void params_make(hk_cu_outer *p, const hk_cu_outer_row *r, const hk_geom *g, const hk_epi *e,
                        const hk_cu_outer_shape *s, int64_t slices) {
  hk_cu_geom_make(g, e, &p->g);
  hk_cu_epi_make(e, &p->e);
  p->k_blocks = (int)hk_cu_outer_blocks(r, s), p->slices = (int)slices;
  p->groups = (int)s->groups, p->join = (int)s->join;
  p->rows = (int)s->rows, p->columns = (int)s->columns, p->chunks = (int)s->chunks;
  p->x_step = (int)(s->join * g->n), p->f_step = (int)(s->join * g->k);
  p->tiles_m = (int)hk_ceil_div(hk_ceil_div(s->rows, hk_cu_outer_row_m(r)), r->cm);
  p->tiles_n = (int)hk_ceil_div(hk_ceil_div(s->columns, hk_cu_outer_row_n(r)), r->cn);
  p->again = s->leaves;
  p->pairs = runs_of(g, 2), p->quads = runs_of(g, 4);
  p->teams = slices >= 32 ? 8 : slices >= 16 ? 4 : slices >= 8 ? 2 : 1;
  for (int d = 0; d < 3; ++d) {
    p->by_out[d] = hk_cu_divisor_make(s->x.out[d]);
    p->stride[d] = (int)s->x.stride[d], p->dil[d] = (int)s->x.dil[d], p->lo[d] = (int)s->x.lo[d];
  }
  if (r->strip) strip_make(p, r, s);
  p->by_m = hk_cu_divisor_make(p->tiles_m), p->by_n = hk_cu_divisor_make(p->tiles_n);
  p->by_groups = hk_cu_divisor_make(p->groups), p->by_chunks = hk_cu_divisor_make(p->chunks);
  p->by_taps[0] = hk_cu_divisor_make(s->x.win[1]), p->by_taps[1] = hk_cu_divisor_make(s->x.win[2]);
  p->by_kg = hk_cu_divisor_make(g->k), p->channels = (int)g->n;
}

/* Blocks of a launch: all that fit at once, or one per unit if there are fewer. */
static hk_status grid(hk_cu_outer_state *s, const hk_cu_outer_shape *shape) {
  const hk_cu_outer_row *r = s->row;
  const int cluster = hk_cu_outer_row_cluster(r), threads = 128 * (r->wm * r->wn + 1);
  hk_cu_device here;
  const hk_status status = hk_cu_here(&here);
  if (status) return status;
  int slots = here.processors;
  if (cluster > 1) slots = hk_cu_max_clusters(s->kernel, threads, cluster, s->shared);
  if (slots < 1) return hk_fail(HK_DEVICE, "device: a cluster of %d blocks does not fit on the device", cluster);
  s->blocks = hk_min64(slots, hk_cu_outer_units(r, shape) * s->params.slices) * cluster;
  const int64_t quads = shape->groups * shape->rows * (shape->columns / 4);
  s->sum_blocks = hk_ceil_div(quads, HK_OUTER_ADDERS / s->params.teams);
  return HK_OK;
}

hk_status hk_cu_outer_build(hk_cu_outer_state *s, const hk_cu_outer_row *r, const hk_geom *g, const hk_epi *e,
                            int64_t slices) {
  hk_cu_outer_shape shape;
  hk_cu_map x, f;
  char why[HK_CU_REASON];
  memset(s, 0, sizeof *s);
  if (!hk_cu_outer_shape_make(g, e, &shape, why) || !hk_cu_map_make(&shape.x, &x, why) ||
      !hk_cu_map_make(&shape.f, &f, why))
    return hk_fail(HK_UNSUPPORTED, "wgmma_outer: %s", why);
  s->row = r;
  s->shared = hk_cu_outer_row_shared(r, &shape);
  s->added = hk_cu_outer_bytes(&shape, slices) > 0;
  params_make(&s->params, r, g, e, &shape, slices);
  s->params.x_load = x.load, s->params.f_load = f.load;
  hk_status status = hk_cu_kernel_find(r->image, r->name, s->shared, &s->kernel);
  if (!status) status = hk_cu_kernel_find("outer_sum", "hk_outer_sum", 0, &s->sum);
  if (!status && r->strip) {
    status = encode_lines(&shape.x, s->params.x_wide, &s->params.xmap);
    if (!status) status = encode_lines(&shape.f, s->params.wide, &s->params.fmap);
  } else if (!status) {
    status = hk_cu_map_encode(&x, r->px, false, &s->params.xmap);
    if (!status) status = hk_cu_map_encode(&f, r->px, false, &s->params.fmap);
  }
  return status ? status : grid(s, &shape);
}

hk_status hk_cu_outer_run(const hk_cu_outer_state *s, const hk_cu_call *call, const void *slopes) {
  hk_cu_outer p = s->params;
  const uintptr_t unit = (uintptr_t)(p.g.y_type == HK_CU_F32 ? 4 : 2);
  if (hk_cu_misaligned(call->x)) return hk_cu_unaligned("x", call->x);
  if (hk_cu_misaligned(call->f)) return hk_fail(HK_INVALID, "args.f: %p is not 16-byte aligned", call->f);
  p.x = call->x, p.f = call->f, p.sums = s->added ? call->workspace : NULL;
  p.e.y = call->y, p.e.c = call->c;
  p.e.scale = call->scale, p.e.bias = call->bias, p.e.slopes = slopes;
  if ((uintptr_t)call->y % (2 * unit)) p.pairs = 0;
  if ((uintptr_t)call->y % (4 * unit)) p.quads = 0;
  hk_status status =
      hk_cu_check(hk_cu()->map_replace(&p.xmap, (void *)(uintptr_t)call->x), "setting the address of a tensor map");
  if (!status)
    status =
        hk_cu_check(hk_cu()->map_replace(&p.fmap, (void *)(uintptr_t)call->f), "setting the address of a tensor map");
  if (!status)
    status = hk_cu_kernel_run_pdl(s->kernel, s->blocks, 128 * (s->row->wm * s->row->wn + 1),
                                  hk_cu_outer_row_cluster(s->row), s->shared, call->stream, &p);
  if (status || !s->added) return status;
  return hk_cu_kernel_run_pdl(s->sum, s->sum_blocks, HK_OUTER_ADDERS, 1, 0, call->stream, &p);
}
