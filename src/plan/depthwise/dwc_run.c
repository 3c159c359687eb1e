/* Runs a dwc plan: rows of the output, tiles of a row, blocks of channels inside one call. See dwc.h. */
#include <string.h>

#include "plan/depthwise/dwc.h"

typedef struct job {
  const hk_plan *plan;
  const hk_call *call;
  const hk_geom *g;
  const hk_dwc *p;
  int64_t from, to; /* blocks */
  const float *f;   /* weights of f_blocks blocks, of which f_first is block `from` */
  int64_t f_blocks, f_first;
  int64_t run;   /* the first of this pass */
  hk_dwc_args a; /* what all calls share */
} job;

typedef struct spot {
  int64_t n, z, p; /* an output row */
  int64_t x, y, c; /* where it begins; x at the first tap of the first output */
} spot;

static spot spot_at(const job *j, int64_t n, int64_t z, int64_t p) {
  const hk_geom *g = j->g;
  const hk_strides *cs = &j->plan->task.epi.c;
  spot s = {.n = n, .z = z, .p = p};
  s.x = s.n * g->x.outer + hk_geom_source(g, 0, s.z, 0) * g->x.at[0] + hk_geom_source(g, 1, s.p, 0) * g->x.at[1] -
        g->lo[2] * g->x.at[2];
  s.y = s.n * g->y.outer + s.z * g->y.at[0] + s.p * g->y.at[1];
  s.c = s.n * cs->outer + s.z * cs->at[0] + s.p * cs->at[1];
  return s;
}

/* ---- the epilogue that kernels do not fuse */

/* Sums of `count` channels from `channel` on, `step` floats from pixel to pixel. */
typedef struct sums {
  int64_t channel, count, step;
  float *v;
} sums;

static void store_pixels(const job *j, const spot *s, int64_t q, int64_t pixels, sums u) {
  hk_at at = {.n = s->n, .k = u.channel, .along_k = 1};
  for (int64_t i = 0; i < pixels; i++) {
    const int64_t p[3] = {s->z, s->p, q + i};
    for (int d = 0; d < j->g->rank; d++) at.p[d] = p[d + 3 - j->g->rank];
    hk_plan_store_row(j->plan, j->call, &at, u.count, u.v + i * u.step);
  }
}

static void emit_rows(const job *j, const hk_dwc_args *all, const spot *s, int64_t q, int64_t pixels, int64_t block) {
  const hk_dwc *p = j->p;
  const int64_t channels = p->y_block, together = 1 << p->share;
  const int64_t most = hk_max64(1, HK_DWC_SUMS / (all->pixels * p->vw * together)) * together;
  float scratch[HK_DWC_SUMS];
  hk_dwc_args a = *all;
  a.fuse.flags = 0;
  a.nontemporal = 0;
  a.y = scratch;
  a.y_block = p->y_lanes;
  for (int64_t b = 0; b < all->blocks; b += most) {
    const bool last = b + most >= all->blocks;
    a.blocks = last ? all->blocks - b : most;
    a.x = all->x + (b >> p->share) * a.x_block;
    a.f = all->f + b * a.f_block;
    a.last_lanes = last ? all->last_lanes : a.y_lanes;
    a.last_x_lanes = last ? all->last_x_lanes : a.x_lanes;
    a.y_step = a.blocks * p->y_lanes;
    j->plan->decision.kernel->fn(&a);
    if (p->unit > 1) { /* one block; a unit's pixels follow each other */
      store_pixels(j, s, q, pixels, (sums){0, channels, channels, scratch});
      return;
    }
    const int64_t first = (block + b) * channels, count = (a.blocks - 1) * channels + a.last_lanes;
    store_pixels(j, s, q, pixels, (sums){first, count, a.y_step, scratch});
  }
}

/* One call: units from pixel q on, blocks from `block` on; a holds x, f, runs, pixels, blocks and lanes. */
static void emit(job *j, const spot *s, int64_t q, int64_t pixels, int64_t block) {
  const hk_dwc *p = j->p;
  hk_dwc_args *a = &j->a;
  if (!p->fused) {
    emit_rows(j, a, s, q, pixels, block);
    return;
  }
  const hk_epilogue *e = &j->plan->task.epi.e;
  const int64_t channel = block * p->y_block;
  a->y = (float *)(void *)j->call->y + s->y + q * j->g->y.at[2] + channel;
  if (e->residual) a->c = (const float *)(const void *)j->call->c + s->c + q * j->plan->task.epi.c.at[2] + channel;
  if (p->unit == 1) { /* else repeated for every pixel of a unit, once a task */
    if (e->bias) a->bias = (const float *)j->call->bias + channel;
    if (e->scale == 2) a->scale = (const float *)j->call->scale + channel;
  }
  j->plan->decision.kernel->fn(a);
}

static void set_blocks(job *j, int64_t from, int64_t to) {
  const hk_dwc *p = j->p;
  const int64_t groups =
      to == p->blocks ? j->g->groups - ((p->blocks >> p->share) - 1) * p->block_groups : p->block_groups;
  j->a.blocks = to - from;
  j->a.last_x_lanes = (int32_t)(p->unit * groups * j->g->c);
  j->a.last_lanes = (int32_t)(p->unit * groups * j->g->k >> p->share);
  j->a.back = to == p->blocks ? p->back : 0;
  if (j->a.back) j->a.last_x_lanes = j->a.last_lanes = (int32_t)p->vw;
}

/* ---- direct */

static int16_t clamp16(int64_t v) { return (int16_t)(v < 0 ? 0 : v > INT16_MAX ? INT16_MAX : v); }

/* The runs of an output row: those whose window row lies outside x are emptied. True when none is. */
static bool row_runs(const job *j, const spot *s, hk_dw_run *to) {
  const hk_geom *g = j->g;
  const hk_dwc *p = j->p;
  bool all = true;
  for (int64_t i = 0; i < j->a.run_count; i++) {
    const hk_dwc_run_of *of = &p->of[j->run + i];
    const int64_t depth = hk_geom_source(g, 0, s->z, of->a);
    const int64_t row = hk_geom_source(g, 1, s->p, of->r);
    const bool in = depth >= 0 && depth < g->in[0] && row >= 0 && row < g->in[1];
    to[i] = p->runs[j->run + i];
    if (!in) to[i].last = 0;
    all &= in;
  }
  return all;
}

static void edge_runs(const job *j, const hk_dw_run *row, int64_t unit, hk_dw_run *to) {
  const hk_dwc_run_of *of = j->p->of + j->run;
  for (int64_t i = 0; i < j->a.run_count; i++) {
    to[i] = row[i];
    if (!row[i].last) continue;
    to[i].first = clamp16(of[i].first - unit);
    to[i].last = clamp16(of[i].last - unit);
  }
}

/* The last unit of a row has fewer pixels than lanes for them; `before` units precede it in its tile. */
static void last_unit(job *j, const spot *s, int64_t q, int64_t pixels, int64_t before) {
  const hk_geom *g = j->g;
  hk_dwc_args *a = &j->a;
  const int32_t x_lanes = a->last_x_lanes, y_lanes = a->last_lanes;
  a->tiles = a->pixels = 1;
  a->chain = 0;
  a->x += before * a->x_step;
  a->last_x_lanes = (int32_t)(pixels * g->c * g->groups);
  a->last_lanes = (int32_t)(pixels * g->k * g->groups);
  emit(j, s, q, pixels, j->from);
  a->last_x_lanes = x_lanes;
  a->last_lanes = y_lanes;
}

static void run_pass(job *j, const spot *s, int64_t tile, int64_t last) {
  const hk_geom *g = j->g;
  const hk_dwc *p = j->p;
  hk_dw_run row[HK_DWC_RUNS], edge[HK_DWC_RUNS];
  hk_dwc_args *a = &j->a;
  const int64_t out_units = p->unit == 1 ? g->out[2] : g->out[2] / p->unit; /* with all their pixels */
  const bool one = g->win[0] == 1 && g->win[1] == 1 && g->lo[0] == 0 && g->lo[1] == 0 && g->in[0] > 0 && g->in[1] > 0;
  const hk_dw_run *runs =
      (one && g->out[0] == 1 && g->out[1] == p->rows) || row_runs(j, s, row) ? p->runs + j->run : row;
  const float *x = (const float *)(const void *)j->call->x + s->x + (j->from >> p->share) * p->block_groups * g->c;
  for (int64_t count = 1; tile < last; tile += count) {
    const int64_t unit = tile * p->tile, units = hk_min64(p->tile, p->units - unit), q = unit * p->unit;
    const bool inside = unit >= p->inner_first && unit + units <= p->inner_last;
    if (!inside) edge_runs(j, runs, unit, edge);
    a->runs = inside ? runs : edge;
    a->x = x + q * g->stride[2] * g->x.at[2];
    const int64_t left = g->out[2] - q, whole = p->unit > 1 ? hk_min64(units, left / p->unit) : units;
    a->pixels = (int32_t)whole;
    /* whole tiles inside x are one call, or this tile of all rows is */
    const int64_t alike = inside && p->fused && p->rows == 1 ? hk_min64(p->inner_last, out_units) / p->tile : 0;
    count = hk_max64(1, hk_min64(last, alike) - tile);
    a->tiles = p->rows > 1 ? p->rows : count;
    a->chain = inside && runs == p->runs && a->run_count == p->run_count ? p->chain : 0;
    if (whole) emit(j, s, q, whole * p->unit, j->from);
    if (whole == units) continue;
    last_unit(j, s, q + whole * p->unit, left - whole * p->unit, whole);
  }
}

/* The runs of a row, pass after pass; y holds the sums between them. */
static void run_row(job *j, const spot *s, int64_t tile, int64_t last) {
  const hk_dwc *p = j->p;
  hk_dwc_args *a = &j->a;
  const hk_dw_fuse fuse = a->fuse;
  const int32_t past = a->nontemporal;
  const float *f = j->f;
  for (j->run = 0; j->run < p->run_count; j->run += p->chains) {
    const bool ends = j->run + p->chains >= p->run_count;
    a->run_count = ends ? p->run_count - j->run : p->chains;
    a->resume = j->run > 0;
    a->fuse.flags = ends ? fuse.flags : 0;
    a->nontemporal = ends ? past : 0;
    if (p->chains < p->run_count) a->f_block = hk_dwc_weights(p, j->run, j->run + a->run_count);
    a->f = f + j->f_first * a->f_block;
    run_pass(j, s, tile, last);
    f += j->f_blocks * a->f_block;
  }
}

/* ---- staged */

/* Copies the pixels of one window row that a stretch from output q on reads, some blocks wide, padded with zeros. */
static void stage_row(const job *j, const float *x, bool in, bool ahead, int64_t q, int64_t lanes, float *buffer) {
  const hk_geom *g = j->g;
  const hk_dwc *p = j->p;
  const int64_t first = hk_geom_source(g, 2, q, 0), cols = p->cols_staged;
  const int64_t from = in ? hk_max64(0, hk_min64(cols, -first)) : cols;
  const int64_t to = in ? hk_max64(from, hk_min64(cols, g->in[2] - first)) : cols;
  const int64_t row = p->vw * p->wide;
  if (from) memset(buffer, 0, (size_t)(from * row) * sizeof *buffer);
  if (from < to) {
    const hk_stage_args a = {.x = x + (first + from) * g->x.at[2],
                             .buffer = buffer + from * row,
                             .rows = to - from,
                             .cols = lanes,
                             .x_row = g->x.at[2],
                             .x_step = 1,
                             .spread = 1,
                             .phases = 1,
                             .row = row};
    p->stage(&a);
    /* the next blocks lie on the same pages, where nothing foresees that they will be read */
    if (ahead)
      for (int64_t i = 0; i < a.rows; i++) __builtin_prefetch(a.x + i * a.x_row + row, 0, 2);
  }
  if (to < cols) memset(buffer + to * row, 0, (size_t)((cols - to) * row) * sizeof *buffer);
}

static void stage(const job *j, const spot *s, int64_t block, int64_t q, int64_t lanes, float *buffer) {
  const hk_geom *g = j->g;
  const float *x = (const float *)(const void *)j->call->x + s->n * g->x.outer + block * j->p->block_groups * g->c;
  const bool ahead = !j->p->inputs && j->p->vw * j->p->wide * 4 == HK_ALIGN && block + 2 * j->p->wide <= j->to;
  for (int64_t a = 0; a < g->win[0]; a++) {
    for (int64_t r = 0; r < g->win[1]; r++, buffer += j->p->cols_staged * j->p->vw * j->p->wide) {
      const int64_t depth = hk_geom_source(g, 0, s->z, a);
      const int64_t row = hk_geom_source(g, 1, s->p, r);
      const bool in = depth >= 0 && depth < g->in[0] && row >= 0 && row < g->in[1];
      stage_row(j, x + depth * g->x.at[0] + row * g->x.at[1], in, ahead, q, lanes, buffer);
    }
  }
}

static void run_staged_row(job *j, const spot *s, int64_t tile, int64_t last) {
  const hk_dwc *p = j->p;
  _Alignas(HK_ALIGN) float buffer[HK_DWC_STAGE];
  hk_dwc_args *a = &j->a;
  a->runs = p->runs;
  a->tiles = 1;
  a->chain = 0;
  if (p->x_lanes < p->vw || j->to == p->blocks) memset(buffer, 0, sizeof buffer);
  for (; tile < last; tile += p->stretch) {
    const int64_t q = tile * p->tile, end = hk_min64(hk_min64(tile + p->stretch, last) * p->tile, p->units);
    for (int64_t block = j->from; block < j->to; block += p->wide) {
      set_blocks(j, block, hk_min64(block + p->wide, j->to));
      stage(j, s, block, q, (a->blocks - 1) * p->vw + a->last_x_lanes, buffer);
      a->last_x_lanes = (int32_t)p->vw; /* the buffer has all lanes */
      a->f = j->f + (block - j->from + j->f_first) * p->f_block;
      for (int64_t at = q; at < end; at += p->tile) {
        a->pixels = (int32_t)hk_min64(p->tile, end - at);
        a->x = buffer + (at - q) * a->x_step;
        emit(j, s, at, a->pixels, block);
      }
    }
  }
}

/* A load waits for the stores before it whose low twelve bits are its own. Where pixels lie a multiple of 4 KiB apart,
 * or half of that, these are the stores to the blocks just done, if y begins a little further on in its page than x in
 * its own; then the blocks go from the last to the first, away from them (Zen 4, 7 taps of 1024 channels x 1024, y 64
 * bytes further on: 226 us for 337, with AVX2 297 for 732; 512 bytes on 181). */
static int32_t goes_down(const hk_dwc *p, const hk_call *call) {
  if (!p->backwards) return 0;
  const uintptr_t ahead = ((uintptr_t)call->y - (uintptr_t)call->x) % 4096;
  return ahead > 0 && ahead < 512;
}

/* ---- tasks */

static void run_items(job *j, int64_t item, int64_t last) {
  const hk_dwc *p = j->p;
  const hk_geom *g = j->g;
  const int64_t rows = g->out[1] / p->rows;
  int64_t n = 0, z = 0, row = 0, tile = item;
  if (item >= p->tiles) {
    row = item / p->tiles;
    tile = item % p->tiles;
    n = row / rows / g->out[0];
    z = row / rows % g->out[0];
    row %= rows;
  }
  while (item < last) {
    const int64_t end = hk_min64(p->tiles, tile + last - item);
    const spot s = spot_at(j, n, z, p->rows > 1 && j->a.backwards ? p->rows - 1 : row);
    if (p->source == HK_DWC_STAGED) run_staged_row(j, &s, tile, end);
    else run_row(j, &s, tile, end);
    item += end - tile;
    tile = 0;
    if (++row < rows) continue;
    row = 0;
    if (++z < g->out[0]) continue;
    z = 0;
    n++;
  }
}

/* weights given at execute: one block at a time is put in order on the stack */
static void run_unpacked(job *j, int64_t from, int64_t to, int64_t item, int64_t last) {
  _Alignas(HK_ALIGN) float weights[HK_DWC_WEIGHTS];
  for (int64_t b = from; b < to; b++) {
    hk_dwc_pack(j->g, j->p, (const float *)(const void *)j->call->f, b, 0, j->p->run_count, weights);
    j->from = b;
    j->to = b + 1;
    j->f = weights;
    j->f_blocks = 1;
    j->f_first = 0;
    set_blocks(j, b, b + 1);
    run_items(j, item, last);
  }
}

/* Field by field: to clear the whole would take as long as a small problem. */
static void share_args(job *j) {
  const hk_geom *g = j->g;
  const hk_dwc *p = j->p;
  hk_dwc_args *a = &j->a;
  a->scale = a->bias = a->c = NULL;
  a->resume = 0;
  a->backwards = 0;
  a->index = p->index;
  a->run_count = p->run_count;
  a->x_step = p->source == HK_DWC_STAGED ? p->vw * p->wide * g->stride[2] : p->unit * g->stride[2] * g->x.at[2];
  a->y_step = p->unit * g->y.at[2];
  a->c_step = p->unit * j->plan->task.epi.c.at[2];
  a->x_next = p->rows > 1 ? g->stride[1] * g->x.at[1] : p->tile * a->x_step;
  a->y_next = p->rows > 1 ? g->y.at[1] : p->tile * a->y_step;
  a->c_next = p->rows > 1 ? j->plan->task.epi.c.at[1] : p->tile * a->c_step;
  a->x_block = p->block_groups * g->c;
  a->y_block = p->y_block;
  a->x_shift = (int32_t)p->share;
  a->f_block = p->f_block;
  a->inputs = (int32_t)p->inputs;
  a->x_lanes = (int32_t)p->x_lanes;
  a->y_lanes = (int32_t)p->y_lanes;
  a->broadcast = p->unit == 1 && p->block_groups == 1;
  a->scale_one = j->plan->task.epi.e.scale == 1;
  a->fuse = p->fuse;
}

static void body(void *context, int64_t i) {
  const hk_shared *h = context;
  const hk_geom *g = &h->plan->task.geom;
  const hk_dwc *p = h->plan->own;
  const hk_epilogue *e = &h->plan->task.epi.e;
  int64_t from, to, item, last;
  float repeated[2][32];
  hk_piece(p->blocks >> p->share, i / p->parts, p->shards, &from, &to);
  from <<= p->share;
  to <<= p->share;
  hk_piece(p->items, i % p->parts, p->parts, &item, &last);
  if (from == to || item == last) return;
  job j;
  j.plan = h->plan;
  j.call = h->call;
  j.g = g;
  j.p = p;
  j.from = from;
  j.to = to;
  share_args(&j);
  j.a.nontemporal = p->past && (uintptr_t)h->call->y % HK_ALIGN == 0;
  j.a.backwards = goes_down(p, h->call);
  if (j.a.backwards && p->rows > 1) { /* and the rows from the last to the first */
    j.a.x_next = -j.a.x_next;
    j.a.y_next = -j.a.y_next;
    j.a.c_next = -j.a.c_next;
  }
  if (e->scale) j.a.scale = h->call->scale;
  if (p->unit > 1) {
    for (int64_t l = 0; l < p->y_lanes; l++) {
      if (e->scale == 2) repeated[0][l] = ((const float *)h->call->scale)[l % (g->k * g->groups)];
      if (e->bias) repeated[1][l] = ((const float *)h->call->bias)[l % (g->k * g->groups)];
    }
    if (e->scale == 2) j.a.scale = repeated[0];
    if (e->bias) j.a.bias = repeated[1];
  }
  set_blocks(&j, from, to);
  if (!h->plan->task.f_now) {
    run_unpacked(&j, from, to, item, last);
    return;
  }
  j.f = (const float *)h->plan->packed->f;
  j.f_blocks = p->blocks;
  j.f_first = from;
  run_items(&j, item, last);
}

/* ---- at once: what small problems would spend on finding their way, found at creation */

void hk_dwc_prepare(const hk_plan *plan, hk_dwc *p) {
  const hk_geom *g = &plan->task.geom;
  const hk_epilogue *e = &plan->task.epi.e;
  const bool one_row = g->n == 1 && g->out[0] == 1 && g->out[1] == 1 && g->win[0] == 1 && g->win[1] == 1 &&
                       g->lo[0] == 0 && g->lo[1] == 0 && g->in[0] > 0 && g->in[1] > 0;
  const bool plain = p->unit == 1 || (g->out[2] % p->unit == 0 && !e->bias && e->scale != 2);
  p->at_once = one_row && plain && p->source == HK_DWC_DIRECT && p->fused && plan->task.f_now && !e->residual &&
               p->shards * p->parts == 1 && p->chains >= p->run_count && p->inner_first <= 0 &&
               p->inner_last >= p->units;
  if (!p->at_once) return;
  job j = {.plan = plan, .g = g, .p = p, .to = p->blocks};
  share_args(&j);
  set_blocks(&j, 0, p->blocks);
  p->args = j.a;
  p->args.f = plan->packed->f;
  p->args.runs = p->runs;
  p->args.chain = p->chain;
  p->args.pixels = (int32_t)p->tile;
  p->args.tiles = p->units / p->tile;
  p->rest = p->units % p->tile;
}

static void run_at_once(const hk_plan *plan, const hk_call *call) {
  const hk_dwc *p = plan->own;
  const hk_kernel_fn kernel = plan->decision.kernel->fn;
  hk_dwc_args a = p->args;
  a.x = (const float *)(const void *)call->x - plan->task.geom.lo[2] * plan->task.geom.x.at[2];
  a.y = (float *)(void *)call->y;
  a.nontemporal = p->past && (uintptr_t)a.y % HK_ALIGN == 0;
  a.backwards = goes_down(p, call);
  if (plan->task.epi.e.scale) a.scale = call->scale;
  if (plan->task.epi.e.bias) a.bias = call->bias;
  if (a.tiles) kernel(&a);
  if (!p->rest) return;
  a.x += a.tiles * a.x_next;
  a.y += a.tiles * a.y_next;
  a.tiles = 1;
  a.pixels = (int32_t)p->rest;
  kernel(&a);
}

hk_status hk_dwc_run(const hk_plan *plan, const hk_call *call) {
  const hk_dwc *p = plan->own;
  if (p->at_once) {
    run_at_once(plan, call);
    return HK_OK;
  }
  hk_shared h = {plan, call};
  hk_plan_parallel(plan, p->shards * p->parts, body, &h);
  return HK_OK;
}
