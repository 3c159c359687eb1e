/* Problems as networks and signal chains have them, drawn whole: many algorithms take only these, and independent draws
 * rarely meet all their conditions at once. What a recipe leaves open (groups, batch) is as drawn before. */
#include "check/check.h"

static int64_t below(uint64_t *r, int64_t n) { return cli_random_below(r, n); }
static int64_t between(uint64_t *r, int64_t a, int64_t b) { return check_between(r, a, b); }
static bool chance(uint64_t *r, int percent) { return check_chance(r, percent); }

/* Channels around a vector's lanes, or a few of them. */
static int64_t lanes_draw(uint64_t *r) {
  static const int64_t widths[] = {4, 8, 16, 32, 48, 64, 96, 128};
  return chance(r, 60) ? widths[below(r, 8)] + (chance(r, 50) ? between(r, -1, 5) : 0) : between(r, 1, 40);
}

static void window_set(hk_problem *p, int64_t window, int64_t stride, int64_t dilation, bool padded) {
  for (int d = 0; d < p->rank; d++) {
    p->window[d] = window, p->stride[d] = stride, p->dilation[d] = dilation, p->in_dilation[d] = 1;
    p->pad_lo[d] = padded ? dilation * (window - 1) / 2 : 0;
    p->pad_hi[d] = padded ? dilation * (window - 1) - p->pad_lo[d] : 0;
  }
}

static void channels_set(hk_problem *p, int64_t groups, int64_t c, int64_t k) {
  p->feature_groups = groups;
  p->batch_groups = 1;
  p->c = groups * c;
  p->k = groups * k;
}

/* Depthwise 3x3, 5x5 and 7x7 of images. */
static void depthwise_image(hk_problem *p, uint64_t *r) {
  const int64_t window = 2 * between(r, 1, 3) + 1, stride = chance(r, 65) ? 1 : chance(r, 80) ? 2 : between(r, 3, 9);
  p->rank = chance(r, 92) ? 2 : 3;
  channels_set(p, lanes_draw(r), 1, chance(r, 85) ? 1 : between(r, 2, 4));
  window_set(p, window, stride, stride == 1 && chance(r, 20) ? between(r, 2, 3) : 1, chance(r, 75));
  for (int d = 0; d < p->rank; d++) p->in[d] = between(r, window - (chance(r, 20) ? 2 : 0), chance(r, 80) ? 16 : 40);
  if (p->rank == 3) p->window[0] = 1, p->pad_lo[0] = p->pad_hi[0] = 0, p->in[0] = between(r, 1, 3);
  for (int d = 0; d < p->rank && chance(r, 25); d++) p->pad_hi[d] += between(r, -1, 1);
}

/* Depthwise signals: short windows by direct kernels, long ones by FFT and Karatsuba. */
static void depthwise_signal(hk_problem *p, uint64_t *r) {
  p->rank = 1;
  channels_set(p, lanes_draw(r), 1, chance(r, 85) ? 1 : 2);
  window_set(p,
             chance(r, 40)   ? between(r, 1, 9)
             : chance(r, 70) ? between(r, 8, 70)
                             : between(r, 64, 300),
             chance(r, 80) ? 1 : between(r, 2, 9), chance(r, 70) ? 1 : between(r, 2, chance(r, 60) ? 9 : 70),
             chance(r, 40));
  p->in[0] =
      p->dilation[0] * (p->window[0] - 1) + between(r, 1, chance(r, 15) ? 12 : 260) - p->pad_lo[0] - p->pad_hi[0];
  if (p->in[0] < 1) p->in[0] = 1;
  if (chance(r, 30)) p->pad_lo[0] = p->dilation[0] * (p->window[0] - 1), p->pad_hi[0] = 0; /* causal */
}

/* Dense 3x3, stride 1: Winograd's, and along a line. */
static void dense_three(hk_problem *p, uint64_t *r) {
  p->rank = chance(r, 70) ? 2 : 1;
  channels_set(p, 1, between(r, 16, 40), lanes_draw(r));
  window_set(p, 3, 1, 1, false);
  for (int d = 0; d < p->rank; d++) {
    p->in[d] = between(r, 3, p->rank == 1 ? 40 : 9);
    p->pad_lo[d] = below(r, 2), p->pad_hi[d] = below(r, 2);
  }
}

static void pointwise(hk_problem *p, uint64_t *r) {
  const int64_t groups = chance(r, 50) ? 1 : between(r, 2, 20);
  const int64_t c = chance(r, 50) ? lanes_draw(r) : between(r, 1, 12),
                k = chance(r, 50) ? lanes_draw(r) : between(r, 1, 8);
  const int64_t kind = below(r, 10), power = (int64_t)1 << between(r, 1, 4);
  if (kind < 5) channels_set(p, groups, c, k);
  else if (kind < 8) channels_set(p, lanes_draw(r), between(r, 2, 8), between(r, 1, 8));
  else channels_set(p, between(r, 1, 4) * (16 / power), power, power); /* whole vectors of groups */
  window_set(p, 1, chance(r, 80) ? 1 : 2, 1, false);
  for (int d = 0; d < p->rank; d++) p->in[d] = between(r, 1, p->rank == 1 ? 300 : 20);
}

static void dense(hk_problem *p, uint64_t *r) {
  const int64_t groups = chance(r, 60) ? 1 : between(r, 2, 8);
  channels_set(p, groups, chance(r, 60) ? between(r, 1, 8) : lanes_draw(r),
               chance(r, 40) ? between(r, 1, 8) : lanes_draw(r));
  window_set(p, between(r, 2, 5), chance(r, 70) ? 1 : 2, chance(r, 85) ? 1 : 2, chance(r, 75));
  for (int d = 0; d < p->rank; d++) p->in[d] = between(r, 2, p->rank == 1 ? 200 : 24);
}

void check_recipe_draw(hk_problem *p, uint64_t *r) {
  switch (below(r, 6)) {
  case 0: depthwise_image(p, r); break;
  case 1: depthwise_signal(p, r); break;
  case 2: dense_three(p, r); break;
  case 3: pointwise(p, r); break;
  default: dense(p, r);
  }
  p->n = between(r, 1, 3);
  if (chance(r, 75)) {
    p->x_type = p->f_type = p->y_type = HK_F32;
    p->x_zero = p->f_zero = p->y_zero = 0;
  }
}
