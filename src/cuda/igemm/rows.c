/* The table of wgmma kernels: what each supports and its predicted time.
 *
 * The estimate counts, for one k block of a tile, clocks of the tensor cores or of shared memory (each consumer
 * piece reads 64 pixel rows and all filter rows), times waves, plus the epilogue and a fixed start; the bytes are a
 * lower bound. Constants are fitted on an H200: 1.5 GHz is the clock that a full chip sustains under its power
 * limit. */
#include "cuda/cuda.h"

#include <stdio.h>
#include <string.h>

#define ROW(mi, nc, ...) ENTRY(TYPE, 1, nc, mi, nc, __VA_ARGS__)
#define WIDE ROW
#define PING_PONG(...) ENTRY(TYPE, 1, 1, __VA_ARGS__)
#define SPLIT(...)
#define ENTRY(...) ENTRY_(__VA_ARGS__)
#define ENTRY_(type, name, parts, wgs, mi, nc, bn, stages, chunk, cm, cn, split, tag) \
  {"hk_wgmma_" name "_" #tag, "igemm_" name, type, mi, nc, bn, stages, chunk, cm, cn, split, parts, wgs},
const hk_cu_row hk_cu_rows[] = {
#define TYPE HK_BF16, "bf16"
#include "cuda/igemm/kernels.inc"
#undef TYPE
#define TYPE HK_F16, "f16"
#include "cuda/igemm/kernels.inc"
#undef TYPE
#define TYPE HK_F32, "tf32"
#include "cuda/igemm/kernels.inc"
#undef TYPE
#undef WIDE
#define WIDE(...)
#undef PING_PONG
#define PING_PONG(...)
#define TYPE HK_F8E4M3, "f8"
#include "cuda/igemm/kernels.inc"
#undef TYPE
#undef ROW
#define ROW(...)
#undef SPLIT
#define SPLIT(mi, nc, ...) ENTRY(HK_F32, "split", 2, nc, mi, nc, __VA_ARGS__)
#include "cuda/igemm/kernels.inc"
};
const int hk_cu_row_count = HK_COUNT(hk_cu_rows);
#undef ROW
#undef WIDE
#undef PING_PONG
#undef SPLIT

#define FITS(parts, wgs, mi, nc, bn, stages, chunk, cm, cn, split, tag)                                                \
  _Static_assert(HK_IGEMM_SMEM(mi, wgs, nc, bn, parts, stages, chunk, split) <= HK_IGEMM_SMEM_MAX &&                   \
                     16 * (stages) + 32 * (nc) <= 256 && (bn)*128 / (cm) % 16 == 0 && (bn) <= 256 &&                   \
                     ((split) == 1 || HK_IGEMM_SUMS(mi, nc, bn) <= HK_IGEMM_RING(mi, wgs, bn, parts, stages)),         \
                 "tile " #tag " does not fit");
#define ROW(mi, nc, ...) FITS(1, nc, mi, nc, __VA_ARGS__)
#define WIDE ROW
#define PING_PONG(...) FITS(1, 1, __VA_ARGS__)
#define SPLIT(mi, nc, ...) FITS(2, nc, mi, nc, __VA_ARGS__)
#include "cuda/igemm/kernels.inc"

int hk_cu_row_shared(const hk_cu_row *r) {
  return HK_IGEMM_SMEM(r->mi, r->wgs, r->nc, r->bn, r->parts, r->stages, r->chunk, r->split);
}

bool hk_cu_row_strips(const hk_cu_row *r) {
  return r->split == 1 && HK_IGEMM_STRIPS(HK_IGEMM_RING(r->mi, r->wgs, r->bn, r->parts, r->stages), r->nc, r->bn) > 0;
}
int hk_cu_row_slot(const hk_cu_row *r) {
  return HK_IGEMM_SLOT_ROWS(HK_IGEMM_RING(r->mi, r->wgs, r->bn, r->parts, r->stages), r->nc);
}

static int64_t k_blocks(const hk_cu_row *r, const hk_geom *g) {
  return hk_ceil_div(g->c * (int64_t)hk_type_bytes(r->type), 128) * g->taps;
}

#define REFUSE(...) return snprintf(why, HK_CU_REASON, __VA_ARGS__), false

bool hk_cu_row_takes(const hk_cu_row *r, const hk_geom *g, const hk_epi *e, char *why) {
  if (g->x_type != r->type || g->f_type != r->type)
    REFUSE("x and f must be %s, they are %s and %s", hk_type_name(r->type), hk_type_name(g->x_type),
           hk_type_name(g->f_type));
  if (g->y_type == HK_F64 || hk_type_is_int8(g->y_type) || g->y_type == HK_S32)
    REFUSE("y is %s; f32, f16, bf16 and f8e4m3 are supported", hk_type_name(g->y_type));
  if (!g->gm || !g->gn || !g->gk) REFUSE("the problem has no products: a size is 0");
  if (e->e.gate && (g->groups > 1 || r->bn % 16))
    REFUSE("a gate needs one group and bn a multiple of 16, they are %lld and %d", (long long)g->groups, r->bn);
  if (g->fold && (r->split > 1 || hk_cu_igemm_finish(r, g, e, false) != HK_FINISH_SLIM))
    REFUSE("folded channels of y need finish = %d without split", (int)HK_FINISH_SLIM);
  if (hk_ceil_div(g->k, r->bn) % r->cn)
    REFUSE("cn = %d must divide the %lld tiles of channels", r->cn, (long long)hk_ceil_div(g->k, r->bn));
  if (k_blocks(r, g) < r->split) REFUSE("split = %d exceeds the %lld k blocks", r->split, (long long)k_blocks(r, g));
  if (k_blocks(r, g) > 1 << 24 || g->groups * hk_ceil_div(g->k, r->bn) > 1 << 24)
    REFUSE("the problem has more than 2^24 k blocks or tiles of channels");
  return true;
}

double hk_cu_row_seconds(const hk_cu_row *r, const hk_geom *g, const hk_epi *e, int processors) {
  const int bm = hk_cu_row_bm(r), bn = r->bn, cluster = hk_cu_row_cluster(r);
  const int64_t tiles_m = hk_ceil_div(g->gm, bm), tiles_n = g->groups * hk_ceil_div(g->k, bn);
  const int64_t units = hk_ceil_div(tiles_m, r->cm) * hk_ceil_div(tiles_n, r->cn);
  const int slots = processors / cluster;
  const double waves = (double)hk_ceil_div(units, slots > 0 ? slots : 1);
  const double tensor = bm * (double)hk_round_up(bn, 16) / 32 * (r->type == HK_F8E4M3 ? 1.4 : r->parts == 2 ? 3.4 : 1);
  const double shared = 0.86 * (bm / 64 * (64.0 + bn) + bm + bn);
  double block = tensor > shared ? tensor : shared;
  if (r->cm * r->cn > 1) block *= 1.02; /* blocks of a cluster wait for each other */
  /* Clocks of an epilogue: the TMA stores of 16 or 8 rows by up to 128 bytes, plus per value of a thread: two
   * special functions of 8 clocks for a smooth activation, unpacking and adding a residual, and the work of user
   * functions */
  const double user = e->e.cuda_user || e->e.cuda_user2 || e->e.cuda_store;
  const double heavy =
      24.0 * e->transcendental + (r->split > 1 ? 24.0 : 4.0) * (e->e.residual != HK_RESIDUAL_NONE) + 10.0 * user;
  int span = 128;
  while (bn * 2 % span) span /= 2;
  const double copies = r->mi * (bn * 2.0 / span) * (16.0 / hk_cu_row_slot(r));
  const double finish =
      r->split > 1 ? (500 + 0.55 * bm * bn) * (1 + heavy / 40) : 400 + 200 * copies + heavy * r->mi * bn / 2;
  const double work = (double)hk_ceil_div(k_blocks(r, g), r->split) * block;
  /* Ping-pong consumers hide all but the last epilogue, or are bound by two epilogues at a time. A consumer with a
   * tile of its own starts at once and exposes less of it: 6.2 us with ping-pong at 128x64, 7.1 us without, on 3136
   * pixels of 960 channels, 320 filters. */
  const bool ping_pong = r->wgs < r->nc;
  const double each = ping_pong ? (work > finish / 2 ? work : finish / 2) : work + finish;
  const double tile = each + (ping_pong ? 0.7 * finish / waves : 0);
  /* Memory-bound launches reached 3.4 TB/s of the minimum bytes, and 20 % less for the second and third tile of the
   * same pixels; the shorter term breaks ties. */
  const double least = g->bytes / 3.4e12 * (1 + 0.2 * (double)hk_min64(hk_ceil_div(g->k, bn) - 1, 2));
  /* One consumer in clusters of four took 103 us where 128x160 in clusters of two took 60 us, on 2178 pixels of 2048
   * channels, 256 filters of 3x3. */
  const double busy = waves * tile / 1.5e9 * (r->nc == 1 && r->split == 4 && waves > 2 ? 1.5 : 1);
  return hk_cu_seconds_of(busy, least);
}
