/* The levels of a long window over time: which slices of their work fall into a piece, the units of a slice, and the
 * results that are due. What runs depends on the time of the stream alone, so that blocks of any length give the same
 * bits. Requires all frames of the piece in the ring of the input. */
#include <string.h>

#include "stream/stream.h"

typedef struct work {
  const hk_stream *s;
  const hk_net_fir *f;
  const hk_fir_level *l;
  const float *x;            /* channel 0, oldest of the 2*points frames that a period transforms */
  int64_t x_row, slot, half; /* half: of out, which the period fills */
  hk_longfft_args fft;
} work;

/* Units that are done after `phase` quanta of a period. */
static int64_t units_after(const hk_fir_level *l, int64_t phase) {
  int64_t done = 0;
  if (phase > l->early) {
    const int64_t rest = l->points / HK_FIR_QUANTUM - l->early;
    for (int z = 0; z < HK_FIR_ZONES - 1; z++) done += l->units[z];
    return l->parts > 1 ? done + l->units[3] * (phase - l->early) / rest : done;
  }
  int64_t target = (l->cost[0] + l->cost[1] + l->cost[2]) * phase / l->early;
  for (int z = 0; z < HK_FIR_ZONES - 1; z++) {
    if (target < l->cost[z]) return done + l->units[z] * target / l->cost[z];
    target -= l->cost[z];
    done += l->units[z];
  }
  return done;
}

static float *spectrum_of(const work *w, int64_t c) {
  return w->s->fir + w->l->z + (c * w->l->slots + w->slot) * 2 * w->l->points;
}

/* Products of inputs with parts [from, to) into the sums of output k: `count` complex vectors from vector `at` on. */
static void multiply(const work *w, int64_t k, int64_t from, int64_t to, int64_t at, int64_t count) {
  const hk_fir_level *l = w->l;
  const hk_chain *chain = w->s->chain;
  const int64_t cg = w->f->c / w->f->groups, first = k / (w->f->k / w->f->groups) * cg, spectrum = 2 * l->points;
  const int64_t offset = at * 2 * chain->width;
  hk_spectra_args a = {.sum = w->s->fir + l->sums + k * spectrum + offset,
                       .count = count,
                       .z_step = -spectrum,
                       .h_step = spectrum,
                       .add = from == 0 && l->parts > 1};
  for (int64_t c = 0; c < cg; c++) {
    int64_t slot = w->slot; /* part 0 and, a period later, part 1 read the newest */
    for (int64_t p = from; p < to; p += a.parts) {
      a.parts = hk_min64(to - p, slot + 1);
      a.z = w->s->fir + l->z + ((first + c) * l->slots + slot) * spectrum + offset;
      a.h = chain->data + l->h + ((k * cg + c) * l->parts + p) * spectrum + offset;
      chain->spectra(&a);
      a.add = true;
      slot = l->slots - 1;
    }
  }
}

static void run_columns(work *w, int64_t from, int64_t to, bool back) {
  const hk_fir_level *l = w->l;
  const int64_t each = l->units[0] / w->f->c, points = l->points;
  w->fft.op = back ? HK_LONGFFT_COLUMNS_BACK : HK_LONGFFT_COLUMNS;
  for (int64_t u = from; u < to;) {
    const int64_t i = u / each, end = hk_min64(to, (i + 1) * each);
    w->fft.from = (u - i * each) * l->grain;
    w->fft.to = (end - i * each) * l->grain;
    if (back) {
      float *out = w->s->fir + l->out + i * 2 * points + w->half;
      w->fft.z = w->s->fir + l->sums + i * 2 * points;
      w->fft.y = (hk_longfft_row){.at = out, .shift = -points, .first = points, .last = 2 * points};
    } else {
      w->fft.z = spectrum_of(w, i);
      w->fft.x = (hk_longfft_row){.at = (float *)w->x + i * w->x_row, .first = 0, .last = 2 * points};
    }
    w->s->chain->longfft(&w->fft);
    u = end;
  }
}

/* Steps [from, to) of block r of an output, each quarter after its products. */
static void run_rows_back(work *w, int64_t k, int64_t r, int64_t from, int64_t to) {
  const int64_t n2 = w->l->fft.n2, quarter = n2 / 4;
  w->fft.op = HK_LONGFFT_ROWS_BACK;
  w->fft.z = w->s->fir + w->l->sums + k * 2 * w->l->points;
  if (to - from == HK_LONGFFT_STEPS) multiply(w, k, 0, 1, r * n2, n2);
  else
    for (int64_t q = from; q < hk_min64(to, 4); q++) multiply(w, k, 0, 1, r * n2 + q * quarter, quarter);
  w->fft.from = r * HK_LONGFFT_STEPS + from;
  w->fft.to = r * HK_LONGFFT_STEPS + to;
  w->s->chain->longfft(&w->fft);
}

/* Block of rows r of every input, then block r of every output, while it is in L1. */
static void run_rows(work *w, int64_t from, int64_t to) {
  const int64_t all = w->f->c + w->f->k, grain = w->l->grain, steps = HK_LONGFFT_STEPS / grain;
  for (int64_t u = from; u < to;) {
    const int64_t item = u / steps, end = hk_min64(to, (item + 1) * steps), r = item / all, i = item % all;
    const int64_t first = (u - item * steps) * grain, last = (end - item * steps) * grain;
    if (i >= w->f->c) {
      run_rows_back(w, i - w->f->c, r, first, last);
    } else {
      w->fft.op = HK_LONGFFT_ROWS;
      w->fft.z = spectrum_of(w, i);
      w->fft.from = r * HK_LONGFFT_STEPS + first;
      w->fft.to = r * HK_LONGFFT_STEPS + last;
      w->s->chain->longfft(&w->fft);
    }
    u = end;
  }
}

static void run_products(const work *w, int64_t from, int64_t to) {
  const int64_t chunks = w->l->units[3] / w->f->k;
  for (int64_t u = from; u < to;) {
    const int64_t k = u / chunks, end = hk_min64(to, (k + 1) * chunks);
    multiply(w, k, 1, w->l->parts, (u - k * chunks) * HK_FIR_VECTORS, (end - u) * HK_FIR_VECTORS);
    u = end;
  }
}

static void run_units(work *w, int64_t from, int64_t to) {
  for (int z = 0; z < HK_FIR_ZONES; z++) {
    const int64_t count = w->l->units[z], first = hk_max64(0, from), last = hk_min64(count, to);
    if (first < last) {
      if (z == 1) run_rows(w, first, last);
      else if (z == 3) run_products(w, first, last);
      else run_columns(w, first, last, z == 2);
    }
    from -= count;
    to -= count;
  }
}

/* Where the input's rows and the op's time are. */
typedef struct place {
  const float *block; /* row 0 at the first frame of the piece; in a steady ring anywhere, since all frames are equal */
  const hk_net_buffer *ring;
  int64_t position, time;
} place;

/* All quanta that end after time `now` and not after now + n; a quantum's slice sees the frames before its end. */
static void run_level(const hk_stream *s, const hk_net_fir *f, int32_t j, const place *at, int64_t n) {
  const hk_fir_level *l = &f->level[j];
  const int64_t period = l->points / HK_FIR_QUANTUM, last = (at->time + n) / HK_FIR_QUANTUM;
  int64_t *slot = &s->mark[f->mark + 1 + j];
  work w = {.s = s, .f = f, .l = l, .x_row = at->ring->stride, .fft = l->fft};
  w.fft.buffer = s->fir + l->buffer;
  for (int64_t m = at->time / HK_FIR_QUANTUM + 1; m <= last;) {
    const int64_t phase = m % period, count = hk_min64(period - phase, last - m + 1);
    const int64_t begin = (m - phase) * HK_FIR_QUANTUM; /* when the period that is transformed ended */
    if (!phase) *slot = *slot + 1 == l->slots ? 0 : *slot + 1;
    w.slot = *slot;
    w.half = begin % (2 * l->points);
    int64_t x = at->position - (at->time - begin + 2 * l->points);
    if (x < 0) x += at->ring->length;
    w.x = at->block + x;
    run_units(&w, units_after(l, phase), units_after(l, phase + count));
    m += count;
  }
}

/* Bias, results of the levels, and the newest taps of output k. */
static void run_output(const hk_stream *s, const hk_net_op *op, int64_t k, int64_t n, int64_t wide) {
  const hk_chain *c = s->chain;
  const hk_net_fir *f = &c->fir[op->fir];
  const int64_t time = s->mark[f->mark], cg = f->c / f->groups, row = c->buffer[op->x].stride;
  float *y = hk_stream_rows(s, op->y) + k * c->buffer[op->y].stride;
  for (int64_t t = 0; t < n; t++) y[t] = c->data[f->bias + k];
  for (int32_t j = 0; j < f->levels; j++) {
    const hk_fir_level *l = &f->level[j];
    const float *out = s->fir + l->out + k * 2 * l->points;
    const int64_t at = (time + 3 * l->points - l->delay) & (2 * l->points - 1), first = hk_min64(n, 2 * l->points - at);
    for (int64_t t = 0; t < first; t++) y[t] += out[at + t];
    for (int64_t t = first; t < n; t++) y[t] += out[t - first];
  }
  c->fir_head(&(hk_fir_args){.x = hk_stream_delayed(s, op->x, f->head - 1) + k / (f->k / f->groups) * cg * row,
                             .f = c->data + f->taps + k * cg * f->head,
                             .y = y,
                             .x_stride = row,
                             .channels = cg,
                             .taps = f->head,
                             .n = wide});
}

void hk_fir_run(const hk_stream *s, const hk_net_op *op, int64_t n, int64_t wide) {
  const hk_net_fir *f = &s->chain->fir[op->fir];
  const hk_net_buffer *ring = &s->chain->buffer[op->x];
  int64_t *time = &s->mark[f->mark];
  const place at = {s->ring + ring->offset, ring, s->at[op->x], *time};
  for (int32_t j = 0; j < f->levels; j++) run_level(s, f, j, &at, n);
  for (int64_t k = 0; k < f->k; k++) run_output(s, op, k, n, wide);
  if (f->levels) *time = (*time + n) % (2 * f->level[f->levels - 1].points);
}

void hk_fir_seek(const hk_stream *s, const hk_net_op *op, int64_t frames) {
  const hk_net_fir *f = &s->chain->fir[op->fir];
  if (f->levels) s->mark[f->mark] = frames % (2 * f->level[f->levels - 1].points);
}

/* Every slot of a level becomes the spectrum of a constant, and its sums those of such slots. */
static void settle_level(const hk_stream *s, const hk_net_fir *f, int32_t j, const float *x, int64_t x_row) {
  const hk_fir_level *l = &f->level[j];
  work w = {.s = s, .f = f, .l = l, .x = x, .x_row = x_row, .fft = l->fft};
  w.fft.buffer = s->fir + l->buffer;
  for (w.slot = 0; w.slot < l->slots; w.slot++) {
    for (int64_t c = 0; c < f->c; c++) {
      w.fft.op = HK_LONGFFT_FORWARD;
      w.fft.z = spectrum_of(&w, c);
      w.fft.x = (hk_longfft_row){.at = (float *)x + c * x_row, .first = 0, .last = 2 * l->points};
      s->chain->longfft(&w.fft);
    }
  }
  w.slot = 0;
  if (l->parts > 1) run_products(&w, 0, l->units[3]);
}

/* The ring is constant. After its spectra and their sums the schedule runs once around, so that all results are those
 * of a constant too, and on to the time in the mark. */
void hk_fir_settle(const hk_stream *s, const hk_net_op *op) {
  const hk_net_fir *f = &s->chain->fir[op->fir];
  const hk_net_buffer *ring = &s->chain->buffer[op->x];
  const int64_t time = s->mark[f->mark], around = f->levels ? 2 * f->level[f->levels - 1].points : 0;
  for (int32_t j = 0; j < f->levels; j++) settle_level(s, f, j, s->ring + ring->offset, ring->stride);
  place at = {s->ring + ring->offset, ring, ring->length - 1, around - HK_PIECE}; /* so that a period begins whole */
  for (int64_t left = around ? HK_PIECE + around + time : 0; left > 0; left -= HK_PIECE) {
    const int64_t n = hk_min64(left, HK_PIECE);
    for (int32_t j = 0; j < f->levels; j++) run_level(s, f, j, &at, n);
    at.time = (at.time + n) % around;
  }
  for (int64_t k = 0; k < f->k; k++) run_output(s, op, k, 1, s->chain->width);
}
