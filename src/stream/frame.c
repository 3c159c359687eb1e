/* Convolutions over interleaved frames: whether a chain runs in the caller's channels-last layout, how its convolutions
 * are cut into tiles of the frame family, their weights, and the call.
 *
 * A chain runs interleaved where every live step is a convolution or an element-wise activation, x and y are dense, and
 * the products that idle lanes waste cost less than transposing both ends. A tile is a vector of outputs: several whole
 * frames if two or more fit, else whole groups of a frame, else a part of one group. */
#include <string.h>

#include "stream/stream.h"

enum { MOST_TILES = 16 }; /* of an op; with more, transposing is a small part of the work */

typedef struct tiling {
  int64_t frames, groups, parts; /* per vector: frames, or whole groups; or the vectors per group */
} tiling;

static tiling tiling_of(int64_t width, int64_t c, int64_t k, int64_t groups) {
  const int64_t frame = hk_max64(c, k), group = hk_max64(c, k) / groups;
  if (2 * frame <= width) return (tiling){width / frame, groups, 1};
  if (2 * group <= width) return (tiling){1, hk_min64(groups, width / group), 1};
  return (tiling){1, 1, hk_ceil_div(k / groups, width)};
}

static int64_t vectors_per_frame(const tiling *t, int64_t groups) { return hk_ceil_div(groups, t->groups) * t->parts; }

/* Cycles per frame at two products per cycle, in products; a permute costs a third of one (Zen 5: 8 FMAs 1.05 ns, with
 * 8 permutes 1.36 ns), a transposed channel half of one. */
static double interleaved_products(int64_t width, const hk_step *s, int64_t c) {
  const int64_t groups = s->groups ? s->groups : 1, window = s->window ? s->window : 1;
  const tiling t = tiling_of(width, c, s->k, groups);
  const bool permutes = t.frames * t.groups > 1 && c > groups;
  return (double)(vectors_per_frame(&t, groups) * window * (c / groups)) * (permutes ? 4.0 / 3 : 1) / (double)t.frames;
}

static double planar_products(int64_t width, const hk_step *s, int64_t c) {
  return (double)(s->k * (c / (s->groups ? s->groups : 1)) * (s->window ? s->window : 1)) / (double)width;
}

static bool conv_fits(const hk_step *s) {
  const hk_act act = s->act.act;
  return s->stride <= 1 && !s->mix && s->gate == HK_GATE_NONE && !s->residual && act != HK_ACT_PRELU;
}

bool hk_graph_interleaved(const hk_graph *g, int64_t width) {
  const hk_chain_desc *d = &g->desc;
  const hk_net_signal *out = &g->signal[g->output];
  const int64_t c = d->channels, k = out->channels;
  if (g->output != g->signals || (c == 1 && k == 1)) return false;
  const bool planar = d->layout == HK_CHANNELS_FIRST;
  const int64_t x_channel = d->x_channel || !planar ? d->x_channel : d->max_block;
  const int64_t y_channel = d->y_channel || !planar ? d->y_channel : d->max_block;
  const int64_t x_time = d->x_time || planar ? d->x_time : c, y_time = d->y_time || planar ? d->y_time : k;
  if ((c > 1 && (x_channel > 1 || x_time != c)) || (k > 1 && (y_channel > 1 || y_time != k))) return false;
  if ((c == 1 && x_time > 1) || (k == 1 && y_time > 1)) return false;
  double here = 0, there = 0.5 * (double)(c + k);
  for (int32_t i = 0; i < d->count; i++) {
    const hk_step *s = &g->step[i];
    if (!g->signal[i + 2].live) continue;
    if (s->kind == HK_STEP_MAP && s->act.act != HK_ACT_PRELU && s->gate == HK_GATE_NONE && !s->residual) continue;
    if (s->kind != HK_STEP_CONV || !conv_fits(s)) return false;
    const tiling t = tiling_of(width, g->signal[s->x].channels, s->k, s->groups ? s->groups : 1);
    if (vectors_per_frame(&t, s->groups ? s->groups : 1) > MOST_TILES) return false;
    here += interleaved_products(width, s, g->signal[s->x].channels);
    there += planar_products(width, s, g->signal[s->x].channels);
  }
  return here <= there;
}

static int64_t tile_floats(const hk_net_op *op, const hk_frame_tile *t, int64_t width) {
  return hk_round_up(((op->window + 1) * t->inputs + 1) * width, 16);
}

hk_frame_tile *hk_frame_tiles(int32_t steps) { return hk_alloc((size_t)steps * MOST_TILES * sizeof(hk_frame_tile)); }

static int32_t permute_of(int64_t cg, int64_t kg) {
  if (cg != kg || (cg != 1 && cg != 2 && cg != 4)) return HK_FRAME_PERMUTE;
  return cg == 1 ? HK_FRAME_PLAIN : HK_FRAME_QUADS;
}

void hk_frame_calls(hk_graph *g, hk_net_op *op, int64_t width) {
  const int64_t cg = op->c / op->groups, kg = op->k / op->groups;
  const tiling t = tiling_of(width, op->c, op->k, op->groups);
  op->segs = (int32_t)op->window;
  op->call[0] = (hk_net_call){.f = g->data, .seg = g->segs};
  g->segs += op->segs;
  op->first_tile = g->tiles;
  for (int64_t j = 0; j < op->groups; j += t.groups) {
    const int64_t groups = hk_min64(t.groups, op->groups - j);
    const bool one = t.frames * groups == 1;
    for (int64_t p = 0; p < t.parts; p++) {
      const int64_t first = p * width;
      hk_frame_tile *tile = &g->tile[g->tiles++];
      *tile = (hk_frame_tile){.inputs = cg,
                              .frames = t.frames,
                              .outputs = t.parts > 1 ? hk_min64(width, kg - first) : groups * kg,
                              .reads = groups * cg,
                              .x_at = j * cg,
                              .y_at = j * kg + first,
                              .mode = one ? HK_FRAME_BROADCAST : permute_of(cg, kg)};
      g->data += tile_floats(op, tile, width);
    }
  }
  op->tiles = g->tiles - op->first_tile;
}

/* Lane l holds output y_at + l % outputs of frame l / outputs; idle lanes repeat lane 0, and are not stored. */
static void pack_tile(const hk_net_op *op, hk_frame_tile *t, float *to, int64_t width) {
  const int64_t cg = op->c / op->groups, kg = op->k / op->groups;
  float *f = to, *bias = f + op->window * t->inputs * width;
  int32_t *index = (int32_t *)(void *)(bias + width);
  for (int64_t l = 0; l < width; l++) {
    const int64_t lane = l < t->frames * t->outputs ? l : 0;
    const int64_t o = t->y_at + lane % t->outputs, frame = lane / t->outputs;
    bias[l] = op->bias ? op->bias[o] : 0.0f;
    for (int64_t m = 0; m < t->inputs; m++) {
      index[m * width + l] = (int32_t)(frame * op->c + o / kg * cg - t->x_at + m);
      for (int64_t s = 0; s < op->window; s++)
        f[(s * t->inputs + m) * width + l] = op->f[(o * cg + m) * op->window + s];
    }
  }
  t->f = f;
  t->bias = bias;
  t->index = index;
}

void hk_frame_pack(const hk_net_op *op, hk_frame_tile *tile, float *data, int64_t width) {
  float *to = data + op->call[0].f;
  for (int32_t j = 0; j < op->tiles; j++) {
    hk_frame_tile *t = &tile[op->first_tile + j];
    pack_tile(op, t, to, width);
    to += tile_floats(op, t, width);
  }
}

void hk_frame_run(const hk_chain *c, const hk_net_op *op, const hk_small_seg *x, float *y, int64_t n) {
  const hk_frame_args a = {.tile = c->tile + op->first_tile,
                           .x = x,
                           .y = y,
                           .n = n,
                           .x_frame = op->c,
                           .y_frame = op->k,
                           .tiles = op->tiles,
                           .taps = op->segs,
                           .act = op->act,
                           .lo = op->lo,
                           .hi = op->hi};
  c->frame(&a);
}

/* The first frames, whose taps reach into the history, are computed from a copy behind it, the others from x itself,
 * and first: by then the copy has left the store buffer. */
void hk_frame_alone(hk_stream *s, const float *x, int64_t n, float *y) {
  const hk_chain *chain = s->chain;
  const hk_net_op *op = chain->op;
  const int64_t c = op->c, reach = op->dilation * (op->window - 1), head = hk_min64(reach, n);
  hk_small_seg *seg = s->seg + op->call[0].seg;
  float *at = hk_stream_rows(s, op->x); /* history before it */
  if (head) memcpy(at, x, (size_t)(head * c) * sizeof(float));
  if (n > head) {
    for (int64_t w = 0; w < op->window; w++) seg[w].x = x + op->dilation * w * c;
    hk_frame_run(chain, op, seg, y + head * op->k, n - head);
  }
  if (!head) return;
  for (int64_t w = 0; w < op->window; w++) seg[w].x = at - (reach - op->dilation * w) * c;
  hk_frame_run(chain, op, seg, y, head);
  const float *from = n < reach ? at - (reach - n) * c : x + (n - reach) * c;
  memmove(at - reach * c, from, (size_t)(reach * c) * sizeof(float));
}
