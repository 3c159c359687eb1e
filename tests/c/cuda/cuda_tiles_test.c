/* How the depthwise, grouped and stem kernels of the device are launched, checked without a GPU: for random problems
 * and every kernel that takes them, the blocks cover all outputs, threads and shared memory stay within what a block
 * has, what is staged fits where it goes, and the knobs that were chosen give the same tiling again. */
#include <stdlib.h>

#include "core/core.h"
#include "cuda/depthwise/depthwise.h"
#include "cuda/depthwise/transposed.h"
#include "support/check.h"

static const char *const images[] = {
#define IMAGE(name, source, type) #name,
#include "cuda/driver/images.inc"
#undef IMAGE
};
static int taken[HK_DW_KINDS], ways[HK_DW_KINDS][HK_DW_WAYS + 1];

static int pick(uint64_t *seed, int lo, int hi) {
  return lo + (hk_test_integer(seed, 1 << 20) + (1 << 20)) % (hi - lo + 1);
}

static bool known_image(const char *name) {
  for (int i = 0; i < HK_COUNT(images); ++i)
    if (!strcmp(images[i], name)) return true;
  return false;
}

static void check_limits(const hk_geom *g, const hk_cu_dw_tiling *t, const char *text) {
  const int slide = g->win[1] > 3 ? HK_SLIDE_THREADS : g->stride[1] == 1 ? HK_SLIDE_THREADS_3 : HK_SLIDE_THREADS_3S2;
  const int most = strstr(t->kernel, "slide") ? slide : strstr(t->kernel, "octet") ? HK_OCTET_THREADS : 256;
  CHECK(known_image(t->image) && !strncmp(t->kernel, "hk_", 3), "%s: %s in %s", text, t->kernel, t->image);
  CHECK(t->threads >= 1 && t->threads <= most, "%s: %s: %d threads", text, t->kernel, t->threads);
  CHECK(t->shared_bytes >= 0 && t->shared_bytes <= 227 * 1024, "%s: %s: %d bytes of shared memory", text, t->kernel,
        t->shared_bytes);
  CHECK(t->blocks >= 1 && t->blocks <= INT32_MAX, "%s: %s: %lld blocks", text, t->kernel, (long long)t->blocks);
  CHECK(t->seconds > 0 && t->seconds < 1e3, "%s: %s: %g s", text, t->kernel, t->seconds);
  CHECK(t->params.channels == g->k * g->groups, "%s: %d channels", text, t->params.channels);
}

/* Kernels whose blocks are `teams` groups by `lanes` runs of channels. */
static void check_groups(const hk_geom *g, const hk_cu_dw_tiling *t, hk_cu_dw_kind kind, const char *text) {
  const hk_cu_dw *p = &t->params;
  const hk_cu_dw_last *l = &p->last;
  const int64_t images_rows = g->n * g->out[0] * g->out[1];
  if (kind == HK_DW_ROW) {
    const int per = 32 / (int)hk_type_bytes(g->x_type);
    CHECK((int64_t)l->row_groups * per >= g->out[2] + per / 2 - 1, "%s: %d runs of %d outputs", text, l->row_groups,
          per);
    CHECK(l->groups == images_rows * p->channels * l->row_groups && t->blocks * t->threads >= l->groups, "%s: %d runs",
          text, l->groups);
    return;
  }
  CHECK(l->lanes * l->teams == t->threads && l->lanes > 0, "%s: %d by %d threads", text, l->lanes, l->teams);
  CHECK(t->blocks >= hk_ceil_div(l->groups, l->teams) * p->channel_blocks, "%s: %lld blocks", text,
        (long long)t->blocks);
  CHECK(l->groups == images_rows * l->row_groups, "%s: %d groups", text, l->groups);
  CHECK((int64_t)l->row_groups * t->knobs.run >= g->out[2], "%s: %d groups per row", text, l->row_groups);
  CHECK((int64_t)p->channel_blocks * l->lanes * 8 >= p->channels, "%s: %d channel blocks", text, p->channel_blocks);
}

static void check_slide(const hk_geom *g, const hk_cu_dw_tiling *t, const char *text) {
  const hk_cu_dw *p = &t->params;
  const hk_cu_dw_slide *s = &p->slide;
  CHECK(s->lanes * s->teams == t->threads && s->lanes > 0, "%s: %d by %d threads", text, s->lanes, s->teams);
  CHECK(t->blocks >= hk_ceil_div(s->groups, s->teams) * p->channel_blocks, "%s: %lld blocks", text,
        (long long)t->blocks);
  CHECK(s->groups == g->n * s->strips * s->row_groups, "%s: %d groups", text, s->groups);
  CHECK((int64_t)s->strips * s->strip_rows >= g->out[1] && (int64_t)s->row_groups * 7 >= g->out[2],
        "%s: strips of %d rows", text, s->strip_rows);
  CHECK((int64_t)p->channel_blocks * s->lanes * 2 >= p->channels, "%s: %d channel blocks", text, p->channel_blocks);
}

static void check_plane(const hk_geom *g, const hk_cu_dw_tiling *t, const char *text) {
  const hk_cu_dw *p = &t->params;
  const int size = (int)hk_type_bytes(g->x_type);
  const int64_t reach =
      p->plane.lead - g->lo[2] + ((int64_t)p->plane.row_groups * HK_SLIDE_COLUMNS - 1) * g->stride[2] + g->win[2];
  CHECK(p->plane.planes * p->plane.lanes == t->threads && t->blocks * p->plane.planes >= p->plane.groups,
        "%s: %d units of %d threads", text, p->plane.planes, p->plane.lanes);
  CHECK((int64_t)p->plane.strips * p->plane.strip_rows >= g->out[1] &&
            (int64_t)p->plane.lanes / p->plane.row_groups * p->plane.tile_rows >= p->plane.strip_rows,
        "%s: rows", text);
  CHECK((int64_t)p->plane.row_groups * HK_SLIDE_COLUMNS >= g->out[2] && reach * size <= p->plane.patch_pitch,
        "%s: columns", text);
  CHECK(p->plane.lead >= g->lo[2] && p->plane.lead * size % p->plane.patch_length == 0 &&
            g->in[2] * size % p->plane.patch_length == 0,
        "%s: lead %d", text, p->plane.lead);
  CHECK(p->plane.slots >= (p->plane.strip_rows - 1) * g->stride[1] + g->win[1] &&
            p->plane.slots * p->plane.patch_pitch <= p->plane.line_bytes,
        "%s: %d slots", text, p->plane.slots);
  CHECK(p->plane.strip_rows * g->out[2] * size + 16 <= p->plane.sums_pitch &&
            p->plane.planes * p->plane.line_bytes <= p->plane.sums_at,
        "%s: results", text);
  CHECK(p->plane.sums_at + p->plane.planes * p->plane.sums_pitch <= p->plane.taps_at &&
            p->plane.taps_at < t->shared_bytes,
        "%s: parts overlap", text);
}

static void check_transposed(const hk_geom *g, const hk_cu_dw_tiling *t, const char *text) {
  const hk_cu_dw *p = &t->params;
  CHECK((int64_t)p->transposed.tiles * HK_TRANSPOSED_LENGTH >= g->out[2] &&
            p->channel_blocks * HK_TRANSPOSED_CHANNELS >= p->channels,
        "%s: %d tiles", text, p->transposed.tiles);
  CHECK(t->blocks == g->n * g->out[0] * g->out[1] * p->transposed.tiles * p->channel_blocks, "%s: %lld blocks", text,
        (long long)t->blocks);
  CHECK(p->transposed.slots * 64 >= HK_TRANSPOSED_LENGTH + p->taps_u - 1 &&
            p->transposed.slots * HK_TRANSPOSED_REGION <= p->transposed.taps_at,
        "%s: %d slots", text, p->transposed.slots);
  CHECK((HK_TOEPLITZ_FRONT + p->taps_u + 64 + 30) * 4 <= p->taps_bytes &&
            p->transposed.taps_at + HK_TRANSPOSED_CHANNELS * p->taps_bytes <= t->shared_bytes,
        "%s: taps", text);
}

static void check_toeplitz(const hk_geom *g, const hk_cu_dw_tiling *t, const char *text) {
  const hk_cu_dw *p = &t->params;
  const int b = t->knobs.run, tile = p->toeplitz.lanes * 16 * b;
  const int64_t tiles = hk_ceil_div(p->toeplitz.plane_count, p->toeplitz.planes) * p->toeplitz.lane_blocks;
  CHECK((int64_t)p->toeplitz.lane_blocks * tile >= g->out[2], "%s: %d tiles of %d", text, p->toeplitz.lane_blocks,
        tile);
  CHECK(p->toeplitz.places ? p->toeplitz.places == tiles && t->threads == HK_STREAM_THREADS
                           : t->blocks == tiles && p->toeplitz.planes * p->toeplitz.lanes * 32 == t->threads,
        "%s: %lld blocks", text, (long long)t->blocks);
  if (p->pack == HK_DW_PACK_SPLIT) {
    CHECK((tile + p->taps_u + 15 + 6) / 4 * 16 <= p->toeplitz.line_bytes, "%s: %d bytes a row", text,
          p->toeplitz.line_bytes);
    CHECK((HK_TOEPLITZ_FRONT + p->taps_u + 38) * 8 <= p->taps_bytes, "%s: %d bytes of taps", text, p->taps_bytes);
    CHECK(p->toeplitz.sums_at + p->toeplitz.planes * p->toeplitz.lanes * p->toeplitz.sums_pitch <=
                  p->toeplitz.rows_at &&
              p->toeplitz.rows_at < t->shared_bytes,
          "%s: parts overlap", text);
    return;
  }
  CHECK((tile + p->toeplitz.chunk_u + 31 + 14) / 8 * 16 <= p->toeplitz.line_bytes, "%s: %d bytes a row", text,
        p->toeplitz.line_bytes);
  CHECK((HK_TOEPLITZ_FRONT + p->toeplitz.chunk_u + b + 30) * 4 <= p->taps_bytes, "%s: %d bytes of taps", text,
        p->taps_bytes);
  if (p->toeplitz.places)
    CHECK(2 * p->toeplitz.line_bytes <= p->toeplitz.taps_at &&
              p->toeplitz.taps_at + 2 * p->taps_bytes <= p->toeplitz.buffer_bytes && 32 * b <= p->toeplitz.line_bytes &&
              p->toeplitz.buffer_bytes * (HK_STREAM_THREADS / 32) <= t->shared_bytes,
          "%s: parts overlap", text);
  else
    CHECK(p->toeplitz.planes * p->toeplitz.line_bytes <= p->toeplitz.taps_at &&
              p->toeplitz.taps_at + p->toeplitz.planes * p->taps_bytes <= p->toeplitz.sums_at &&
              p->toeplitz.sums_at + p->toeplitz.planes * p->toeplitz.lanes * p->toeplitz.sums_pitch <=
                  p->toeplitz.rows_at,
          "%s: parts overlap", text);
  CHECK(p->pack != HK_DW_PACK_LINES || (p->toeplitz.chunk_u == p->taps_u && t->packed_bytes), "%s: packed in part",
        text);
}

static void check_band(const hk_geom *g, const hk_cu_dw_tiling *t, const char *text) {
  const hk_cu_dw *p = &t->params;
  CHECK((int64_t)p->band.tiles * p->band.tile_length >= g->out[2] &&
            (int64_t)p->band.row_tiles * p->band.tile_rows >= g->out[1],
        "%s: %d x %d tiles", text, p->band.row_tiles, p->band.tiles);
  CHECK(t->blocks == (int64_t)p->channel_blocks * p->band.tiles * p->band.row_tiles * g->n &&
            p->channel_blocks * 16 >= p->channels,
        "%s: blocks", text);
  CHECK(p->band.tile_rows % (p->band.row_groups == 8 ? 14 : 28) == 0 &&
            p->band.slots >= p->band.tile_rows + g->win[1] - 1,
        "%s: rows %d", text, p->band.tile_rows);
  CHECK((p->band.row_groups == 5 || p->band.row_groups == 8) && p->band.tile_length == (p->band.row_groups - 1) * 8 &&
            p->band.slots * p->band.row_groups * 256 <= p->band.taps_at,
        "%s: patch", text);
  CHECK(p->band.taps_at + 16 * p->taps_bytes <= t->shared_bytes, "%s: parts overlap", text);
}

static void check_bundle(const hk_geom *g, const hk_cu_dw_tiling *t, const char *text) {
  const hk_cu_dw *p = &t->params;
  const int64_t rows = 7 * g->stride[1] + 3, columns = p->grouped.tile_length * g->stride[2];
  CHECK(t->threads == p->grouped.slabs * p->grouped.tile_length / 16 * 32 && p->grouped.tile_length % 16 == 0,
        "%s: %d threads", text, t->threads);
  CHECK((int64_t)p->grouped.slab_blocks * p->grouped.slabs * 16 >= p->channels && p->grouped.slabs * 16 % g->k == 0,
        "%s: %d runs of 16 channels", text, p->grouped.slabs);
  CHECK((int64_t)p->grouped.tiles * p->grouped.tile_length >= g->out[2] &&
            (int64_t)p->grouped.row_tiles * 8 >= g->out[1],
        "%s: %d x %d tiles", text, p->grouped.row_tiles, p->grouped.tiles);
  CHECK(t->blocks == (int64_t)p->grouped.slab_blocks * p->grouped.tiles * p->grouped.row_tiles * g->n, "%s: blocks",
        text);
  CHECK(p->grouped.in_slabs * 8 >= p->grouped.slabs * 16 / g->k * g->c && p->grouped.slots >= rows,
        "%s: %d slabs, %d rows", text, p->grouped.in_slabs, p->grouped.slots);
  CHECK((int64_t)p->phases * p->grouped.patch_length >= columns + g->stride[2] &&
            p->grouped.slots * p->phases * p->grouped.patch_length * 16 <= p->grouped.plane_bytes,
        "%s: patch", text);
  /* the last fragment starts at the last row's last tap */
  CHECK(((rows * p->phases - p->phases) * p->grouped.patch_length + p->grouped.tile_length - 16 + p->taps_u - 1 + 16) *
                    16 +
                (p->grouped.in_slabs - 1) * (int64_t)p->grouped.plane_bytes <=
            t->shared_bytes,
        "%s: reads past %d bytes", text, t->shared_bytes);
}

static void check_octet(const hk_geom *g, const hk_cu_dw_tiling *t, const char *text) {
  const hk_cu_dw *p = &t->params;
  const int stride = (int)g->stride[2], in_step = stride + 3;
  CHECK(t->threads == p->octet.slabs * p->octet.teams * 32 && t->threads <= HK_OCTET_THREADS &&
            p->octet.tile_rows % 2 == 0,
        "%s: %d threads, %d rows", text, t->threads, p->octet.tile_rows);
  CHECK((int64_t)p->octet.slab_blocks * p->octet.slabs * 8 >= p->channels && p->octet.tile_length % 8 == 0,
        "%s: %d slabs, %d columns", text, p->octet.slabs, p->octet.tile_length);
  CHECK((int64_t)p->octet.tiles * p->octet.tile_length >= g->out[2] &&
            (int64_t)p->octet.row_tiles * p->octet.tile_rows >= g->out[1],
        "%s: %d x %d tiles", text, p->octet.row_tiles, p->octet.tiles);
  CHECK(t->blocks == (int64_t)p->octet.slab_blocks * p->octet.tiles * p->octet.row_tiles * g->n, "%s: blocks", text);
  /* a step's rows and those that replace the ones it ends with; 16-byte pieces of the last column that a matrix reads
   */
  CHECK(p->octet.slots >= in_step + 2 * stride, "%s: %d rows in the ring", text, p->octet.slots);
  CHECK(p->octet.patch_length <= 256 &&
            ((p->octet.tile_length - 1) * stride + 2) * p->octet.slabs * 16 + 16 * p->octet.slabs <=
                p->octet.plane_bytes,
        "%s: row of %d bytes", text, p->octet.plane_bytes);
  CHECK(p->octet.slots * p->octet.plane_bytes <= p->octet.stage_at &&
            2 * p->octet.tile_length * p->octet.slabs * 16 <= p->octet.stage_bytes &&
            p->octet.stage_at + 2 * p->octet.stage_bytes <= p->octet.table_at &&
            p->octet.table_at + 8 * p->octet.slots <= t->shared_bytes && p->octet.table_at % 8 == 0,
        "%s: parts overlap", text);
  CHECK(p->octet.plane_bytes % (p->octet.swizzle_mask ? 1024 : 128) == 0 &&
            p->octet.stage_bytes % (p->octet.swizzle_mask ? 1024 : 128) == 0,
        "%s: alignment", text);
}

/* Every way of a kernel, forced, is taken as it is or refused with a reason; the one that was chosen is the fastest of
 * those that grouped takes, and has a number where there are several. */
static void check_ways(const hk_geom *g, const hk_epi *e, hk_cu_dw_kind kind, hk_cu_dw_rules rules,
                       const hk_cu_dw_tiling *chosen) {
  const bool several = kind == HK_DW_LAST || kind == HK_DW_TOEPLITZ || kind == HK_DW_GROUPED;
  CHECK(several == (chosen->knobs.way > 0), "%s: way = %d", chosen->kernel, chosen->knobs.way);
  for (int way = 1; way <= HK_DW_WAYS; ++way) {
    hk_cu_dw_tiling t;
    char why[HK_DW_REASON] = "";
    const bool takes = hk_cu_dw_tile(kind, g, e, rules, (hk_cu_dw_knobs){.way = way}, &t, why);
    ways[kind][way] += takes;
    CHECK(takes ? t.knobs.way == way : why[0] != 0, "%s: way = %d gives %d: %s", chosen->kernel, way, t.knobs.way, why);
    CHECK(!takes || kind != HK_DW_GROUPED || t.seconds >= chosen->seconds, "%s: way = %d is faster", chosen->kernel,
          way);
    CHECK(!takes || way != chosen->knobs.way || !strcmp(t.kernel, chosen->kernel), "way = %d: %s, %s", way, t.kernel,
          chosen->kernel);
  }
}

static void check_problem(const hk_problem *p, const char *text, const hk_epilogue *epilogue, hk_cu_dw_rules rules) {
  hk_geom g;
  hk_epi e;
  if (hk_geom_make(&g, p, false) || hk_epi_make(&e, epilogue, p)) return;
  for (int kind = 0; kind < HK_DW_KINDS; ++kind) {
    hk_cu_dw_tiling t, again;
    char why[HK_DW_REASON] = "";
    const hk_cu_dw_knobs open = {0};
    if (!hk_cu_dw_tile((hk_cu_dw_kind)kind, &g, &e, rules, open, &t, why)) {
      CHECK(why[0], "%s: kernel %d refuses without a reason", text, kind);
      continue;
    }
    taken[kind]++;
    check_limits(&g, &t, text);
    if (kind == HK_DW_LAST || kind == HK_DW_ROW) check_groups(&g, &t, (hk_cu_dw_kind)kind, text);
    if (kind == HK_DW_SLIDE) check_slide(&g, &t, text);
    if (kind == HK_DW_PLANE) check_plane(&g, &t, text);
    if (kind == HK_DW_BAND) check_band(&g, &t, text);
    if (kind == HK_DW_BUNDLE) check_bundle(&g, &t, text);
    if (kind == HK_DW_OCTET) check_octet(&g, &t, text);
    if (kind == HK_DW_TOEPLITZ) (strstr(t.kernel, "transposed") ? check_transposed : check_toeplitz)(&g, &t, text);
    const bool same = hk_cu_dw_tile((hk_cu_dw_kind)kind, &g, &e, rules, t.knobs, &again, why);
    CHECK(same && !memcmp(&again.params, &t.params, sizeof t.params), "%s: %s: its own knobs: %s", text, t.kernel,
          same ? "another tiling" : why);
    check_ways(&g, &e, (hk_cu_dw_kind)kind, rules, &t);
  }
}

static void run_random(int count, uint64_t seed) {
  static const hk_type types[] = {HK_BF16, HK_F16, HK_F32};
  for (int i = 0; i < count; ++i) {
    hk_conv_desc d = {
        .size = sizeof d, .rank = pick(&seed, 1, 3), .n = pick(&seed, 1, 70), .groups = pick(&seed, 1, 300)};
    const int per = pick(&seed, 0, 3) ? 1 : pick(&seed, 1, 20),
              square = pick(&seed, 0, 1) ? 1 + 2 * pick(&seed, 1, 3) : 0, step = pick(&seed, 1, 2);
    if (!pick(&seed, 0, 5)) d.groups = 1;
    if (pick(&seed, 0, 1)) d.groups = d.groups / 8 * 8 + 8;
    d.layout = pick(&seed, 0, 1) ? HK_CHANNELS_LAST : HK_CHANNELS_FIRST;
    d.c = d.groups * per;
    d.k = d.groups * (pick(&seed, 0, 2) ? per : pick(&seed, 1, 80));
    d.x_type = d.f_type = d.y_type = types[pick(&seed, 0, 2)];
    for (int a = 0; a < d.rank; ++a) {
      d.in[a] = pick(&seed, 1, d.rank == 1 ? 30000 : 300);
      d.window[a] = square ? square : pick(&seed, 1, d.rank == 1 ? (pick(&seed, 0, 1) ? 8 : 9000) : 12);
      d.stride[a] = square ? step : pick(&seed, 1, 3),
      d.dilation[a] = square || pick(&seed, 0, 1) ? 1 : pick(&seed, 1, 4);
      d.pad_lo[a] = pick(&seed, -2, 8), d.pad_hi[a] = pick(&seed, -2, 8);
    }
    if (i % 16 == 0) { /* groups of sixteens, 3x3 images */
      d.rank = 2, d.layout = HK_CHANNELS_LAST, d.x_type = d.f_type = d.y_type = types[i / 16 % 2],
      d.groups = d.groups % 40 + 1;
      d.c = d.groups * 16 * pick(&seed, 1, 8), d.k = d.groups * 16 * pick(&seed, 1, 8);
      for (int a = 0; a < 2; ++a) d.window[a] = 3, d.stride[a] = step, d.dilation[a] = 1, d.in[a] = pick(&seed, 1, 300);
    }
    hk_problem p = {.size = sizeof p};
    hk_epilogue none = {.size = sizeof none}, relu = {.size = sizeof relu};
    char text[512];
    if (hk_problem_conv(&p, &d) || hk_epilogue_parse(&relu, "bias+relu+sum:1")) continue;
    hk_problem_print(&p, text, sizeof text, NULL);
    check_problem(&p, text, i % 3 ? &none : &relu, (hk_cu_dw_rules){i % 7 == 0, i % 2, i % 5 == 0});
  }
}

/* The order of a sum in the Toeplitz kernels follows the address of its row modulo 16. */
static void batch_invariant(void) {
  static const struct {
    const char *text;
    bool taken;
  } rows[] = {{"1d_n3_c33_i390_k33_w5_g33_f16_first", false},
              {"1d_n3_c33_i388_k33_w5_g33_f16_first", false}, /* 25608 bytes */
              {"1d_n1_c33_i390_k33_w5_g33_f16_first", true},
              {"1d_n3_c8_i392_k8_w9_g8_f16_first", true}};
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; ++i) {
    hk_problem p = {.size = sizeof p};
    hk_epilogue none = {.size = sizeof none};
    hk_geom g;
    hk_epi e;
    hk_cu_dw_tiling t;
    char why[HK_DW_REASON] = "";
    const hk_cu_dw_knobs open = {0};
    if (hk_problem_parse(&p, rows[i].text) || hk_geom_make(&g, &p, false) || hk_epi_make(&e, &none, &p)) {
      CHECK(false, "%s: %s", rows[i].text, hk_last_error());
      continue;
    }
    CHECK(hk_cu_dw_tile(HK_DW_TOEPLITZ, &g, &e, (hk_cu_dw_rules){0}, open, &t, why), "%s: %s", rows[i].text, why);
    const bool taken = hk_cu_dw_tile(HK_DW_TOEPLITZ, &g, &e, (hk_cu_dw_rules){.batch_invariant = true}, open, &t, why);
    CHECK(taken == rows[i].taken, "%s: batch_invariant: %s", rows[i].text, taken ? "taken" : why);
  }
}

/* sm_90a code loads on compute capability 9.0 and nowhere else: other cards are refused by name, before anything is
 * loaded. */
static void devices(void) {
  static const struct {
    const char *name;
    int major, minor;
    bool runs;
  } rows[] = {{"NVIDIA H200", 9, 0, true},
              {"NVIDIA A100", 8, 0, false},
              {"NVIDIA L40S", 8, 9, false},
              {"NVIDIA B200", 10, 0, false},
              {"NVIDIA RTX PRO 6000", 12, 0, false}};
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; ++i) {
    hk_cu_device d = {.major = rows[i].major, .minor = rows[i].minor};
    char why[HK_CU_REASON] = "";
    strcpy(d.name, rows[i].name);
    CHECK(hk_cu_has_code(&d, why) == rows[i].runs, "%s: %s", rows[i].name, why);
    CHECK(rows[i].runs || (strstr(why, rows[i].name) && strstr(why, "Hopper")), "%s: %s", rows[i].name, why);
  }
}

int main(void) {
  batch_invariant();
  devices();
  run_random(16000, 2026);
  for (int i = 0; i < HK_DW_KINDS; ++i) CHECK(taken[i] >= 20, "kernel %d took %d problems only", i, taken[i]);
  for (int way = HK_LAST_SINGLE; way < HK_LAST_RUN; ++way) /* dw_run needs a run */
    CHECK(ways[HK_DW_LAST][way] > 0, "dw_last: way %d was never taken", way);
  for (int way = HK_TOEPLITZ_TILES; way <= HK_TOEPLITZ_SPLIT; ++way)
    CHECK(ways[HK_DW_TOEPLITZ][way] > 0, "toeplitz: way %d was never taken", way);
  for (int way = HK_GROUPED_WALK; way <= HK_GROUPED_ROLL; ++way)
    CHECK(ways[HK_DW_GROUPED][way] > 0, "grouped: way %d was never taken", way);
  return hk_test_end();
}
