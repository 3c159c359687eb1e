/* The sums of a convolution straight from the specification, in double: for every output position p and tap s,
 * i = p*stride + s*rhs_dilation - lo counts only if 0 <= i < W' and lhs_dilation divides i. Beside each sum stand
 * sum |x||f| and sum (x f)^2, which the two gates of the comparison need. Plain loops, nothing hoisted that could hide
 * a mistake; of a large problem only a sample of outputs is evaluated. */
#include <stdlib.h>
#include <string.h>

#include "check/check.h"

/* The element of x that counts at dilated position i of one dimension, or -1. */
static int64_t source_at(const check_shape *s, int d, int64_t p, int64_t tap) {
  int64_t i = p * s->stride[d] + tap * s->dilation[d] - s->lo[d];
  if (i < 0 || i >= s->span[d] || i % s->in_dilation[d]) return -1;
  return i / s->in_dilation[d];
}

typedef struct totals {
  double sum, absolute, square;
} totals;

typedef struct channels { /* of one pixel or tap: their distance, and what a zero is stored as */
  const double *at;
  int64_t step;
  double zero;
} channels;

static void channels_add(totals *u, channels x, channels f, int64_t count) {
  for (int64_t c = 0; c < count; c++) {
    double v = (x.at[c * x.step] - x.zero) * (f.at[c * f.step] - f.zero);
    u->sum += v;
    u->absolute += v < 0 ? -v : v;
    u->square += v * v;
  }
}

static totals sum_at(const check_case *t, const check_shape *s, const check_data *d, int64_t group, int64_t n,
                     int64_t k, const int64_t p[3]) {
  totals u = {0, 0, 0};
  const double *xv = d->v[V_X].value + s->x.below, *fv = d->v[V_F].value + s->f.below, *state = d->v[V_STATE].value;
  double f_zero = d->v[V_F_ZERO].value ? d->v[V_F_ZERO].value[group * s->k + k] : t->p.f_zero;
  int64_t tap[3];
  const bool plain = !(t->with & WITH_STATE);
  for (tap[0] = 0; tap[0] < s->window[0]; tap[0]++)
    for (tap[1] = 0; tap[1] < s->window[1]; tap[1]++) {
      if (plain && (source_at(s, 0, p[0], tap[0]) < 0 || source_at(s, 1, p[1], tap[1]) < 0)) continue;
      for (tap[2] = 0; tap[2] < s->window[2]; tap[2]++) {
        int64_t i[3], at[3];
        bool inside = true;
        for (int a = 0; a < 3; a++) {
          i[a] = source_at(s, a, p[a], tap[a]);
          inside &= i[a] >= 0;
          at[a] = s->reverse[a] ? s->window[a] - 1 - tap[a] : tap[a];
        }
        const channels f = {fv + check_offset(&s->f, group, k, 0, at), s->f.stride[2], f_zero};
        if (inside) {
          const channels x = {xv + check_offset(&s->x, group, n, 0, i), s->x.stride[2], t->p.x_zero};
          channels_add(&u, x, f, s->c);
        }
        int64_t past = p[2] * s->stride[2] + tap[2] * s->dilation[2] - s->lo[2] + s->past;
        if (t->with & WITH_STATE && past >= 0 && past < s->past) {
          const channels x = {state + (n * t->p.c + group * s->c) * s->past + past, s->past, t->p.x_zero};
          channels_add(&u, x, f, s->c);
        }
      }
    }
  return u;
}

/* A coordinate where faults are likely: the first, the last, or beside a multiple of a block size. */
static int64_t edge_of(int64_t size, uint64_t *r) {
  static const int64_t blocks[] = {4, 6, 8, 12, 14, 16, 24, 32, 64, 128};
  const int64_t kind = cli_random_below(r, 4), block = blocks[cli_random_below(r, 10)];
  if (kind == 0) return 0;
  if (kind == 1) return size - 1;
  const int64_t at = cli_random_below(r, size / block + 1) * block + cli_random_below(r, 3) - 1;
  return kind == 3 || at < 0 || at >= size ? cli_random_below(r, size) : at;
}

/* Every corner of y, then block edges and any outputs in turn. */
static bool sample_make(check_sums *u, const check_shape *s, uint64_t seed) {
  const int64_t size[5] = {s->n, s->channels, s->out[0], s->out[1], s->out[2]};
  u->sample = malloc(sizeof *u->sample * (size_t)(u->count + 1));
  if (!u->sample) return false;
  for (int64_t j = 0; j < u->count; j++) {
    int64_t index = 0;
    for (int a = 0; a < 5; a++)
      index = index * size[a] + (j < 32 ? (j >> a & 1 ? size[a] - 1 : 0) : edge_of(size[a], &seed));
    u->sample[j] = j >= 32 && j % 2 ? cli_random_below(&seed, s->outputs) : index;
  }
  return true;
}

bool check_sums_make(check_sums *u, const check_case *t, const check_shape *s, const check_data *d, double products) {
  int parts = t->e.gate ? 2 : 1;
  *u = (check_sums){.count = s->outputs};
  if (products > 0 && (double)s->sums * (double)s->gk > products) {
    double fit = products / (double)s->gk / parts;
    u->count = fit < 64 ? 64 : (int64_t)fit;
    if (u->count > s->outputs) u->count = s->outputs;
    if (u->count < s->outputs && !sample_make(u, s, t->seed)) return false;
  }
  size_t bytes = sizeof(double) * (size_t)(2 * u->count + 1);
  u->sum = malloc(bytes);
  u->absolute = malloc(bytes);
  u->square = malloc(bytes);
  if (!u->sum || !u->absolute || !u->square) return false;
  for (int64_t j = 0; j < u->count; j++) {
    int64_t n, channel, p[3];
    check_output_at(s, u->sample ? u->sample[j] : j, &n, &channel, p);
    for (int g = 0; g < parts; g++) {
      int64_t k = channel + g * s->channels;
      totals v = sum_at(t, s, d, k / s->k, n, k % s->k, p);
      u->sum[2 * j + g] = v.sum;
      u->absolute[2 * j + g] = v.absolute;
      u->square[2 * j + g] = v.square;
    }
  }
  return true;
}

void check_sums_free(check_sums *u) {
  free(u->sample);
  free(u->sum);
  free(u->absolute);
  free(u->square);
  *u = (check_sums){0};
}
