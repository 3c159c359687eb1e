/* Depthwise convolution, lanes along the last dimension (channels-first): one input channel per group, any multiplier,
 * window, stride, padding, dilation of filter and input, any strides of x. f32 data; y of any type, fastest with a
 * contiguous last dimension. No workspace. Refuses gates and state. See dwp.h for how planes are read. */

#include "cost/cost.h"
#include "plan/depthwise/dwp.h"

/* floats of a band that stay in a 32 KiB L1 beside the rows that stream through it */
#define BAND 5120

static bool one_row(const hk_geom *g) {
  return g->win[0] == 1 && g->win[1] == 1 && g->out[0] == 1 && g->out[1] == 1 && g->lo[0] == 0 && g->lo[1] == 0 &&
         g->in[0] > 0 && g->in[1] > 0; /* an x without rows has none to read */
}

/* Farthest a tap of dimension d lies from the first, in steps of the stride */
static int64_t reach(const hk_geom *g, int d) { return (g->win[d] - 1) * g->dil[d] / g->stride[d]; }

static void buffer_shape(const hk_geom *g, hk_dwp *p) {
  const int64_t q = hk_min64(p->band_q, g->out[2]);
  p->phases = g->stride[2];
  p->pitch = hk_round_up(hk_max64(hk_round_up(q, p->vw), q + 8) + reach(g, 2), 8);
  p->row = p->phases * p->pitch;
  p->rows = (p->band_p - 1) * g->stride[1] + (g->win[1] - 1) * g->dil[1] + 1;
  p->used = g->win[0] * p->rows * p->row;
}

static bool fits(const hk_geom *g, hk_dwp *p, int64_t limit) {
  /* sizes that would overflow a product never fit */
  if (g->win[2] * g->dil[2] > HK_DW_BUFFER || g->win[1] * g->dil[1] > HK_DW_BUFFER || g->win[0] > HK_DW_BUFFER ||
      g->stride[2] > HK_DW_BUFFER || g->stride[1] > HK_DW_BUFFER || p->band_p > HK_DW_BUFFER ||
      hk_min64(p->band_q, g->out[2]) > HK_DW_BUFFER)
    return false;
  buffer_shape(g, p);
  return p->used + 8 <= limit;
}

/* Whole rows while about eight of them fit, then as many rows as L1 holds; the last resort is the whole buffer. */
static bool choose_band(const hk_geom *g, hk_dwp *p) {
  for (int limit = BAND; limit <= HK_DW_BUFFER; limit = limit == BAND ? HK_DW_BUFFER : HK_DW_BUFFER + 1) {
    p->band_p = hk_min64(g->out[1], 8);
    for (p->band_q = g->out[2]; !fits(g, p, limit) && p->band_q > 64;) p->band_q = hk_ceil_div(p->band_q, 2);
    while (!fits(g, p, limit) && p->band_p > 1) p->band_p = hk_ceil_div(p->band_p, 2);
    while (!fits(g, p, limit) && p->band_q > p->vw) p->band_q = hk_ceil_div(p->band_q, 2);
    if (!fits(g, p, limit)) continue;
    /* each row more adds stride[1] lines to every slice of the buffer */
    const int64_t line = g->win[0] * p->row, spare = (limit - 8 - p->used) / line / g->stride[1];
    p->band_p = hk_min64(g->out[1], p->band_p + spare);
    p->band_p = hk_ceil_div(g->out[1], hk_ceil_div(g->out[1], p->band_p));
    return fits(g, p, limit);
  }
  return false;
}

/* Rows or vectors between the vectors of a tile, so that taps chain; 1 where nothing chains. */
static int64_t choose_spread(const hk_geom *g, const hk_dwp *p) {
  const int d = p->down ? 1 : 2;
  const int64_t apart = g->dil[d] / hk_gcd(g->dil[d], g->stride[d]);
  const int64_t spread = p->down ? apart : apart / hk_gcd(apart, p->vw);
  const int64_t vectors = p->down ? p->band_p : hk_ceil_div(hk_min64(p->band_q, g->out[2]), p->vw);
  const int64_t step = p->down ? spread * g->stride[1] : spread * p->vw;
  const int64_t span = p->down ? (g->win[1] - 1) * g->dil[1] : reach(g, 2);
  return step <= span && spread * 2 <= vectors ? spread : 1;
}

/* x may be read in place, with masks: taps of one chain lie in one column of one slice. */
static bool maskable(const hk_task *t, const hk_kernel *kernel) {
  const hk_geom *g = &t->geom;
  return kernel->isa == HK_ISA_AVX512 && g->stride[2] == 1 && g->x.at[2] == 1 && g->in_dil[0] == 1 &&
         g->in_dil[1] == 1 && g->in_dil[2] == 1 && (g->win[2] - 1) * g->dil[2] < g->x.at[1] && g->x.at[1] < (1 << 20) &&
         g->out[2] < (1 << 20) && g->win[1] * g->dil[1] < 4096 &&
         (g->win[0] == 1 || ((g->win[1] - 1) * g->dil[1] + g->stride[1] + 1) * g->x.at[1] <= g->dil[0] * g->x.at[0]) &&
         g->win[0] * g->dil[0] < 4096 && g->x.at[0] < (1 << 18) && g->taps <= HK_DWP_RUNS && g->in[2] > 0;
}

/* Neighbouring taps of a short window are shifted together from whole vectors; longer windows chain. */
static bool fans(const hk_geom *g, const hk_dwp *p) {
  return p->source != HK_DWP_GATHER && p->source != HK_DWP_MASKED && !p->down && p->spread == 1 && p->vw > 1 &&
         g->win[2] > 1 && reach(g, 2) < 2 * p->vw - 1 && g->dil[2] / hk_gcd(g->dil[2], g->stride[2]) == 1;
}

/* Loads a vector and tap, of tiles of so many vectors, where every `apart`-th of `taps` taps chain. */
static double shared_loads(double vectors, int64_t taps, int64_t apart) {
  const int64_t runs = hk_tap_run_count(taps, apart);
  return ((double)runs * (vectors - 1) + (double)taps) / (vectors * (double)taps);
}

/* cycles a vector and tap cost: products, or the loads that chains share; measured on Zen 4 */
static double load_throughput(const hk_kernel *kernel, double shared) {
  const double peak = hk_cost_flops(kernel->isa), width = kernel->nr == 8 && peak > 32 ? 32 : peak;
  const double product = 2.0 * kernel->nr / width;
  const double load = (kernel->nr > 8 ? 3.2 : kernel->nr == 8 ? 1.5 : 0.6) * shared; /* most cross cache lines */
  return load > product ? load : product * (1.0 + 0.1 * shared);
}

/* Where the taps of a row chain, `spread` vectors apart. */
static double along_throughput(const hk_geom *g, const hk_dwp *p, const hk_kernel *kernel) {
  const int64_t step = p->spread * p->vw, apart = g->dil[2] / hk_gcd(g->dil[2], g->stride[2]);
  const int64_t all = hk_ceil_div(hk_min64(p->band_q, g->out[2]), step);
  /* tiles that spread far are calls of few vectors */
  const double vectors = p->spread > 1 ? (double)hk_min64(kernel->mr, all) : (double)kernel->mr;
  const double call = p->spread > 1 ? 60.0 / (vectors * (double)g->win[2]) : 0.0;
  return call +
         load_throughput(kernel, step % apart ? 1.0 : shared_loads(vectors, g->win[2], hk_max64(1, step / apart)));
}

/* A line of taps further apart than one: loads, most of which cross cache lines. */
static double apart_throughput(const hk_kernel *kernel) {
  const double peak = hk_cost_flops(kernel->isa), width = kernel->nr == 8 && peak > 32 ? 32 : peak;
  return (kernel->nr > 8 ? 1.75 : 1.6) * 2.0 * kernel->nr / width;
}

static double tap_throughput(const hk_geom *g, const hk_dwp *p, const hk_kernel *kernel) {
  const double peak = hk_cost_flops(kernel->isa), width = kernel->nr == 8 && peak > 32 ? 32 : peak;
  if (p->line && g->dil[2] > 1) return apart_throughput(kernel);
  if (p->line && p->vw == 16) return 1.15 * 2.0 * kernel->nr / width;
  if (fans(g, p)) return 1.45 * 2.0 * kernel->nr / width;
  if (p->down) /* 3 x 3 of 112 x 112 from a band: 16 lanes take 1.2 times as long as 8; of 14 x 14 under masks it is the
                  other way */
    return ((kernel->nr > 8) == (p->source == HK_DWP_BAND) ? 1.25 : 1.0) *
           load_throughput(kernel, shared_loads((double)kernel->mr, g->win[1], g->stride[1]));
  return along_throughput(g, p, kernel);
}

/* The same where outputs fold: what the last vector of a row does twice counts too, and its stores cross lines. */
static double fold_throughput(const hk_geom *g, const hk_dwp *p, const hk_kernel *kernel, int64_t fold) {
  const int64_t rows = hk_max64(1, hk_ceil_div(p->inner_hi - p->inner_lo, fold));
  const double twice = (double)hk_round_up(fold, p->vw) / (double)fold;
  const double vectors = (double)hk_min64(kernel->mr, rows), latency = 4.0 / vectors;
  const double cycles = load_throughput(kernel, shared_loads(vectors, g->win[2], fold / g->dil[2]));
  const double store = 0.15 * (double)p->vw / (double)g->win[2];
  return twice * ((cycles > latency ? cycles : latency) + store);
}

/* A residual may be y itself, so with one no output is computed twice. */
static bool foldable(const hk_task *t, const hk_dwp *p) {
  hk_dw_fuse fuse;
  return p->source == HK_DWP_DIRECT && p->vw > 1 && !t->epi.e.residual && t->geom.y.at[2] == 1 &&
         hk_dw_fuse_make(t, &fuse);
}

/* How many outputs apart the vectors of a tile are best; 0: as the spread says. */
static int64_t choose_fold(const hk_task *t, const hk_dwp *p, const hk_kernel *kernel) {
  const hk_geom *g = &t->geom;
  if (g->dil[2] < 2 || !foldable(t, p)) return 0;
  double best = 0.85 * tap_throughput(g, p, kernel);
  int64_t fold = 0;
  for (int64_t apart = 1; apart < g->win[2] && apart <= 4; apart++) {
    const int64_t size = apart * g->dil[2];
    if (size < p->vw || 3 * size > p->inner_hi - p->inner_lo) continue;
    const double cycles = fold_throughput(g, p, kernel, size);
    if (cycles > best) continue;
    best = cycles;
    fold = size;
  }
  return fold;
}

/* Whether the window may be taken as a line. */
static bool can_line(const hk_task *t, const hk_dwp *p, const hk_kernel *kernel) {
  const hk_geom *g = &t->geom;
  hk_dw_fuse fuse;
  const bool fused = hk_dw_fuse_make(t, &fuse) && g->y.at[2] == 1 && (!t->epi.e.residual || t->epi.c.at[2] == 1);
  if (p->source != HK_DWP_DIRECT || !fused || p->fold || p->vw == 1) return false;
  if (g->dil[2] > 1) return g->win[2] > 1 && g->win[2] <= HK_LINE_APART;
  return fans(g, p) && g->win[2] <= HK_LINE_TAPS(kernel->isa == HK_ISA_AVX2 ? 16 : 32);
}

/* Far taps fold better, where there are outputs enough to: 7 taps 64 apart of 4096 in 37 us, 51 as a line; 9 apart in
 * 71 and 56. */
static bool choose_line(const hk_task *t, const hk_dwp *p, const hk_kernel *kernel) {
  const hk_geom *g = &t->geom;
  const bool near = g->dil[2] < 24 || 3 * g->dil[2] > p->inner_hi - p->inner_lo;
  if (!can_line(t, p, kernel)) return false;
  return g->dil[2] == 1 || (near && apart_throughput(kernel) < along_throughput(g, p, kernel));
}

bool hk_dwp_layout(const hk_task *t, hk_decision *d, hk_dwp *p) {
  const hk_geom *g = &t->geom;
  p->vw = d->kernel->nr;
  p->mr = d->kernel->mr;
  p->source = d->knob[HK_DWP_SOURCE];
  p->down = d->knob[HK_DWP_DOWN];
  p->band_p = d->knob[HK_DWP_ROWS];
  p->band_q = d->knob[HK_DWP_COLS];
  p->shards = d->knob[HK_DWP_SHARDS];
  p->parts = d->knob[HK_DWP_PARTS];
  p->bands_p = hk_ceil_div(g->out[1], p->band_p);
  p->bands_q = hk_ceil_div(g->out[2], p->band_q);
  p->bands = g->out[0] * p->bands_p * p->bands_q;
  p->phases = 1;
  const bool spreads = p->source == HK_DWP_BAND || p->source == HK_DWP_DIRECT;
  const int64_t spread = spreads ? choose_spread(g, p) : 1;
  if (d->knob[HK_DWP_SPREAD] < 0) d->knob[HK_DWP_SPREAD] = spread;
  p->spread = d->knob[HK_DWP_SPREAD];
  if (p->spread != 1 && p->spread != spread) return false;
  if (p->source == HK_DWP_DIRECT) {
    p->inner_lo = hk_max64(0, g->lo[2]);
    p->inner_hi = hk_min64(g->out[2], g->in[2] + g->lo[2] - (g->win[2] - 1) * g->dil[2]);
    p->fold = d->knob[HK_DWP_FOLD];
  }
  if (d->knob[HK_DWP_LINE] < 0) d->knob[HK_DWP_LINE] = choose_line(t, p, d->kernel);
  if (d->knob[HK_DWP_LINE] && !can_line(t, p, d->kernel)) return false;
  p->line = d->knob[HK_DWP_LINE] ? (int32_t)g->win[2] : 0;
  if (p->source == HK_DWP_MASKED) {
    p->row_tiles = hk_ceil_div(p->band_p, p->mr);
    p->tile_rows = hk_ceil_div(p->band_p, p->row_tiles);
    return p->row_tiles * g->taps <= HK_DWP_RUNS;
  }
  return p->source != HK_DWP_BAND || fits(g, p, HK_DW_BUFFER);
}

/* few vectors of sums do not hide the latency of four cycles */
static double tap_cycles(const hk_geom *g, const hk_dwp *p, const hk_kernel *kernel) {
  int64_t vectors = p->down ? p->band_p : hk_ceil_div(hk_min64(p->band_q, g->out[2]), p->vw);
  /* a row that ends in part of a vector takes two tiles, of which the second is moved back */
  if (p->source == HK_DWP_DIRECT && g->out[2] % p->vw && vectors <= kernel->mr) vectors = hk_ceil_div(vectors, 2);
  if (p->fold) return fold_throughput(g, p, kernel, p->fold);
  if (p->line) vectors = g->out[2] * g->groups / p->vw;
  const double cycles = tap_throughput(g, p, kernel),
               latency = 4.0 / (double)hk_max64(1, hk_min64(vectors, kernel->mr));
  return cycles > latency ? cycles : latency;
}

/* Outputs at one end of a plane of one row: a padded copy, then tiles of their own. */
static double edge_cycles(const hk_geom *g, const hk_dwp *p, const hk_kernel *kernel, int64_t outputs) {
  if (outputs <= 0) return 0;
  const int64_t vectors = hk_ceil_div(outputs, p->vw), span = (g->win[2] - 1) * g->dil[2];
  const double throughput = tap_throughput(g, p, kernel), latency = 4.0 / (double)hk_min64(vectors, kernel->mr);
  return 250.0 + 0.1 * (double)(span + outputs) +
         (double)(vectors * g->taps) * (throughput > latency ? throughput : latency);
}

static double predict(const hk_task *t, const hk_decision *d, const hk_dwp *p) {
  const hk_geom *g = &t->geom;
  const double planes = (double)g->n * (double)g->groups * (double)g->k;
  const double rows = planes * (double)g->out[0] * (double)g->out[1];
  const bool direct = p->source == HK_DWP_DIRECT;
  const int64_t lo = direct ? hk_min64(g->out[2], p->inner_lo) : 0, hi = direct ? hk_max64(lo, p->inner_hi) : g->out[2];
  const bool edges = lo > 0 || hi < g->out[2];
  const double vectors = rows * (double)hk_ceil_div(hi - lo, p->vw);
  const double gather = p->source == HK_DWP_GATHER ? p->vw * 2.0 : 0.0;
  const double store = p->line ? 0.7 : 1.5;
  double cycles = vectors * ((double)g->taps * (tap_cycles(g, p, d->kernel) + gather) + store);
  cycles += planes * (p->line && !edges ? 15.0 : 80.0) * (double)p->bands;
  if (direct) cycles += planes * (edge_cycles(g, p, d->kernel, lo) + edge_cycles(g, p, d->kernel, g->out[2] - hi));
  if (p->source == HK_DWP_BAND) {
    const double staged = planes / (double)g->k * (double)p->bands * (double)p->used / (double)p->phases;
    /* the kernel splits up to eight phases in vectors; others go one by one */
    const bool single = g->x.at[2] != 1 || p->phases > 8 || g->in_dil[2] != 1;
    cycles += staged * (single ? 1.5 : 1.5 / (double)p->vw);
    /* clearing the buffer once per band; a call per row where tiles go along it */
    cycles += (double)p->bands * (double)p->used / 8 + (p->down ? 0 : rows * hk_cost_here()->kernel / 2);
  }
  /* weights given at execute are put in order once per plane (Zen 4: 96 channels, windows of 56 x 56) */
  if (!t->f_now) cycles += 10.0 * planes * (double)g->taps;
  hk_work w = {.cycles = cycles, .moved = hk_cost_move(g->bytes, g->bytes)};
  const bool fused = p->line || (p->fused && g->y.at[2] == 1 && (!t->epi.e.residual || t->epi.c.at[2] == 1));
  if (!fused) hk_work_store(&w, t, false, p->down ? vectors : rows * (double)p->bands_q);
  return hk_cost_seconds(&hk_cost_here()->dwp, &w, d->knob[HK_DWP_SHARDS] * d->knob[HK_DWP_PARTS], t->threads);
}

static void choose_split(const hk_task *t, hk_decision *d, hk_dwp *p) {
  const hk_geom *g = &t->geom;
  const int64_t planes = hk_max64(1, g->n * g->groups);
  d->knob[HK_DWP_SHARDS] = hk_min64(t->threads, planes);
  d->knob[HK_DWP_PARTS] = 1;
  if (planes >= 2 * t->threads || t->threads == 1) return;
  const int64_t want = hk_ceil_div(2 * t->threads, d->knob[HK_DWP_SHARDS]);
  if (p->source == HK_DWP_MASKED) p->band_p = hk_ceil_div(g->out[1], want);
  if (p->source == HK_DWP_DIRECT) p->band_q = hk_round_up(hk_ceil_div(g->out[2], want), p->vw * p->mr);
  const int64_t bands = g->out[0] * hk_ceil_div(g->out[1], p->band_p) * hk_ceil_div(g->out[2], p->band_q);
  d->knob[HK_DWP_PARTS] = hk_min64(want, bands);
}

static bool supported(const hk_task *t, char *why) {
  const hk_geom *g = &t->geom;
  if (g->x_type != HK_F32 || g->f_type != HK_F32 || g->acc_type != HK_F32) return hk_refuse(why, "x and f must be f32");
  if (g->c != 1) return hk_refuse(why, "c must be 1 per group");
  if (t->epi.e.gate) return hk_refuse(why, "epilogue.gate must be 0");
  if (t->options.stateful) return hk_refuse(why, "options.stateful must be 0");
  if (!t->f_now && g->taps > HK_DW_TAPS_NOW) return hk_refuse(why, "the window is too large for weights at execute");
  if (g->taps > HK_TABLE_TAPS) return hk_refuse(why, "the window has more than 262144 taps");
  return true;
}

static bool offer(const hk_task *t, hk_decision *d, char *why) {
  const hk_geom *g = &t->geom;
  if (!supported(t, why)) return false;
  if (g->gm == 0) return hk_refuse(why, "y is empty");
  hk_dwp p = {.vw = d->kernel->nr, .mr = d->kernel->mr};
  p.fused = hk_dw_fuse_make(t, &p.fuse);
  p.source = choose_band(g, &p) ? HK_DWP_BAND : HK_DWP_GATHER;
  if (p.source == HK_DWP_GATHER) {
    p.band_p = 1;
    p.band_q = hk_min64(g->out[2], p.vw * p.mr * 8);
  }
  if (one_row(g) && g->stride[2] == 1 && g->in_dil[2] == 1 && g->x.at[2] == 1 &&
      (g->win[2] - 1) * g->dil[2] < INT32_MAX) {
    p.source = HK_DWP_DIRECT;
    p.band_p = 1;
    p.band_q = g->out[2];
  }
  /* planes of few columns: the copy would take as long as the products */
  if (p.source == HK_DWP_BAND && g->out[2] <= 32 && g->win[1] > 1 && g->out[1] >= 3 && maskable(t, d->kernel) &&
      hk_ceil_div(g->out[1], p.mr) * g->taps <= HK_DWP_RUNS) {
    p.source = HK_DWP_MASKED;
    p.band_p = g->out[1];
    p.band_q = g->out[2];
  }
  p.down = p.source == HK_DWP_MASKED || (p.source == HK_DWP_BAND && g->win[1] > 1 && g->out[1] >= 3);
  choose_split(t, d, &p);
  d->knob[HK_DWP_SOURCE] = p.source;
  d->knob[HK_DWP_DOWN] = p.down;
  d->knob[HK_DWP_ROWS] = p.band_p;
  d->knob[HK_DWP_COLS] = p.band_q;
  d->knob[HK_DWP_FOLD] = 0;
  if (!hk_dwp_layout(t, d, &p)) return hk_refuse(why, "the window fits no buffer");
  p.fold = d->knob[HK_DWP_FOLD] = choose_fold(t, &p, d->kernel);
  if (p.fold) d->knob[HK_DWP_LINE] = 0;
  d->predicted_s = predict(t, d, &p);
  d->workspace_bytes = 0;
  return true;
}

static bool check(const hk_task *t, hk_decision *d, char *why) {
  const hk_geom *g = &t->geom;
  hk_dwp p = {0};
  if (!supported(t, why)) return false;
  if (d->knob[HK_DWP_DOWN] && d->knob[HK_DWP_SOURCE] != HK_DWP_BAND && d->knob[HK_DWP_SOURCE] != HK_DWP_MASKED)
    return hk_refuse(why, "down needs source=1 or 3");
  if (d->knob[HK_DWP_SOURCE] == HK_DWP_MASKED &&
      (!maskable(t, d->kernel) || !d->knob[HK_DWP_DOWN] || d->knob[HK_DWP_COLS] < g->out[2]))
    return hk_refuse(why, "source=3 needs stride 1 along contiguous rows, free masks, down=1 and whole rows");
  if (d->knob[HK_DWP_ROWS] > g->out[1]) return hk_refuse(why, "rows is at most the output's rows");
  if (d->knob[HK_DWP_SOURCE] == HK_DWP_DIRECT && !(one_row(g) && g->stride[2] == 1 && g->in_dil[2] == 1 &&
                                                   g->x.at[2] == 1 && (g->win[2] - 1) * g->dil[2] < INT32_MAX))
    return hk_refuse(why, "source=0 needs one contiguous dimension and stride 1");
  d->workspace_bytes = 0;
  if (!hk_dwp_layout(t, d, &p))
    return hk_refuse(why, "the band does not fit the buffer, or spread or line this window");
  const int64_t fold = d->knob[HK_DWP_FOLD];
  if (fold && !(foldable(t, &p) && fold >= p.vw && fold % g->dil[2] == 0))
    return hk_refuse(why, "fold is 0 or a multiple of the dilation of a vector or more, source=0, an epilogue that "
                          "fuses, no residual");
  p.fused = hk_dw_fuse_make(t, &p.fuse);
  d->predicted_s = g->gm ? predict(t, d, &p) : 0;
  return true;
}

/* Other ways worth timing: the other direction of the tile, a band of half the rows. */
static bool vary(const hk_task *t, const hk_decision *base, int index, hk_decision *d) {
  char why[HK_REASON];
  for (int seen = 0, i = 0; i < 3; i++) {
    *d = *base;
    if (base->knob[HK_DWP_SOURCE] != HK_DWP_BAND) return false;
    if (i == 0) d->knob[HK_DWP_DOWN] = !base->knob[HK_DWP_DOWN];
    if (i == 1) d->knob[HK_DWP_ROWS] = hk_ceil_div(base->knob[HK_DWP_ROWS], 2);
    if (i == 2) d->knob[HK_DWP_ROWS] = hk_min64(t->geom.out[1], base->knob[HK_DWP_ROWS] * 2);
    if (i > 0 && d->knob[HK_DWP_ROWS] == base->knob[HK_DWP_ROWS]) continue;
    if (check(t, d, why) && seen++ == index) return true;
  }
  return false;
}

static hk_status make_chain(const hk_geom *g, hk_dwp *p) {
  int64_t *offset = hk_alloc((size_t)g->taps * sizeof *offset);
  if (!offset) return hk_fail(HK_NO_MEMORY, "no memory for %lld taps", (long long)g->taps);
  for (int64_t t = 0; t < g->taps; t++) {
    const int64_t s = t % g->win[2] * g->dil[2], r = t / g->win[2] % g->win[1] * g->dil[1],
                  a = t / g->win[2] / g->win[1];
    offset[t] = (a * p->rows + r) * p->row + s % p->phases * p->pitch + s / p->phases;
    if (p->source == HK_DWP_MASKED) offset[t] = a * g->dil[0] * g->x.at[0] + r * g->x.at[1] + s;
    if (p->source == HK_DWP_GATHER) offset[t] = t;
  }
  int64_t step = p->down ? p->spread * g->stride[1] * p->row : p->spread * p->vw;
  if (p->source == HK_DWP_MASKED) step = g->stride[1] * g->x.at[1];
  if (p->source == HK_DWP_GATHER) step = g->taps; /* natural order, no chains */
  if (fans(g, p)) step = 0;
  if (p->fold) step = p->fold;
  if (p->line && g->dil[2] > 1) step = g->taps * g->dil[2]; /* natural order, no chains */
  const bool ok = hk_tap_runs_make(&p->chain, offset, g->taps, step);
  hk_free(offset);
  return ok ? HK_OK : hk_fail(HK_NO_MEMORY, "no memory for %lld taps", (long long)g->taps);
}

static void destroy(hk_plan *plan) {
  hk_dwp *p = plan->own;
  if (p) hk_tap_runs_free(&p->chain);
  hk_free(p);
}

static hk_status build(hk_plan *plan) {
  hk_dwp *p = plan->own = hk_alloc_zero(sizeof *p);
  if (!p) return hk_fail(HK_NO_MEMORY, "no memory for a plan");
  hk_dwp_layout(&plan->task, &plan->decision, p);
  p->stage = hk_kernel_best(HK_FAMILY_STAGE, plan->decision.kernel->isa)->fn;
  p->fused = hk_dw_fuse_make(&plan->task, &p->fuse) && plan->task.geom.y.at[2] == 1 &&
             (!plan->task.epi.e.residual || plan->task.epi.c.at[2] == 1);
  const hk_status s = make_chain(&plan->task.geom, p);
  return s ? s : hk_tap_runs_pack(plan, &p->chain);
}

static void trace(const hk_plan *plan, hk_text *t) {
  const hk_dwp *p = plan->own;
  hk_text_add(t, " source=%lld down=%lld spread=%lld fold=%lld line=%d bands=%lld phases=%lld", (long long)p->source,
              (long long)p->down, (long long)p->spread, (long long)p->fold, p->line, (long long)p->bands,
              (long long)p->phases);
  hk_text_add(t, " runs=%lld fans=%d fused=%d shards=%lld parts=%lld", (long long)p->chain.run_count,
              fans(&plan->task.geom, p), p->fused, (long long)p->shards, (long long)p->parts);
}

const hk_algo hk_algo_dwp = {.name = "dwp",
                             .summary = "depthwise, vectors along the last dimension (channels-first)",
                             .knobs = {HK_KNOB("source", HK_DWP_DIRECT, HK_DWP_MASKED), HK_KNOB("down", 0, 1),
                                       HK_KNOB_OF("rows", ROWS), HK_KNOB_OF("cols", COLUMNS),
                                       HK_KNOB("shards", 1, HK_THREAD_PIECES), HK_KNOB("parts", 1, HK_THREAD_PIECES),
                                       HK_KNOB("fold", 0, INT32_MAX), HK_KNOB_ORDER("spread", 1, INT32_MAX),
                                       HK_KNOB_ORDER("line", 0, 1)},
                             .family = HK_FAMILY_DWP,
                             .device = HK_CPU,
                             .offer = offer,
                             .vary = vary,
                             .check = check,
                             .build = build,
                             .run = hk_dwp_run,
                             .destroy = destroy,
                             .trace = trace};
