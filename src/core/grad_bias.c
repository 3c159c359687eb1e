/* The gradient of the bias: dy summed over batch and space, in double. Where channels are adjacent, a block of them is
 * summed pixel by pixel; else a channel is summed line by line. */
#include "core/core.h"

enum { BLOCK = 64 }; /* channels, or pixels of a line, summed side by side */

#define ADD(element)                                                                                                   \
  for (int64_t i = 0; i < count; i++) sum[i] += (element);                                                             \
  break

/* sum[i] += dy[at + i*step] for i < count. */
static void add(hk_type t, const void *dy, int64_t at, int64_t step, int64_t count, double *sum) {
  switch (step == 1 ? t : HK_S32) {
  case HK_F32: ADD((double)((const float *)dy)[at + i]);
  case HK_F64: ADD(((const double *)dy)[at + i]);
  case HK_BF16: ADD((double)hk_bf16_to_f32(((const uint16_t *)dy)[at + i]));
  default: ADD(hk_load_element(t, dy, at + i * step));
  }
}

/* Where pixel m of the batch lies. */
static int64_t pixel_at(const hk_geom *g, int64_t m) {
  const int64_t q = m % g->out[2], r = m / g->out[2] % g->out[1], u = m / g->out[2] / g->out[1] % g->out[0];
  return m / g->pixels * g->y.outer + u * g->y.at[0] + r * g->y.at[1] + q * g->y.at[2];
}

static void block_sum(const hk_geom *g, hk_type t, const void *dy, int64_t base, int64_t count, double *sum) {
  for (int64_t i = 0; i < count; i++) sum[i] = 0;
  for (int64_t m = 0; m < g->gm; m++) add(t, dy, base + pixel_at(g, m), 1, count, sum);
}

static double channel_sum(const hk_geom *g, hk_type t, const void *dy, int64_t base) {
  const int64_t step = g->y.at[2];
  double part[BLOCK] = {0}, sum = 0;
  for (int64_t m = 0; m < g->gm; m += g->out[2])
    for (int64_t q = 0; q < g->out[2]; q += BLOCK)
      add(t, dy, base + pixel_at(g, m) + q * step, step, hk_min64(BLOCK, g->out[2] - q), part);
  for (int i = 0; i < BLOCK; i++) sum += part[i];
  return sum;
}

hk_status hk_grad_bias(const hk_problem *p, const void *dy, void *db) {
  hk_geom g;
  hk_problem room;
  if (!(p = hk_take(p, &room, sizeof room, "problem"))) return HK_INVALID;
  const hk_status s = hk_grad_check(p, &g);
  if (s) return s;
  if (!db || (!dy && g.gm * g.k > 0)) return hk_fail(HK_INVALID, "dy and db must not be NULL");
  const hk_type t = hk_grad_type(p), to = t == HK_F64 ? HK_F64 : HK_F32;
  double sum[BLOCK];
  for (int64_t k = 0, count; k < g.k * g.groups; k += count) {
    const int64_t base = g.y.offset + hk_geom_y_channel(&g, &g.y, k);
    count = g.y.channel == 1 ? hk_min64(BLOCK, g.k - k % g.k) : 1;
    if (count > 1) block_sum(&g, t, dy, base, count, sum);
    else sum[0] = channel_sum(&g, t, dy, base);
    for (int64_t i = 0; i < count; i++) hk_store_element(to, db, k + i, sum[i]);
  }
  return HK_OK;
}
