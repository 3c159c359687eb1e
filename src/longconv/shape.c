/* Cuts a convolution into blocks: the points of a transform are 2^i or 3*2^i, so that padding costs at most a third. */
#include <math.h>

#include "longconv/longconv.h"

/* Passes beside the steps of a transform (twiddles, transposes, rows in and out), in steps of radix 2. */
#define BESIDE 6.0

/* n1 >= n2, both near the root; false where VW lanes do not fit. */
static bool split(int64_t points, int64_t vw, hk_longconv_shape *s) {
  const int64_t odd = points % 3 ? 1 : 3, least = hk_max64(16, vw);
  int64_t n2 = 16;
  while (n2 * n2 * 4 <= points) n2 *= 2;
  s->n1 = points / n2, s->n2 = n2, s->points = points;
  return s->n1 >= least && s->n2 >= least && s->n1 >= 16 * odd;
}

static double cost(const hk_longconv_shape *s) {
  return (double)s->blocks * (double)s->points * (log2((double)s->points) + BESIDE);
}

hk_longconv_shape hk_longconv_cut(int64_t length, int64_t window, int64_t vw) {
  hk_longconv_shape best = {.blocks = 0};
  const int64_t taps = hk_max64(1, hk_min64(window, length)), whole = length + taps - 1;
  for (int64_t two = 256; best.blocks != 1; two *= 2)
    for (int i = 0; i < 2; i++) { /* 2^i, then 1.5 times that */
      hk_longconv_shape s = {.taps = taps};
      if (!split(i ? two / 2 * 3 : two, vw, &s)) continue;
      s.step = 2 * s.points - taps + 1;
      if (s.step < 1) continue;
      s.blocks = 2 * s.points >= whole ? 1 : hk_ceil_div(length, s.step);
      if (!best.blocks || cost(&s) < cost(&best)) best = s;
      if (s.blocks == 1 && best.blocks != 1) return best; /* larger ones only cost more */
      if (s.blocks == 1) break;
    }
  return best;
}
