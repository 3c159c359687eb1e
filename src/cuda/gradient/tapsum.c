/* Host side of the tapsum kernels: what all of them need, and the launches. */
#include "cuda/gradient/tapsum.h"

#include <stdio.h>
#include <string.h>

#define MAX_POINTS 4 /* positions of y per position of the window, at most */

static bool refuse(char *why, const char *reason) {
  snprintf(why, HK_CU_REASON, "%s", reason);
  return false;
}

static bool float_type(hk_type t) { return t == HK_F32 || t == HK_F16 || t == HK_BF16; }

/* Whether positions of dimension d fit the kernels' 32 bits. */
static bool fits(const hk_geom *g, int d) {
  const int64_t most = INT32_MAX / 4;
  if (g->in[d] > most || g->win[d] > most || g->out[d] > most || g->in_span[d] > most) return false;
  if (g->stride[d] > most || g->dil[d] > most || g->lo[d] > most || g->lo[d] < -most) return false;
  return (g->win[d] - 1) * g->dil[d] < most && (g->out[d] - 1) * g->stride[d] < most;
}

static bool supported(const hk_geom *g, const hk_epi *e, char *why) {
  const int64_t most = INT32_MAX / 4;
  if (!float_type(g->x_type) || !float_type(g->f_type) || g->acc_type != HK_F32)
    return refuse(why, "x and f must be f32, f16 or bf16");
  if (e->e.gate || e->e.cuda_user || e->e.cuda_user2 || e->e.cuda_store)
    return refuse(why, "takes no gate and no user functions");
  if (g->gk == 0 || g->gm == 0 || g->k == 0) return refuse(why, "x, f or y is empty");
  if (g->taps * MAX_POINTS < g->pixels) return refuse(why, "y has more than 4 positions per position of the window");
  if (!fits(g, 0) || !fits(g, 1) || !fits(g, 2) || g->gk > most || g->gm > most / g->k / g->groups)
    return refuse(why, "sizes must fit 29 bits");
  return true;
}

const char *hk_cu_tapsum_type(const hk_geom *g) {
  if (g->x_type != g->f_type) return NULL;
  return g->x_type == HK_F32 ? "f32" : g->x_type == HK_F16 ? "f16" : g->x_type == HK_BF16 ? "bf16" : NULL;
}

bool hk_cu_tapsum_whole(const hk_geom *g, const hk_strides *s, const int64_t *size, int64_t unit) {
  bool whole = s->offset % unit == 0 && (g->c == 1 || s->channel % unit == 0);
  for (int d = 0; d < 3; d++) whole &= size[d] == 1 || s->at[d] % unit == 0;
  return whole;
}

int64_t hk_cu_tapsum_slices(const hk_geom *g, int64_t wanted, int64_t units) {
  const double inputs = g->bytes / 2, outputs = (double)(g->gm * g->k * g->groups) * sizeof(float);
  const int64_t most = (int64_t)(inputs / outputs); /* partial sums are written and read */
  return hk_max64(1, hk_min64(hk_min64(wanted, hk_max64(most, 8)), units));
}

static void params_make(const hk_geom *g, const hk_epi *e, hk_cu_tapsum *p) {
  memset(p, 0, sizeof *p);
  hk_cu_geom_make(g, e, &p->d.g);
  hk_cu_epi_make(e, &p->d.e);
  p->outputs = (int)(g->gm * g->k * g->groups);
  p->d.outputs = p->outputs;
  p->taps = (int)g->pixels;
  p->rows = (int)(g->c * g->win[0] * g->win[1]);
  p->by_n = hk_cu_divisor_make(g->n), p->by_taps = hk_cu_divisor_make(g->pixels), p->by_k = hk_cu_divisor_make(g->k);
  for (int d = 0; d < 3; d++) {
    p->by_out[d] = hk_cu_divisor_make(g->out[d]);
    p->by_win[d] = hk_cu_divisor_make(g->win[d]);
  }
}

static bool tile(const hk_geom *g, hk_cu_tapsum_way way, int64_t *slices, hk_cu_tapsum_tiling *t, char *why) {
  switch (way) {
  case HK_TAPSUM_TILE: return hk_cu_tapsum_tile_general(g, slices, t, why);
  case HK_TAPSUM_LANE: return hk_cu_tapsum_tile_lane(g, slices, t, why);
  case HK_TAPSUM_LINE: return hk_cu_tapsum_tile_line(g, slices, t, why);
  case HK_TAPSUM_MMA: return hk_cu_tapsum_tile_mma(g, slices, t, why);
  case HK_TAPSUM_STEM: return hk_cu_tapsum_tile_stem(g, slices, t, why);
  default: return hk_cu_tapsum_tile_band(g, slices, t, why);
  }
}

/* Blocks that leave SMs idle take as long as those that fill them. */
static double predict(const hk_cu_tapsum_tiling *t) {
  enum { SMS = 132 };
  const double idle = (double)hk_round_up(t->blocks, SMS * t->fit) / (double)t->blocks;
  const double few = hk_max64(1, SMS * 2 / t->blocks); /* too few to use the memory */
  const double join = t->sums_bytes ? 2e-6 + 2.0 * (double)t->sums_bytes / 3e12 : 0;
  return hk_cu_seconds_of(t->busy * idle, t->moved * few) + join;
}

bool hk_cu_tapsum_tile(const hk_geom *g, const hk_epi *e, bool unaligned, hk_cu_tapsum_knobs knobs, size_t room,
                       hk_cu_tapsum_tiling *t, char *why) {
  if (!supported(g, e, why)) return false;
  int64_t slices = knobs.slices;
  for (int round = 0; round < 2; round++) { /* again where the slices do not fit the room */
    memset(t, 0, sizeof *t);
    params_make(g, e, &t->params);
    t->unaligned = unaligned;
    if (!tile(g, knobs.way, &slices, t, why)) return false;
    const size_t each = (size_t)t->params.outputs * sizeof(float);
    t->sums_bytes = slices > 1 ? (size_t)hk_round_up((int64_t)each * slices, HK_ALIGN) : 0;
    if (knobs.slices || t->sums_bytes <= room) break;
    slices = room < HK_ALIGN ? 1 : hk_max64(1, (int64_t)((room - HK_ALIGN) / each));
  }
  if ((t->x_align || t->f_align) && unaligned) return refuse(why, "options.unaligned must be 0");
  if (slices > t->params.units) return refuse(why, "slices exceeds the pieces of the reduction");
  if (t->blocks > INT32_MAX) return refuse(why, "the launch has more than 2^31 blocks");
  t->seconds = predict(t);
  return true;
}

hk_status hk_cu_tapsum_build(hk_cu_tapsum_state *s) {
  const hk_status st = hk_cu_kernel_find(s->tiling.image, s->tiling.kernel, s->tiling.shared_bytes, &s->kernel);
  return st || !s->tiling.sums_bytes ? st : hk_cu_kernel_find("tapsum", "hk_tapsum_join", 0, &s->join);
}

static bool lies_at(const void *p, int align) { return !align || (uintptr_t)p % (uintptr_t)align == 0; }

/* The widest load of at most `most` bytes (0: none) from p: filters that are reversed begin at any element. */
static int vector_at(const void *p, int most) {
  while (most > 1 && !lies_at(p, most)) most /= 2;
  return most;
}

hk_status hk_cu_tapsum_run(const hk_cu_tapsum_state *s, const hk_cu_call *call, const void *slopes) {
  hk_cu_tapsum p = s->tiling.params;
  if (!lies_at(call->x, s->tiling.x_align)) return hk_cu_unaligned("x", call->x);
  if (!lies_at(call->f, s->tiling.f_align)) return hk_cu_unaligned("f", call->f);
  p.x_vector = vector_at(call->x, p.x_vector), p.f_vector = vector_at(call->f, p.f_vector);
  p.d.x = call->x, p.d.f = call->f;
  p.d.e.y = call->y, p.d.e.c = call->c, p.d.e.slopes = slopes, p.d.e.user = call->user;
  p.d.e.scale = call->scale, p.d.e.bias = call->bias;
  p.sums = s->tiling.sums_bytes ? call->workspace : NULL;
  const hk_status st =
      hk_cu_kernel_run(s->kernel, s->tiling.blocks, s->tiling.threads, 1, s->tiling.shared_bytes, call->stream, &p);
  if (st || !p.sums) return st;
  return hk_cu_kernel_run(s->join, hk_ceil_div(p.outputs, 32), 256, 1, 0, call->stream, &p);
}
