/* A chain's memory, and its public functions. One block holds the chain, its ops, buffers and domains, and the packed
 * weights; the caller may own it. Reads nothing of desc before hk_graph_check has accepted it. */
#include <string.h>

#include "stream/stream.h"

static size_t aligned(size_t bytes) { return (bytes + HK_ALIGN - 1) / HK_ALIGN * HK_ALIGN; }

/* The caller's steps lie as far apart as its header says; all have the size of the first. */
static hk_status take_steps(hk_graph *g) {
  const hk_chain_desc *d = &g->desc;
  for (int32_t i = 0; d->steps && i < d->count; i++) {
    const hk_step *given = (const hk_step *)(const void *)((const char *)d->steps + d->steps->size * (size_t)i);
    if (given->size != d->steps->size)
      return hk_fail(HK_INVALID, "steps[%d].size = %zu must be that of steps[0], %zu", i, given->size, d->steps->size);
    given = hk_take(given, &g->step[i], sizeof *given, "steps[0]");
    if (!given) return HK_INVALID;
    if (given != &g->step[i]) g->step[i] = *given;
  }
  return HK_OK;
}

static int32_t long_windows(const hk_graph *g, int32_t count) {
  int32_t found = 0;
  for (int32_t i = 0; i < count; i++) found += g->step[i].kind == HK_STEP_FIR;
  return found;
}

static hk_isa chain_isa(const hk_chain_desc *d) {
  hk_isa isa = d->isa ? d->isa : hk_cpu_best_isa();
  while (!hk_cpu_has(isa)) isa--; /* a cap above the machine's ISA */
  return isa;
}

static const hk_kernel *frame_kernel(const hk_graph *g) { return hk_kernel_best(HK_FAMILY_FRAME, chain_isa(&g->desc)); }

/* Room for the passes; ops per step: split, mix, convolution, residual, activation. */
static hk_status graph_make(hk_graph *g, const hk_chain_desc *given) {
  *g = (hk_graph){0};
  const hk_chain_desc *desc = hk_take(given, &g->desc, sizeof g->desc, "desc");
  if (!desc) return HK_INVALID;
  if (desc != &g->desc) g->desc = *desc;
  const int32_t count = desc->count > 0 && desc->count <= 1 << 16 ? desc->count : 1;
  g->step = hk_alloc_zero((size_t)count * sizeof *g->step);
  g->signal = hk_alloc_zero((size_t)(count + 2) * sizeof *g->signal);
  g->op = hk_alloc_zero((size_t)count * 5 * sizeof *g->op);
  g->buffer = hk_alloc_zero((size_t)(count * 5 + 1) * sizeof *g->buffer);
  g->domain = hk_alloc_zero((size_t)(count + 1) * sizeof *g->domain);
  if (!g->step || !g->signal || !g->op || !g->buffer || !g->domain)
    return hk_fail(HK_NO_MEMORY, "no memory for a chain of %d steps", count);
  hk_status e = count == desc->count ? take_steps(g) : HK_OK; /* the check refuses other counts */
  if (e) return e;
  g->fir = hk_alloc_zero((size_t)(1 + long_windows(g, count)) * sizeof *g->fir);
  if (!g->fir) return hk_fail(HK_NO_MEMORY, "no memory for the long windows of a chain of %d steps", count);
  if ((e = hk_graph_check(g))) return e;
  g->interleaved = hk_graph_interleaved(g, frame_kernel(g)->nr);
  if (g->interleaved && !(g->tile = hk_frame_tiles(count)))
    return hk_fail(HK_NO_MEMORY, "no memory for the tiles of a chain of %d steps", count);
  return hk_graph_lower(g);
}

static void graph_free(hk_graph *g) {
  hk_free(g->step);
  hk_free(g->signal);
  hk_free(g->op);
  hk_free(g->buffer);
  hk_free(g->domain);
  hk_free(g->fir);
  hk_free(g->tile);
}

static int64_t most_frames(const hk_graph *g, int32_t domain, int64_t n) {
  if (domain == 0) return n;
  const hk_net_domain *d = &g->domain[domain];
  return hk_ceil_div(most_frames(g, d->parent, n), d->stride);
}

static uint64_t mix_print(uint64_t h, int64_t v) { return (h ^ (uint64_t)v) * 0x100000001b3u; }

/* Of everything that the layout of a state depends on. */
static uint64_t layout_print(const hk_graph *g, int64_t width) {
  uint64_t h = mix_print(0xcbf29ce484222325u, g->lstm_floats);
  for (int32_t b = 0; b < g->buffers; b++) {
    h = mix_print(mix_print(mix_print(h, g->buffer[b].rows * g->buffer[b].pitch), g->buffer[b].length),
                  g->buffer[b].stride);
  }
  for (int32_t j = 0; j < g->domains; j++) h = mix_print(mix_print(h, g->domain[j].parent), g->domain[j].stride);
  for (int32_t j = 0; j < g->firs; j++) {
    const hk_net_fir *f = &g->fir[j];
    h = mix_print(mix_print(mix_print(h, f->c), f->k), f->groups);
    for (int32_t i = 0; i < f->levels; i++) {
      const hk_fir_level *l = &f->level[i];
      h = mix_print(mix_print(mix_print(h, l->points), l->parts), l->early);
    }
  }
  return mix_print(h, g->firs ? width : 0); /* spectra lie as vectors do */
}

static void fill_header(hk_chain *c, const hk_graph *g) {
  const hk_chain_desc *d = &g->desc;
  const hk_net_signal *out = &g->signal[g->output];
  const bool planar = d->layout == HK_CHANNELS_FIRST;
  *c = (hk_chain){.isa = chain_isa(d),
                  .ops = g->ops,
                  .buffers = g->buffers,
                  .domains = g->domains,
                  .x_channels = d->channels,
                  .y_channels = out->channels,
                  .max_block = d->max_block,
                  .max_out = most_frames(g, out->domain, d->max_block),
                  .reach = out->reach,
                  .recurrent = g->recurrent,
                  .interleaved = g->interleaved,
                  .tiles = g->tiles,
                  .flops = g->flops,
                  .segs = g->segs,
                  .lstm_floats = hk_round_up(g->lstm_floats, 16),
                  .ring_floats = g->ring_floats,
                  .fir_floats = g->fir_floats,
                  .marks = g->marks,
                  .firs = g->firs,
                  .scratch_floats = g->scratch_floats};
  c->in = g->signal[1].buffer;
  c->out_domain = out->domain;
  c->out = g->signal[g->output].buffer;
  for (int32_t id = g->output; c->out < 0; id = g->signal[id].share) c->out = g->signal[g->signal[id].share].buffer;
  c->x_channel = d->x_channel ? d->x_channel : planar ? d->max_block : 1;
  c->x_time = d->x_time ? d->x_time : planar ? 1 : d->channels;
  c->y_channel = d->y_channel ? d->y_channel : planar ? c->max_out : 1;
  c->y_time = d->y_time ? d->y_time : planar ? 1 : out->channels;
  const hk_kernel *map = hk_kernel_best(HK_FAMILY_MAP, c->isa);
  c->map = map->fn;
  c->width = map->nr;
  c->frame = frame_kernel(g)->fn;
  if (g->interleaved) {
    const hk_net_op *last = g->op + g->ops - 1;
    c->direct = last->kind == HK_OP_FRAME && last->y == c->out;
    c->alone = c->direct && g->ops == 1 && !g->buffer[c->in].length;
  }
  hk_small_part one[HK_SMALL_PARTS];
  hk_small_split(c->isa, 1, 1, one);
  c->matvec = one[0].kernel->fn;
  c->fir_head = hk_kernel_best(HK_FAMILY_FIR, c->isa)->fn;
  c->longfft = hk_kernel_best(HK_FAMILY_LONGFFT, c->isa)->fn;
  c->spectra = hk_kernel_best(HK_FAMILY_SPECTRA, c->isa)->fn;
  c->print = layout_print(g, c->width);
}

static size_t chain_bytes(const hk_graph *g) {
  return aligned(sizeof(hk_chain)) + aligned((size_t)g->ops * sizeof *g->op) +
         aligned((size_t)g->buffers * sizeof *g->buffer) + aligned((size_t)g->domains * sizeof *g->domain) +
         aligned((size_t)g->firs * sizeof *g->fir) + aligned((size_t)g->tiles * sizeof *g->tile) +
         aligned((size_t)g->data * sizeof(float));
}

/* Copies the slopes into the chain's data, after everything that hk_op_calls has placed. */
static void copy_slopes(hk_net_op *op, hk_map_act *act, float **to) {
  if (op->kind != HK_OP_MAP || act->act != HK_ACT_PRELU) return;
  memcpy(*to, act->slopes, (size_t)op->rows * sizeof(float));
  act->slopes = *to;
  *to += hk_round_up(op->rows, 16);
}

/* room: what hk_fir_room asks for. */
static void fill_chain(hk_chain *c, const hk_graph *g, int64_t slopes_at, float *room) {
  char *p = (char *)c + aligned(sizeof *c);
  c->op = (hk_net_op *)p;
  p += aligned((size_t)g->ops * sizeof *g->op);
  c->buffer = (hk_net_buffer *)p;
  p += aligned((size_t)g->buffers * sizeof *g->buffer);
  c->domain = (hk_net_domain *)p;
  p += aligned((size_t)g->domains * sizeof *g->domain);
  c->fir = (hk_net_fir *)p;
  p += aligned((size_t)g->firs * sizeof *g->fir);
  c->tile = (hk_frame_tile *)p;
  p += aligned((size_t)g->tiles * sizeof *g->tile);
  c->data = (float *)p;
  memcpy(c->fir, g->fir, (size_t)g->firs * sizeof *g->fir);
  memcpy(c->op, g->op, (size_t)g->ops * sizeof *g->op);
  memcpy(c->buffer, g->buffer, (size_t)g->buffers * sizeof *g->buffer);
  memcpy(c->domain, g->domain, (size_t)g->domains * sizeof *g->domain);
  if (g->tiles) memcpy(c->tile, g->tile, (size_t)g->tiles * sizeof *g->tile);
  float *slopes = c->data + slopes_at;
  for (int32_t j = 0; j < c->ops; j++) {
    hk_net_op *op = &c->op[j];
    if (op->kind == HK_OP_FRAME) hk_frame_pack(op, c->tile, c->data, frame_kernel(g)->nr);
    else hk_op_pack(op, c->data);
    if (op->kind == HK_OP_FIR) hk_fir_pack(c, op, room);
    copy_slopes(op, &op->map_act, &slopes);
    copy_slopes(op, &op->map_act2, &slopes);
    op->step = NULL;
    op->f = op->bias = op->mix_f = NULL;
  }
}

static void place_ops(hk_graph *g, bool maps) {
  const hk_isa isa = chain_isa(&g->desc);
  for (int32_t j = 0; j < g->ops; j++) {
    hk_net_op *op = &g->op[j];
    if ((op->kind == HK_OP_MAP) != maps) continue;
    if (op->kind == HK_OP_FRAME) hk_frame_calls(g, op, frame_kernel(g)->nr);
    else hk_op_calls(g, op, isa);
  }
}

/* Sizes: first what convolutions and LSTMs pack, then the slopes of maps. */
static int64_t place_all(hk_graph *g) {
  place_ops(g, false);
  const int64_t slopes_at = g->data;
  place_ops(g, true);
  hk_graph_place(g);
  return slopes_at;
}

static int64_t room_of(const hk_graph *g) {
  int64_t room = 0;
  for (int32_t j = 0; j < g->firs; j++) room = hk_max64(room, hk_fir_room(&g->fir[j]));
  return room;
}

HK_API hk_status hk_chain_measure(const hk_chain_desc *desc, size_t *chain_size, size_t *stream_size) {
  hk_graph g;
  hk_status e = graph_make(&g, desc);
  if (!e) {
    place_all(&g);
    hk_chain c;
    fill_header(&c, &g);
    if (chain_size) *chain_size = chain_bytes(&g);
    if (stream_size) *stream_size = hk_stream_layout(&c, NULL, NULL);
  }
  graph_free(&g);
  return e;
}

HK_API hk_status hk_chain_create(hk_chain **chain, const hk_chain_desc *desc, void *memory, size_t memory_bytes) {
  if (!chain) return hk_fail(HK_INVALID, "chain is NULL");
  hk_graph g;
  hk_status e = graph_make(&g, desc);
  hk_chain *c = NULL;
  float *room = NULL; /* while packing */
  if (!e && g.firs && !(room = hk_alloc((size_t)room_of(&g) * sizeof *room)))
    e = hk_fail(HK_NO_MEMORY, "no memory to transform the windows of a chain");
  if (!e) {
    const int64_t slopes_at = place_all(&g);
    const size_t bytes = chain_bytes(&g);
    if (memory && ((uintptr_t)memory % HK_ALIGN || memory_bytes < bytes)) {
      e = hk_fail(HK_INVALID, "memory must be 64-byte aligned and %zu bytes long; it has %zu", bytes, memory_bytes);
    } else if (!(c = memory ? memory : hk_alloc(bytes))) {
      e = hk_fail(HK_NO_MEMORY, "no memory for a chain of %zu bytes", bytes);
    } else {
      fill_header(c, &g);
      c->owned = !memory;
      c->bytes = bytes;
      fill_chain(c, &g, slopes_at, room);
    }
  }
  hk_free(room);
  graph_free(&g);
  if (!e) *chain = c;
  return e;
}

HK_API void hk_chain_destroy(hk_chain *chain) {
  if (chain && chain->owned) hk_free(chain);
}

HK_API hk_status hk_chain_info(const hk_chain *c, hk_chain_facts *f) {
  if (!c) return hk_fail(HK_INVALID, "chain is NULL");
  hk_stream s;
  hk_chain_facts made = {.size = sizeof made,
                         .x_channels = c->x_channels,
                         .y_channels = c->y_channels,
                         .max_block = c->max_block,
                         .max_out = c->max_out,
                         .receptive_field = c->reach,
                         .recurrent = c->recurrent,
                         .flops = c->flops,
                         .chain_bytes = c->bytes,
                         .isa = hk_isa_name(c->isa)};
  made.stream_bytes = hk_stream_layout(c, &s, NULL);
  made.state_bytes = s.state_bytes;
  return hk_give(f, &made, sizeof made, "facts");
}
