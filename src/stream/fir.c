/* Long windows: the newest taps are a head that a convolution op sums directly; older ones go to levels of partitions
 * whose size grows by FACTOR. Chooses the number of levels by counted cost, and makes tables and spectra. */
#include <string.h>

#include "stream/stream.h"

/* Smallest partition (16 x 16 points fill the vectors of every ISA in columns and rows), and growth per level. */
enum { FIRST = 256, FACTOR = 8 };

/* A step over columns reads two lines of the input per row of the transform, each from another page where it is long.
 */
enum { MOST_ROWS = 128 };

/* Cycles per vector of points, from the kernels on Zen 5 with AVX-512 (bench/results/2026-11-19-convolver-zen5.md): a
 * pass over columns, a pass over rows, a product of spectra in each level (from L1 to L3), and 1/8 of a directly summed
 * tap. They set the cut and shares of time, nothing else. */
enum { COLUMNS = 20, ROWS = 9, TAP_8 = 3 };
static const int64_t PRODUCT[HK_FIR_LEVELS] = {4, 7, 10, 10};

static void set_costs(const hk_net_fir *f, hk_fir_level *l, int32_t level) {
  const int64_t product = l->points * f->k * (f->c / f->groups) * PRODUCT[level];
  l->cost[0] = l->points * f->c * COLUMNS;
  l->cost[1] = l->points * (f->c + f->k) * ROWS + product;
  l->cost[2] = l->points * f->k * COLUMNS;
  l->cost[3] = product * (l->parts - 1);
}

/* The level whose taps end before tap `end`. Results must be due HK_PIECE frames before the same frame of the next
 * period: a piece runs its slices before it reads results. */
static hk_fir_level level_of(const hk_net_fir *f, int32_t level, int64_t points, int64_t end) {
  int64_t n2 = 16;
  while (n2 * n2 * 4 <= points || points / n2 > MOST_ROWS) n2 *= 2;
  hk_fir_level l = {.points = points, .end = end, .fft = {.n1 = points / n2, .n2 = n2}};
  const int64_t quanta = points / HK_FIR_QUANTUM, most = quanta - 1 - HK_PIECE / HK_FIR_QUANTUM;
  l.parts = hk_max64(1, hk_ceil_div(end - points, points));
  set_costs(f, &l, level);
  const int64_t due = l.cost[0] + l.cost[1] + l.cost[2];
  const int64_t share = quanta * due / (due + l.cost[3]);
  l.early = hk_min64(most, share) + 1;
  l.delay = points + (l.early - 1) * HK_FIR_QUANTUM;
  l.parts = hk_max64(1, hk_ceil_div(end - l.delay, points));
  l.slots = hk_max64(1, l.parts - 1);
  set_costs(f, &l, level);
  return l;
}

static hk_net_fir cut(const hk_net_fir *like, int32_t levels) {
  hk_net_fir f = *like;
  int64_t end = f.window, points = FIRST;
  for (int32_t j = 1; j < levels; j++) points *= FACTOR;
  f.levels = levels;
  for (int32_t j = levels - 1; j >= 0; j--, points /= FACTOR) {
    f.level[j] = level_of(&f, j, points, end);
    end = f.level[j].delay;
  }
  f.head = levels ? hk_min64(end, f.window) : f.window;
  return f;
}

/* Per frame and lane, in eighths of a cycle. */
static int64_t cost_of(const hk_net_fir *f) {
  int64_t cost = f->k * (f->c / f->groups) * f->head * TAP_8;
  for (int32_t j = 0; j < f->levels; j++) {
    for (int z = 0; z < HK_FIR_ZONES; z++) cost += 8 * f->level[j].cost[z] / f->level[j].points;
  }
  return cost;
}

hk_net_fir hk_fir_cut(int64_t c, const hk_step *s) {
  const hk_net_fir like = {.c = c, .k = s->k, .groups = s->groups ? s->groups : 1, .window = s->window ? s->window : 1};
  hk_net_fir best = cut(&like, 0);
  for (int32_t levels = 1; levels <= HK_FIR_LEVELS; levels++) {
    const hk_net_fir f = cut(&like, levels);
    if (f.level[levels - 1].delay < f.window && cost_of(&f) < cost_of(&best)) best = f;
  }
  best.history = best.head - 1;
  for (int32_t j = 0; j < best.levels; j++) {
    const hk_fir_level *l = &best.level[j];
    best.history = hk_max64(best.history, 2 * l->points + l->early * HK_FIR_QUANTUM);
  }
  return best;
}

void hk_fir_place(hk_graph *g, hk_net_fir *f, hk_isa isa) {
  const int64_t vw = hk_kernel_best(HK_FAMILY_LONGFFT, isa)->nr;
  f->mark = g->marks;
  g->marks += 1 + f->levels;
  f->taps = g->data;
  f->bias = f->taps + hk_round_up(f->k * (f->c / f->groups) * f->head, 16);
  g->data = f->bias + hk_round_up(f->k, 16);
  for (int32_t j = 0; j < f->levels; j++) {
    hk_fir_level *l = &f->level[j];
    const int64_t spectrum = 2 * l->points, n1 = l->fft.n1, n2 = l->fft.n2;
    const bool fine = n1 / 4 % vw == 0 && n2 >= 32; /* smaller transforms are one unit per block */
    const int64_t steps = fine ? HK_LONGFFT_STEPS : 1;
    l->grain = HK_LONGFFT_STEPS / steps;
    l->units[0] = n2 / vw * steps * f->c;
    l->units[1] = n1 / vw * steps * (f->c + f->k);
    l->units[2] = n2 / vw * steps * f->k;
    l->units[3] = f->k * (l->points / vw / HK_FIR_VECTORS);
    l->tables = g->data;
    l->h = l->tables + hk_longfft_floats(n1, n2, vw);
    g->data = l->h + f->k * (f->c / f->groups) * l->parts * spectrum;
    l->z = g->fir_floats;
    l->sums = l->z + f->c * l->slots * spectrum;
    l->out = l->sums + f->k * spectrum;
    l->buffer = l->out + f->k * spectrum;
    g->fir_floats = l->buffer + 2 * n1 * vw;
  }
}

/* Taps of one partition, and columns of a transform. */
int64_t hk_fir_room(const hk_net_fir *f) {
  if (!f->levels) return 1;
  const hk_fir_level *l = &f->level[f->levels - 1]; /* the largest */
  return l->points + 2 * l->fft.n1 * 16;
}

static void pack_level(const hk_chain *c, const hk_net_fir *f, hk_fir_level *l, const float *taps, float *room) {
  hk_longfft_args *a = &l->fft;
  hk_longfft_tables(a, c->width, c->data + l->tables);
  a->op = HK_LONGFFT_FORWARD;
  a->buffer = room + l->points;
  a->z = c->data + l->h;
  for (int64_t row = 0; row < f->k * (f->c / f->groups); row++) {
    const float *newest = taps + (row + 1) * f->window - 1;
    for (int64_t p = 0; p < l->parts; p++, a->z += 2 * l->points) {
      const int64_t first = l->delay + p * l->points, count = hk_min64(l->points, l->end - first);
      for (int64_t i = 0; i < count; i++) room[i] = newest[-(first + i)];
      a->x = (hk_longfft_row){.at = room, .first = 0, .last = count};
      c->longfft(a);
    }
  }
  a->buffer = a->z = NULL;
}

void hk_fir_pack(const hk_chain *c, const hk_net_op *op, float *room) {
  hk_net_fir *f = &c->fir[op->fir];
  const float *taps = op->step->f, *bias = op->step->bias;
  float *head = c->data + f->taps;
  for (int64_t row = 1; row <= f->k * (f->c / f->groups); row++, head += f->head)
    memcpy(head, taps + row * f->window - f->head, (size_t)f->head * sizeof(float));
  for (int64_t k = 0; k < f->k; k++) c->data[f->bias + k] = bias ? bias[k] : 0.0f;
  for (int32_t j = 0; j < f->levels; j++) pack_level(c, f, &f->level[j], taps, room);
}

bool hk_fir_marks_fit(const hk_net_fir *f, const int64_t *mark) {
  if (!f->levels) return true;
  if (mark[0] < 0 || mark[0] >= 2 * f->level[f->levels - 1].points) return false;
  for (int32_t j = 0; j < f->levels; j++) {
    if (mark[1 + j] < 0 || mark[1 + j] >= f->level[j].slots) return false;
  }
  return true;
}
