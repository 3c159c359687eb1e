/* Checkers of strip and point. */
#include <string.h>

#include "support/kernel.h"

static int32_t registers(const kernel_trial *t) {
  return t->k->isa == HK_ISA_AVX2 || t->k->isa == HK_ISA_SCALAR ? 16 : 32;
}

/* Where f keeps the weight of input i for channel j of a tap: plain, or by pairs of inputs. */
static int64_t strip_weight(bool pairs, int64_t vw, int64_t nr, int64_t i, int64_t j) {
  if (!pairs) return i * nr + j;
  return (i / 2 * 2 + j / 2 % 2) * vw + 2 * (j / 4 * 2 + j % 2) + i % 2;
}

void check_strip(kernel_trial *t) {
  const bool pairs = t->vw > 1 && t->k->nr == t->vw;
  const int64_t vw = t->vw;
  hk_strip_tap taps[4];
  int64_t x_at[HK_STRIP_MOST], y_at[HK_STRIP_MOST], c_at[HK_STRIP_MOST];
  hk_strip_args a = {.taps = taps,
                     .x_at = x_at,
                     .y_at = y_at,
                     .c_at = c_at,
                     .tap_count = trial_between(t, 1, 4),
                     .inputs = trial_between(t, 1, 9),
                     .tiles = trial_between(t, 1, 3),
                     .scale_one = trial_chance(t, 50)};
  a.vectors = (int32_t)trial_between(t, 1, pairs ? 1 : t->k->nr / vw);
  a.pixels = (int32_t)trial_between(t, 1, pairs ? HK_STRIP_PAIR_ROWS : HK_STRIP_ROWS(registers(t), a.vectors));
  const int64_t nr = a.vectors * vw, weights = pairs ? hk_round_up(a.inputs, 2) * vw : a.inputs * nr;
  a.lanes = (int32_t)((a.vectors - 1) * vw + trial_between(t, 1, vw));
  if (trial_chance(t, 40)) a.lanes = (int32_t)nr;
  const bool even = trial_chance(t, 50), groups = trial_chance(t, 30);
  const int64_t pixel = a.inputs + trial_between(t, 0, 3),
                y_pixel = a.lanes + (trial_chance(t, 50) ? trial_between(t, 0, 3) : 0);
  a.overlap = even && y_pixel == a.lanes && 2 * a.lanes >= nr && !groups;
  a.x_step = even ? pixel : 0;
  for (int m = 0; m < a.pixels; m++) x_at[m] = m * pixel, y_at[m] = c_at[m] = m * y_pixel;
  const int64_t span = a.pixels + 3, line = span * pixel; /* of one tile: pixels and shifts of up to 3 */
  a.x_next = groups ? line : a.pixels * pixel, a.y_next = a.c_next = a.pixels * y_pixel;
  a.f_next = groups ? a.tap_count * weights : 0, a.channel_next = groups ? a.lanes : 0;
  for (int64_t i = 0; i < a.tap_count; i++)
    taps[i] = (hk_strip_tap){(int32_t)(trial_between(t, 0, 3) * pixel), (int32_t)(i * weights),
                             even || trial_chance(t, 50) ? (1u << a.pixels) - 1
                                                         : (uint32_t)trial_between(t, 0, (1 << a.pixels) - 1)};
  const int64_t channels = groups ? a.tiles * a.lanes : a.lanes, size = (a.tiles * a.pixels - 1) * y_pixel + a.lanes;
  a.fuse = trial_draw_dw_epilogue(t, true);
  a.x = trial_operand(t, (a.tiles - 1) * a.x_next + (span - 1) * pixel + a.inputs);
  a.f = trial_operand(t, (groups ? a.tiles : 1) * a.tap_count * weights), a.y = trial_output(t, size);
  float *zeros = trial_output(t, a.inputs);
  memset(zeros, 0, (size_t)a.inputs * sizeof *zeros);
  a.zeros = zeros;
  if (trial_chance(t, 70)) a.scale = trial_operand(t, a.scale_one ? 1 : channels);
  if (trial_chance(t, 70)) a.bias = trial_operand(t, channels);
  if (a.fuse.flags & (HK_DW_BEFORE | HK_DW_AFTER)) a.c = trial_operand(t, size);
  float *want = trial_copy(t, a.y, size);
  for (int64_t tile = 0; tile < a.tiles; tile++)
    for (int64_t m = 0; m < a.pixels; m++)
      for (int64_t j = 0; j < a.lanes; j++) {
        const int64_t at = tile * a.y_next + y_at[m] + j, channel = tile * a.channel_next + j;
        double sum = 0;
        for (int64_t k = 0; k < a.tap_count; k++)
          for (int64_t i = 0; i < a.inputs && taps[k].mask >> m & 1; i++)
            sum += (double)a.x[tile * a.x_next + taps[k].x + x_at[m] + i] *
                   (double)a.f[tile * a.f_next + taps[k].f + strip_weight(pairs, vw, nr, i, j)];
        const double scale = a.scale ? (double)a.scale[a.scale_one ? 0 : channel] : 1;
        want[at] = (float)trial_dw_epilogue(&a.fuse, sum, scale, a.bias ? (double)a.bias[channel] : 0,
                                            a.c ? (double)a.c[at] : 0);
      }
  t->fn(&a);
  trial_compare(t, a.y, want, size);
}

/* One output of point: the sum of its inputs, fused with bias and clamp. */
static float point_value(const hk_point_shape *s, double sum, const float *bias) {
  if (!s->fused) return (float)sum;
  sum += bias ? (double)*bias : 0;
  return (float)(sum < (double)s->lo ? (double)s->lo : sum > (double)s->hi ? (double)s->hi : sum);
}

static void point_run(kernel_trial *t, const hk_point_args *a, const float *want, int64_t size) {
  t->fn(a);
  trial_compare(t, a->y, want, size);
}

static void check_point_lines(kernel_trial *t, hk_point_shape *s) {
  hk_point_args a = {.shape = s, .count = trial_between(t, 1, 40)};
  s->inputs = (int32_t)trial_between(t, 1, t->k->mr), s->outputs = (int32_t)trial_between(t, 1, t->vw),
  s->groups = trial_between(t, 1, 3);
  const int64_t ins = s->groups * s->inputs, outs = s->groups * s->outputs, vw = t->vw;
  s->x_step = ins + trial_between(t, 0, 2), s->y_step = outs + (trial_chance(t, 50) ? trial_between(t, 0, 2) : 0);
  const int64_t size = (a.count - 1) * s->y_step + outs;
  s->f = trial_operand(t, ins * vw), a.x = trial_operand(t, (a.count - 1) * s->x_step + ins);
  if (trial_chance(t, 70)) a.bias = trial_operand(t, outs);
  a.y = trial_output(t, size);
  float *want = trial_copy(t, a.y, size);
  for (int64_t p = 0; p < a.count; p++)
    for (int64_t k = 0; k < outs; k++) {
      const int64_t g = k / s->outputs, l = k % s->outputs;
      double sum = 0;
      for (int64_t i = 0; i < s->inputs; i++)
        sum += (double)s->f[(g * s->inputs + i) * vw + l] * (double)a.x[p * s->x_step + g * s->inputs + i];
      want[p * s->y_step + k] = point_value(s, sum, a.bias ? a.bias + k : NULL);
    }
  point_run(t, &a, want, size);
}

static void check_point_planes(kernel_trial *t, hk_point_shape *s) {
  hk_point_args a = {.shape = s, .count = trial_between(t, 1, 90)};
  const bool square = s->way == HK_POINT_SQUARES;
  s->inputs = (int32_t)trial_between(t, 1, square ? HK_POINT_SQUARE(registers(t)) : t->k->mr),
  s->groups = trial_between(t, 1, 3);
  s->outputs = square ? s->inputs : (int32_t)trial_between(t, 1, 9);
  const int64_t ins = s->groups * s->inputs, outs = s->groups * s->outputs;
  s->x_step = a.count + trial_between(t, 0, 2), s->y_step = a.count + trial_between(t, 0, 2);
  const int64_t size = (outs - 1) * s->y_step + a.count;
  s->f = trial_operand(t, outs * s->inputs), a.x = trial_operand(t, (ins - 1) * s->x_step + a.count);
  if (trial_chance(t, 70)) a.bias = trial_operand(t, outs);
  a.y = trial_output(t, size);
  float *want = trial_copy(t, a.y, size);
  for (int64_t k = 0; k < outs; k++)
    for (int64_t p = 0; p < a.count; p++) {
      double sum = 0;
      for (int64_t i = 0; i < s->inputs; i++)
        sum += (double)s->f[k * s->inputs + i] * (double)a.x[(k / s->outputs * s->inputs + i) * s->x_step + p];
      want[k * s->y_step + p] = point_value(s, sum, a.bias ? a.bias + k : NULL);
    }
  point_run(t, &a, want, size);
}

/* WOVEN, and ROUNDS, whose blocks fill a vector and whose weights follow the vectors of a pixel. */
static void check_point_woven(kernel_trial *t, hk_point_shape *s) {
  const int64_t vw = t->vw;
  const bool rounds = s->way == HK_POINT_ROUNDS;
  int32_t index[HK_POINT_WOVEN_INPUTS * 16] = {0};
  hk_point_args a = {.shape = s, .count = trial_between(t, 1, 60)};
  int64_t sets, pixel = 0; /* sets of weights; vectors of a pixel */
  if (rounds) {
    do s->inputs = (int32_t)trial_between(t, 1, HK_POINT_ROUND(registers(t)));
    while (vw % s->inputs);
    s->outputs = s->inputs, s->block = (int32_t)(vw / s->inputs), pixel = sets = trial_between(t, 1, 3),
    s->x_step = pixel * vw;
  } else {
    s->inputs =
        (int32_t)trial_between(t, 1, hk_min64(vw, hk_min64(HK_POINT_WOVEN_INPUTS, HK_POINT_WEIGHTS(registers(t)))));
    s->outputs = (int32_t)trial_between(t, 1, vw),
    s->block = (int32_t)trial_between(t, 1, vw / hk_max64(s->inputs, s->outputs));
    sets = s->phases =
        (int32_t)trial_between(t, 1, hk_min64(HK_POINT_PHASES, HK_POINT_WEIGHTS(registers(t)) / s->inputs));
    s->vector_groups = (int32_t)hk_ceil_div(vw, hk_min64(s->inputs, s->outputs));
  }
  const int64_t outs = s->block * s->outputs, total = rounds ? a.count * pixel * s->block : a.count; /* groups */
  for (int64_t i = 0; i < s->inputs; i++)
    for (int64_t l = 0; l < outs; l++) index[i * vw + l] = (int32_t)(l / s->outputs * s->inputs + i);
  s->index = index, s->f = trial_operand(t, sets * s->inputs * vw);
  if (trial_chance(t, 70)) a.bias = trial_operand(t, sets * vw);
  const int64_t size = total * s->outputs;
  a.x = trial_operand(t, total * s->inputs), a.y = trial_output(t, size);
  float *want = trial_copy(t, a.y, size);
  for (int64_t o = 0; o < size; o++) {
    const int64_t block = o / outs, l = o % outs, set = block % sets;
    double sum = 0;
    for (int64_t i = 0; i < s->inputs; i++)
      sum +=
          (double)s->f[(set * s->inputs + i) * vw + l] * (double)a.x[block * s->block * s->inputs + index[i * vw + l]];
    want[o] = point_value(s, sum, a.bias ? a.bias + set * vw + l : NULL);
  }
  point_run(t, &a, want, size);
}

void check_point(kernel_trial *t) {
  hk_point_shape s = {.way = (int32_t)trial_between(t, HK_POINT_LINES, HK_POINT_ROUNDS), .lo = -9, .hi = 11};
  s.fused = s.way != HK_POINT_SQUARES && trial_chance(t, 50);
  if (s.way == HK_POINT_LINES) check_point_lines(t, &s);
  else if (s.way == HK_POINT_PLANES || s.way == HK_POINT_SQUARES) check_point_planes(t, &s);
  else check_point_woven(t, &s);
}
