/* Depthwise, grouped and few-channel convolution on the GPU as algorithms: the kernels of src/cuda/dw*.cu and
 * grouped*.cu and stem*.cu, see docs/cuda-depthwise.md. Filters are kept as given (results that are NaN are recomputed
 * from them) and, behind them, packed; filters given at execute are packed into the workspace. */
#include <stdio.h>
#include <string.h>

#include "cuda/depthwise/depthwise.h"
#include "plan/gpu/gpu.h"

enum { RUN, SLABS, ROWS, WAY };

static hk_cu_dw_kind kind_of(const hk_algo *algo);

static bool tile(const hk_task *t, const hk_decision *d, hk_cu_dw_tiling *tiling, char *why) {
  const int way = d->knob[WAY] == HK_KNOB_AUTO ? 0 : (int)d->knob[WAY];
  const hk_cu_dw_knobs k = {(int)d->knob[RUN], (int)d->knob[SLABS], (int)d->knob[ROWS], way};
  const hk_cu_dw_rules rules = {t->options.unaligned || t->y_unaligned, t->options.math & HK_MATH_SPLIT_F32,
                                t->options.batch_invariant};
  return hk_cu_dw_tile(kind_of(d->algo), &t->geom, &t->epi, rules, k, tiling, why);
}

static void fill(const hk_task *t, const hk_cu_dw_tiling *tiling, hk_decision *d) {
  d->knob[RUN] = tiling->knobs.run, d->knob[SLABS] = tiling->knobs.slabs, d->knob[ROWS] = tiling->knobs.rows;
  d->knob[WAY] = tiling->knobs.way;
  d->predicted_s = tiling->seconds;
  d->workspace_bytes = t->f_now ? 0 : tiling->packed_bytes;
}

/* Knobs as they stand in *d; zeros are chosen. */
static bool check(const hk_task *t, hk_decision *d, char *why) {
  hk_cu_device here;
  hk_cu_dw_tiling tiling;
  if (!hk_plan_cuda_takes(t, &here, why) || !tile(t, d, &tiling, why)) return false;
  fill(t, &tiling, d);
  return true;
}

static bool offer(const hk_task *t, hk_decision *d, char *why) {
  memset(d->knob, 0, sizeof d->knob);
  return check(t, d, why);
}

static bool vary(const hk_task *t, const hk_decision *base, int index, hk_decision *d) {
  static const int last[][4] = {{4}, {8}, {16}, {12}, {24}, {48}}, first[][4] = {{8}, {16}};
  static const int toeplitz[][4] = {{8}, {32}, {64}, {64, 0, 0, HK_TOEPLITZ_STREAM}, {64, 0, 0, HK_TOEPLITZ_TILES}},
                   stem[][4] = {{0, 0, 1}, {0, 0, 2}, {0, 0, 4}, {0, 0, 8}};
  static const int slide[][4] = {{0, 0, 4}, {0, 0, 7}, {0, 0, 14}, {0, 0, 28}, {0, 0, 56}};
  static const int plane[][4] = {{0, 0, 4}, {0, 0, 7}, {0, 0, 14}, {0, 0, 28}};
  static const int bundle[][4] = {{16, 0, 0}, {32, 0, 0}, {0, 2, 0}, {0, 4, 0}, {0, 8, 0}};
  static const int band[][4] = {{8, 0, 14}, {8, 0, 28}, {4, 0, 28}};
  static const int octet[][4] = {{0, 9, 0}, {0, 8, 0},  {0, 5, 0},  {0, 4, 0},  {0, 3, 0}, {0, 2, 0}, {0, 0, 4},
                                 {0, 0, 8}, {0, 0, 14}, {0, 0, 28}, {0, 0, 56}, {8, 0, 0}, {16, 0, 0}};
  static const int grouped[][4] = {{0, 0, 0, 1}, {0, 1, 0, 1}, {0, 2, 0, 1},  {0, 3, 0, 1},  {0, 4, 0, 1},
                                   {0, 6, 0, 1}, {0, 8, 0, 1}, {64, 2, 0, 1}, {64, 4, 0, 1}, {0, 2, 2, 1},
                                   {0, 4, 4, 1}, {0, 0, 0, 2}, {0, 1, 0, 2},  {0, 2, 0, 2},  {0, 3, 0, 2},
                                   {0, 4, 0, 2}, {0, 6, 0, 2}, {0, 8, 0, 2},  {64, 2, 0, 2}, {64, 4, 0, 2},
                                   {0, 2, 2, 2}, {0, 4, 4, 2}};
  static const struct {
    const int (*rows)[4];
    int count;
  } of[HK_DW_KINDS] = {[HK_DW_LAST] = {last, HK_COUNT(last)},
                       [HK_DW_FIRST] = {first, HK_COUNT(first)},
                       [HK_DW_TOEPLITZ] = {toeplitz, HK_COUNT(toeplitz)},
                       [HK_DW_GROUPED] = {grouped, HK_COUNT(grouped)},
                       [HK_DW_STEM] = {stem, HK_COUNT(stem)},
                       [HK_DW_SLIDE] = {slide, HK_COUNT(slide)},
                       [HK_DW_PLANE] = {plane, HK_COUNT(plane)},
                       [HK_DW_BAND] = {band, HK_COUNT(band)},
                       [HK_DW_BUNDLE] = {bundle, HK_COUNT(bundle)},
                       [HK_DW_OCTET] = {octet, HK_COUNT(octet)}};
  const hk_cu_dw_kind kind = kind_of(base->algo);
  const int(*rows)[4] = of[kind].rows, count = of[kind].count;
  char why[HK_REASON];
  hk_decision now = *base; /* with its way */
  if (!check(t, &now, why)) return false;
  for (int i = 0; i < count; i++) {
    *d = *base;
    for (int j = 0; j < 4; j++) d->knob[j] = rows[i][j];
    if (!check(t, d, why) || !memcmp(d->knob, now.knob, sizeof d->knob) || index-- > 0) continue;
    return true;
  }
  return false;
}

static size_t padded(size_t bytes) { return (bytes + 255) / 256 * 256; }

/* Raw filters, then the packed ones at the end of the same buffer. */
static hk_status pack(hk_plan *plan, const hk_cu_dw_state *own, hk_cu_weights *w) {
  const hk_geom *g = &plan->task.geom;
  hk_cu_buffer raw = {0};
  hk_status s = hk_cu_filters_make(&raw, g, plan->raw_f, &w->f_shift);
  const size_t at = padded(raw.bytes);
  if (!s) s = hk_cu_buffer_make(&w->f, NULL, at + padded(own->tiling.packed_bytes));
  if (!s) s = hk_cu_copy(w->f.data, raw.data, raw.bytes);
  hk_cu_buffer_free(&raw);
  if (!s)
    s = hk_cu_dw_pack(own, (const char *)w->f.data + w->f_shift * (int64_t)hk_type_bytes(g->f_type),
                      (char *)w->f.data + at, NULL);
  if (!s) s = hk_cu_check(hk_cu()->ctx_sync(), "packing filters");
  plan->packed->f_bytes = w->f.bytes;
  return s;
}

/* One number for what dw_pack.cu reads of the parameters, the filters' own sizes aside. */
static int64_t layout_of(const hk_cu_dw *p) {
  const int64_t parts[] = {p->pack,      p->channels, p->k_steps,    p->lead,   p->phases, p->pixel,
                           p->row_pairs, p->taps,     p->taps_bytes, p->taps_u, p->turned};
  return hk_plan_cuda_order(parts, HK_COUNT(parts));
}

static hk_status build(hk_plan *plan) {
  const hk_task *t = &plan->task;
  char why[HK_REASON];
  hk_cu_weights *w;
  hk_cu_dw_state *own = plan->own = hk_alloc_zero(sizeof *own);
  if (!own) return hk_fail(HK_NO_MEMORY, "no memory for a plan");
  if (!tile(t, &plan->decision, &own->tiling, why))
    return hk_fail(HK_UNSUPPORTED, "%s: %s", plan->decision.algo->name, why);
  hk_status s = hk_cu_dw_build(own, &t->geom, &t->epi);
  if (!s) s = hk_plan_cuda_weights(plan, &w);
  if (!s && t->f_now && !hk_plan_shares(plan)) s = pack(plan, own, w);
  if (!s && t->f_now)
    s = hk_plan_keep_layout(plan, plan->packed->f_bytes,
                            (const int64_t[]){(int64_t)own->tiling.packed_bytes, layout_of(&own->tiling.params)}, 2);
  /* f32 on the tensor cores is split into two tf32 parts; the product of the low parts, 2^-22, is lost */
  if (t->geom.x_type == HK_F32 && kind_of(plan->decision.algo) == HK_DW_TOEPLITZ) plan->error_factor = 4;
  return s;
}

static hk_status run(const hk_plan *plan, const hk_call *call) {
  const hk_cu_dw_state *own = plan->own;
  const hk_cu_weights *w = plan->packed->f;
  hk_cu_call c = hk_plan_cuda_call(plan, call);
  const void *packed = call->workspace;
  if (plan->task.f_now) {
    c.f = (const char *)w->f.data + w->f_shift * (int64_t)hk_type_bytes(plan->task.geom.f_type);
    packed = (const char *)w->f.data + w->f.bytes - padded(own->tiling.packed_bytes);
  } else {
    const hk_status s = hk_cu_dw_pack(own, call->f, call->workspace, call->stream);
    if (s) return s;
  }
  return hk_cu_dw_run(own, &c, packed, w->slopes.data);
}

static void destroy(hk_plan *plan) { hk_free(plan->own); }

static void trace(const hk_plan *plan, hk_text *t) {
  const hk_cu_dw_state *own = plan->own;
  hk_text_add(t, " kernel=%s blocks=%lld threads=%d shared=%d pdl=%d", own->tiling.kernel,
              (long long)own->tiling.blocks, own->tiling.threads, own->tiling.shared_bytes, own->pdl);
}

#define ALGO(variable, text, what)                                                                                     \
  const hk_algo variable = {.name = text,                                                                              \
                            .summary = what,                                                                           \
                            .knobs = {HK_KNOB("run", 0, 1 << 20), HK_KNOB("slabs", 0, 1 << 20),                        \
                                      HK_KNOB("rows", 0, 1 << 20), HK_KNOB_ORDER("way", 0, HK_DW_WAYS)},               \
                            .family = HK_FAMILY_NONE,                                                                  \
                            .device = HK_CUDA,                                                                         \
                            .offer = offer,                                                                            \
                            .vary = vary,                                                                              \
                            .check = check,                                                                            \
                            .build = build,                                                                            \
                            .run = run,                                                                                \
                            .destroy = destroy,                                                                        \
                            .trace = trace}
ALGO(hk_algo_cuda_dw_last, "cuda_dw_last",
     "depthwise, channels-last: a window of pixels in registers slides along the taps");
ALGO(hk_algo_cuda_dw_first, "cuda_dw_first", "depthwise, channels-first: rows staged as f32 in shared memory");
ALGO(hk_algo_cuda_toeplitz, "cuda_toeplitz",
     "long depthwise filters as Toeplitz matrices on the tensor cores; f32 split in two tf32 parts");
ALGO(hk_algo_cuda_grouped, "cuda_grouped",
     "up to 256 channels per group: 8x8 blocks of weights per tap on the tensor cores");
ALGO(hk_algo_cuda_stem, "cuda_stem", "1 to 8 input channels: filter rows as runs of memory on the tensor cores");
ALGO(hk_algo_cuda_slide, "cuda_slide", "depthwise 3x3, 5x5, 7x7, channels-last: a thread walks down the image");
ALGO(hk_algo_cuda_plane, "cuda_plane", "depthwise 3x3, 5x5, 7x7, channels-first: rows staged in shared memory");
ALGO(hk_algo_cuda_row, "cuda_row", "depthwise, channels-first, short filters and rows: 32 bytes of y per thread");
ALGO(hk_algo_cuda_band, "cuda_band",
     "depthwise 5x5, 7x7 of 16 bits, channels-last: filter rows as Toeplitz bands on the tensor cores");
ALGO(hk_algo_cuda_bundle, "cuda_bundle",
     "3x3, groups of a multiple of 16 channels: fragments serve three rows and 16 channels");
ALGO(hk_algo_cuda_octet, "cuda_octet",
     "3x3, groups of 1, 2, 4, 8 channels: TMA ring of input rows on the tensor cores");

static hk_cu_dw_kind kind_of(const hk_algo *algo) {
  return algo == &hk_algo_cuda_dw_last    ? HK_DW_LAST
         : algo == &hk_algo_cuda_dw_first ? HK_DW_FIRST
         : algo == &hk_algo_cuda_toeplitz ? HK_DW_TOEPLITZ
         : algo == &hk_algo_cuda_grouped  ? HK_DW_GROUPED
         : algo == &hk_algo_cuda_stem     ? HK_DW_STEM
         : algo == &hk_algo_cuda_slide    ? HK_DW_SLIDE
         : algo == &hk_algo_cuda_plane    ? HK_DW_PLANE
         : algo == &hk_algo_cuda_row      ? HK_DW_ROW
         : algo == &hk_algo_cuda_band     ? HK_DW_BAND
         : algo == &hk_algo_cuda_bundle   ? HK_DW_BUNDLE
                                          : HK_DW_OCTET;
}
