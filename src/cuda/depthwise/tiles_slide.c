/* Tilings of the sliding kernels: depthwise 3x3, 5x5, 7x7 images, channels-last (slide.cuh) and channels-first
 * (plane.cuh). */
#include "cuda/depthwise/depthwise.h"

#include <stdio.h>

#define PROCESSORS 132
#define REFUSE(...) return snprintf(why, HK_DW_REASON, __VA_ARGS__), false

typedef struct slide_kernel {
  const char *slide[3][2], *plane[3][2]; /* f32, f16, bf16; plain, with an epilogue */
  int size, stride;
  struct { int columns, blocks; } f32, half; /* dw_slide: output columns per thread; blocks per SM */
  int plane_blocks;
} slide_kernel;

#define NAMES(form, tag)                                                 \
  {{"hk_dw_" form "_f32_" tag, "hk_dw_" form "_f32_" tag "_epi"},        \
   {"hk_dw_" form "_f16_" tag, "hk_dw_" form "_f16_" tag "_epi"},        \
   {"hk_dw_" form "_bf16_" tag, "hk_dw_" form "_bf16_" tag "_epi"}}
#define KERNEL(tag, size, stride, columns32, blocks32, columns16, blocks16, plane_blocks) \
  {NAMES("slide", tag), NAMES("plane", tag), size, stride, {columns32, blocks32}, {columns16, blocks16}, plane_blocks}
static const slide_kernel kernels[] = {KERNEL("3", 3, 1, 7, 2, 7, 2, 4),   KERNEL("5", 5, 1, 7, 3, 7, 3, 3),
                                       KERNEL("7", 7, 1, 4, 3, 7, 3, 2),   KERNEL("3s2", 3, 2, 4, 1, 4, 1, 4),
                                       KERNEL("5s2", 5, 2, 4, 3, 7, 3, 3), KERNEL("7s2", 7, 2, 4, 3, 7, 3, 2)};

static int type_index(hk_type t) { return t == HK_F32 ? 0 : t == HK_F16 ? 1 : 2; }

static const slide_kernel *find(const hk_geom *g) {
  if (!hk_cu_is_flat(g, 0) || g->win[1] != g->win[2] || g->stride[1] != g->stride[2]) return NULL;
  if (g->dil[1] != 1 || g->dil[2] != 1) return NULL;
  for (int i = 0; i < HK_COUNT(kernels); i++)
    if (kernels[i].size == g->win[1] && kernels[i].stride == g->stride[1]) return &kernels[i];
  return NULL;
}

/* Groups per block. 3x3 with stride 2: whole rows of them or a fraction, where that keeps more than half of the
 * threads. */
static int teams_of(const slide_kernel *k, int64_t columns, int lanes, int threads) {
  const int most = threads / lanes;
  for (int teams = most; k->size == 3 && k->stride == 2 && 2 * teams > most; teams--)
    if (columns % teams == 0) return teams;
  return most;
}

/* Channel pairs per block: fewest idle threads, whole 32-byte sectors, long runs (3x3: the longest, otherwise up to
 * 64). */
static int lanes_of(const slide_kernel *k, int64_t pairs, int64_t columns, int threads) {
  int best = 0;
  double least = 0;
  for (int lanes = k->size == 3 ? 96 : 64; lanes >= 8; lanes -= 8) {
    const int working = lanes * teams_of(k, columns, lanes, threads);
    const double idle = (double)(hk_ceil_div(pairs, lanes) * lanes) / (double)pairs *
                        (k->size == 3 ? (working + 31) / 32 * 32 : threads) / working;
    const double cost =
        (k->size == 3 ? 1 + 2.0 / lanes : 1 + 0.02 * (lanes > 32 ? lanes / 32 : 0) + (lanes < 16 ? 0.1 : 0)) * idle;
    if (!best || cost < least) best = lanes, least = cost;
  }
  return best;
}

/* Time of `rows` output rows per strip in units of a row: whole waves of blocks, and the rows that a strip reads
 * beyond its own. */
static double strip_cost(const hk_geom *g, const hk_cu_dw *p, int resident, int rows) {
  const double blocks = (double)p->channel_blocks *
                        (double)hk_ceil_div(g->n * hk_ceil_div(g->out[1], rows) * p->slide.row_groups, p->slide.teams);
  const double waves = blocks / (PROCESSORS * resident), whole = (double)(int64_t)(waves + 0.999);
  /* blocks of a second wave start as those of the first end, so a partial wave costs less than a whole one */
  return (0.5 * whole + 0.5 * (waves > 1 ? waves : 1)) * (rows + 0.6 * (double)(g->win[1] - g->stride[1]) + 4);
}

/* k: the kernel of the window, NULL for none. */
static bool slide_accepts(const hk_geom *g, const hk_epi *e, const slide_kernel *k, bool unaligned, char *why) {
  if (!k)
    REFUSE("needs a 2D window of 3x3, 5x5 or 7x7, stride 1 or 2, dilation 1; it is %lldx%lld", (long long)g->win[1],
           (long long)g->win[2]);
  if (g->c != 1 || g->k != 1)
    REFUSE("groups must have 1 input and 1 output channel, they have %lld and %lld", (long long)g->c, (long long)g->k);
  if (unaligned || g->groups % 2 || g->y_type != g->x_type || !hk_cu_dw_pairs(&g->x, 2) || !hk_cu_dw_pairs(&g->y, 2) ||
      (e->e.residual && !hk_cu_dw_pairs(&e->c, 2)))
    REFUSE("channels must be contiguous, aligned pairs, and y of the type of x; there are %lld channels",
           (long long)g->groups);
  if (hk_max64(g->x.at[2], g->y.at[2]) > 1 << 26)
    REFUSE("pixel strides must not exceed 2^26 elements, they are %lld and %lld", (long long)g->x.at[2],
           (long long)g->y.at[2]);
  return true;
}

bool hk_cu_dw_tile_slide(const hk_geom *g, const hk_epi *e, bool unaligned, hk_cu_dw_knobs knobs, hk_cu_dw_tiling *t,
                         char *why) {
  hk_cu_dw *p = &t->params;
  const slide_kernel *k = find(g);
  if (!slide_accepts(g, e, k, unaligned, why)) return false;
  const int tq = g->x_type == HK_F32 ? k->f32.columns : k->half.columns, resident = e->any ? (k->size == 3 ? 1 : 2)
                                                                                    : g->x_type == HK_F32
                                                                                        ? k->f32.blocks
                                                                                        : k->half.blocks;
  const int threads = k->size > 3 ? HK_SLIDE_THREADS : k->stride == 1 ? HK_SLIDE_THREADS_3 : HK_SLIDE_THREADS_3S2;
  const int64_t pairs = g->groups / 2, columns = hk_ceil_div(g->out[2], tq);
  int rows = knobs.rows;
  if (rows < 0 || rows > 1 << 20) REFUSE("rows = %d must be between 0 and 2^20", rows);
  p->slide.lanes = lanes_of(k, pairs, columns, threads);
  p->slide.teams = teams_of(k, columns, p->slide.lanes, threads);
  p->channel_blocks = (int)hk_ceil_div(pairs, p->slide.lanes);
  p->slide.row_groups = (int)columns;
  for (int strips = 1; !knobs.rows && strips <= 64 && strips <= g->out[1]; strips++) {
    const int each = (int)hk_ceil_div(g->out[1], strips);
    if (!rows || strip_cost(g, p, resident, each) < strip_cost(g, p, resident, rows)) rows = each;
  }
  p->slide.strip_rows = rows;
  p->slide.strips = (int)hk_ceil_div(g->out[1], rows);
  const int64_t groups = g->n * p->slide.strips * columns;
  if (groups > INT32_MAX / 2) REFUSE("the problem has %lld groups of outputs, more than 2^30", (long long)groups);
  p->slide.groups = (int)groups;
  p->slide.div_row_groups = hk_cu_dw_divisor(columns);
  p->slide.div_strips = hk_cu_dw_divisor(p->slide.strips);
  p->pack = HK_DW_PACK_TAPS;
  t->packed_bytes = (size_t)p->taps * (size_t)p->padded * 4;
  t->image = g->x_type == HK_F32 ? "dw_slide_f32" : g->x_type == HK_F16 ? "dw_slide_f16" : "dw_slide_bf16";
  t->kernel = k->slide[type_index(g->x_type)][e->any];
  t->aligned = true;
  t->threads = p->slide.lanes * p->slide.teams;
  const int sets = (k->size + k->stride - 1) / k->stride;
  const int pair_bytes = 2 * (int)hk_type_bytes(g->x_type),
            table = ((2 * sets * k->stride * k->size) | 1) * p->slide.lanes * 8;
  p->slide.weights_at = (table + pair_bytes - 1) / pair_bytes;
  t->shared_bytes = table;
  if (k->size == 3 && k->stride == 1)
    t->shared_bytes = (p->slide.weights_at + sets * (tq - 1 + k->size) * HK_SLIDE_THREADS_3) * pair_bytes;
  t->blocks = hk_ceil_div(groups, p->slide.teams) * p->channel_blocks;
  t->knobs = (hk_cu_dw_knobs){0, 0, rows, 0};
  /* instructions per row and warp: 2*tq*size^2 FMA, 5 per column read, 100; rows that the strip only reads take part
   * of that */
  const double warps = (double)t->blocks * (double)hk_ceil_div(t->threads, 32);
  const double row = 2.0 * tq * k->size * k->size + 5.0 * ((tq - 1) * k->stride + k->size) * k->stride + 100;
  t->seconds = hk_cu_dw_seconds(g, 1.25 * warps * (rows + 0.6 * (k->size - k->stride)) * row / 4, 1.15);
  return true;
}

/* Bytes per copy that every row of x allows. */
static int piece_bytes(const hk_geom *g, bool unaligned) {
  const int size = (int)hk_type_bytes(g->x_type);
  int bytes = 16;
  while (bytes > size && (unaligned || g->in[2] * size % bytes || g->x.outer * size % bytes ||
                          g->x.group * size % bytes || g->x.offset * size % bytes))
    bytes /= 2;
  return bytes;
}

/* Shared memory of a unit of `rows` output rows and the offsets of its parts. */
static int64_t plane_unit(const hk_geom *g, hk_cu_dw *p, const slide_kernel *k, int rows) {
  const int size = (int)hk_type_bytes(g->x_type), per = p->plane.patch_length / size;
  const int64_t reach =
      p->plane.lead - g->lo[2] + ((int64_t)p->plane.row_groups * HK_SLIDE_COLUMNS - 1) * k->stride + k->size;
  p->plane.slots = (rows - 1) * k->stride + k->size;
  p->plane.slot_length = (int)hk_ceil_div(reach, per);
  p->plane.patch_pitch = p->plane.slot_length * p->plane.patch_length;
  const int64_t in = (int64_t)p->plane.slots * p->plane.patch_pitch, out = (int64_t)rows * g->out[2] * size + 16;
  const int sets = (k->size + k->stride - 1) / k->stride, taps = 2 * sets * k->stride * k->size * 4;
  if (in + out > 1 << 24) return 1 << 24;
  p->plane.line_bytes = (int)(in + 15) / 16 * 16;
  p->plane.sums_pitch = (int)(out + 15) / 16 * 16;
  return p->plane.line_bytes + p->plane.sums_pitch + taps;
}

bool hk_cu_dw_tile_plane(const hk_geom *g, const hk_epi *e, bool unaligned, hk_cu_dw_knobs knobs, hk_cu_dw_tiling *t,
                         char *why) {
  hk_cu_dw *p = &t->params;
  const slide_kernel *k = find(g);
  if (!k)
    REFUSE("needs a 2D window of 3x3, 5x5 or 7x7, stride 1 or 2, dilation 1; it is %lldx%lld", (long long)g->win[1],
           (long long)g->win[2]);
  if (g->c != 1) REFUSE("groups must have 1 input channel, they have %lld", (long long)g->c);
  if (g->y_type != g->x_type || g->x.at[2] != 1 || g->y.at[2] != 1 || g->x.at[1] != g->in[2] || g->y.at[1] != g->out[2])
    REFUSE("planes of x and y must have no gaps and one type, they are %s and %s", hk_type_name(g->x_type),
           hk_type_name(g->y_type));
  if (g->in[1] * g->in[2] > 1 << 28 || g->out[1] * g->out[2] > 1 << 28) REFUSE("a plane has more than 2^28 elements");
  p->plane.patch_length = piece_bytes(g, unaligned);
  const int size = (int)hk_type_bytes(g->x_type), per = p->plane.patch_length / size;
  p->plane.lead = (int)(hk_ceil_div(hk_max64(g->lo[2], 0), per) * per);
  p->plane.row_groups = (int)hk_ceil_div(g->out[2], HK_SLIDE_COLUMNS);
  if (p->plane.row_groups > HK_PLANE_THREADS)
    REFUSE("rows of y must not exceed %d, they are %lld", HK_PLANE_THREADS * HK_SLIDE_COLUMNS, (long long)g->out[2]);
  const int limit = 224 * 1024 / k->plane_blocks - 2048;
  int rows = (int)g->out[1], each = knobs.rows ? knobs.rows : 7;
  while (rows > 1 &&
         (plane_unit(g, p, k, rows) > limit || hk_ceil_div(rows, each) * p->plane.row_groups > HK_PLANE_THREADS))
    rows = (rows + 1) / 2;
  if (plane_unit(g, p, k, rows) > limit) REFUSE("rows of %lld columns exceed shared memory", (long long)g->in[2]);
  p->plane.strip_rows = rows;
  p->plane.strips = (int)hk_ceil_div(g->out[1], rows);
  p->plane.tile_rows = (int)hk_ceil_div(rows, hk_ceil_div(rows, each));
  p->plane.lanes = (int)hk_ceil_div(rows, p->plane.tile_rows) * p->plane.row_groups;
  const int64_t units = g->n * p->channels * p->plane.strips, unit = plane_unit(g, p, k, rows);
  if (units > INT32_MAX / 2) REFUSE("the problem has %lld strips, more than 2^30", (long long)units);
  p->plane.planes = (int)hk_max64(1, hk_min64(HK_PLANE_THREADS / p->plane.lanes, limit / unit));
  p->plane.groups = (int)units;
  p->plane.sums_at = p->plane.planes * p->plane.line_bytes;
  p->plane.taps_at = p->plane.sums_at + p->plane.planes * p->plane.sums_pitch;
  p->plane.div_patch = hk_cu_dw_divisor(p->plane.slot_length);
  p->plane.div_strips = hk_cu_dw_divisor(p->plane.strips);
  p->pack = HK_DW_PACK_CHANNELS;
  t->packed_bytes = (size_t)p->taps * (size_t)p->channels * 4;
  t->image = g->x_type == HK_F32 ? "dw_plane_f32" : g->x_type == HK_F16 ? "dw_plane_f16" : "dw_plane_bf16";
  t->kernel = k->plane[type_index(g->x_type)][e->any];
  t->aligned = !unaligned;
  t->threads = p->plane.planes * p->plane.lanes;
  t->shared_bytes = p->plane.planes * (int)unit;
  t->blocks = hk_ceil_div(units, p->plane.planes);
  t->knobs = (hk_cu_dw_knobs){0, 0, p->plane.tile_rows, 0};
  /* instructions per row and warp: 7*size^2 FMA, 2 per column read, 80; staging and storing 12 per piece */
  const double warps = (double)t->blocks * (double)hk_ceil_div(t->threads, 32);
  const double row = 7.0 * k->size * k->size + 2.0 * ((HK_SLIDE_COLUMNS - 1) * k->stride + k->size) * k->stride + 80;
  const double pieces = (double)units * (p->plane.slots * p->plane.slot_length + p->plane.sums_pitch / 16.0) / 32;
  t->seconds = hk_cu_dw_seconds(g, 1.3 * (warps * (p->plane.tile_rows + 1) * row + 12 * pieces) / 4, 1.2);
  return true;
}
