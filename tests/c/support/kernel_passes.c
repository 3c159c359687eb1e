/* Checkers of gather, transpose, stage, convert, act, map, small and frame. */
#include <math.h>
#include <string.h>

#include "core/core.h"
#include "support/kernel.h"

/* Three pieces, the middle one of zeros. */
void check_gather(kernel_trial *t) {
  const int64_t step = trial_between(t, 1, 3), channels = trial_between(t, 1, 3);
  const int32_t n0 = (int32_t)trial_between(t, 0, 70), n1 = (int32_t)trial_between(t, 0, 18);
  const int32_t n2 = (int32_t)trial_between(t, 0, 70);
  const int64_t second = n0 ? (n0 - 1) * step + 1 : 0, plane = second + (n2 ? (n2 - 1) * step + 1 : 0),
                width = n0 + n1 + n2;
  const float *x = trial_operand(t, channels * plane);
  float *to = trial_output(t, channels * width), *want = trial_copy(t, to, channels * width);
  const hk_gather_piece piece[] = {{0, 0, n0, false}, {0, n0, n1, true}, {second, n0 + n1, n2, false}};
  for (int64_t c = 0; c < channels; c++)
    for (int p = 0; p < 3; p++)
      for (int64_t i = 0; i < piece[p].count; i++)
        want[c * width + piece[p].at + i] = piece[p].zero ? 0 : x[c * plane + piece[p].from + i * step];
  t->fn(&(hk_gather_args){.x = x,
                          .channels = channels,
                          .c_step = plane,
                          .step = step,
                          .width = width,
                          .pieces = 3,
                          .piece = piece,
                          .to = to});
  trial_compare(t, to, want, channels * width);
}

void check_transpose(kernel_trial *t) {
  const int64_t rows = trial_between(t, 1, trial_chance(t, 50) ? 9 : 40),
                columns = trial_between(t, 1, trial_chance(t, 50) ? 9 : 40);
  const int64_t from_step = columns + (trial_chance(t, 50) ? trial_between(t, 0, 4) : 0);
  const int64_t to_step = rows + (trial_chance(t, 50) ? trial_between(t, 0, 4) : 0),
                size = (columns - 1) * to_step + rows;
  const float *from = trial_operand(t, (rows - 1) * from_step + columns);
  float *to = trial_output(t, size), *want = trial_copy(t, to, size);
  for (int64_t r = 0; r < rows; r++)
    for (int64_t c = 0; c < columns; c++) want[c * to_step + r] = from[r * from_step + c];
  t->fn(&(hk_transpose_args){from, to, from_step, to_step, rows, columns});
  trial_compare(t, to, want, size);
}

/* Within a phase, up to a vector of zeros may follow the last column. */
void check_stage(kernel_trial *t) {
  const bool plain = trial_chance(t, 70);
  hk_stage_args a = {.rows = trial_between(t, 1, 3),
                     .cols = trial_between(t, 1, 90),
                     .lead = trial_between(t, 0, 9),
                     .x_step = plain ? 1 : trial_between(t, 1, 3),
                     .spread = plain ? 1 : trial_between(t, 1, 3),
                     .phases = trial_between(t, 1, 9)};
  const int64_t end = a.lead + (a.cols - 1) * a.spread + 1, length = (a.cols - 1) * a.x_step + 1;
  a.x_row = length + trial_between(t, 0, 2);
  a.pitch = hk_ceil_div(end, a.phases) + t->vw;
  a.row = a.pitch * a.phases;
  a.x = trial_operand(t, (a.rows - 1) * a.x_row + length);
  a.buffer = trial_output(t, a.rows * a.row);
  float *want = trial_copy(t, a.buffer, a.rows * a.row);
  for (int64_t r = 0; r < a.rows; r++)
    for (int64_t i = 0; i < a.cols; i++) {
      const int64_t j = a.lead + i * a.spread;
      want[r * a.row + j % a.phases * a.pitch + j / a.phases] = a.x[r * a.x_row + i * a.x_step];
    }
  t->fn(&a);
  for (int64_t i = 0; i < a.rows * a.row; i++) {
    const int64_t phase = i % a.row / a.pitch, at = i % a.pitch;
    if (at * a.phases + phase >= end && a.buffer[i] == 0) want[i] = 0;
  }
  trial_compare(t, a.buffer, want, a.rows * a.row);
}

/* All lengths between guards; the codes themselves are the business of convert_test.c. */
void check_convert(kernel_trial *t) {
  const int64_t count = trial_between(t, 0, 70), skew = trial_between(t, 0, 1);
  const bool widens = t->k->f_type == HK_F32;
  float *wide = trial_operand(t, count);
  uint16_t *narrow = (uint16_t *)(void *)trial_output(t, (count + 1 + skew) / 2);
  if (!t->high) narrow += 0;
  else narrow += (count + 1 + skew) / 2 * 2 - count; /* the last element touches the guard */
  const hk_type type = widens ? t->k->x_type : t->k->f_type;
  if (widens) {
    for (int64_t i = 0; i < count; i++) hk_store_element(type, narrow, i, (double)wide[i]);
    for (int64_t i = 0; i < count; i++) wide[i] = KERNEL_POISON;
    t->fn(&(hk_convert_args){narrow, wide, count});
    for (int64_t i = 0; i < count; i++) t->failed |= (double)wide[i] != hk_load_element(type, narrow, i);
  } else {
    t->fn(&(hk_convert_args){wide, narrow, count});
    for (int64_t i = 0; i < count; i++) {
      uint16_t code;
      hk_store_element(type, &code, 0, (double)wide[i]);
      t->failed |= code != narrow[i];
    }
  }
}

static const hk_act exact_acts[] = {HK_ACT_NONE, HK_ACT_RELU, HK_ACT_CLIP, HK_ACT_LEAKY, HK_ACT_PRELU, HK_ACT_HARDTANH};

static hk_act draw_act(kernel_trial *t) {
  if (t->integers) return exact_acts[trial_between(t, 0, HK_COUNT(exact_acts) - 1)];
  return (hk_act)trial_between(t, HK_ACT_NONE, HK_ACT_USER - 1);
}

void check_act(kernel_trial *t) {
  const int64_t count = trial_between(t, 0, 70), slopes = trial_between(t, 0, 1), adds = trial_between(t, 0, 2);
  hk_act_args a = {.count = count, .act = draw_act(t), .a = -2, .b = 3, .slope_step = slopes, .add_step = adds == 2};
  if (a.act == HK_ACT_LEAKY) a.a = 0.5f;
  float *v = trial_operand(t, count);
  a.v = v;
  a.y = trial_chance(t, 50) ? v : trial_operand(t, count);
  a.slope = trial_operand(t, slopes ? count : 1);
  if (adds) a.add = trial_operand(t, a.add_step ? count : 1);
  float *want = trial_copy(t, v, count);
  for (int64_t i = 0; i < count; i++) {
    const double slope = a.act == HK_ACT_PRELU ? (double)a.slope[i * slopes] : 0;
    const float sum = a.add ? v[i] + a.add[i * a.add_step] : v[i];
    want[i] = (float)trial_act(a.act, a.a, a.b, slope, sum);
  }
  t->fn(&a);
  trial_compare(t, a.y, want, count);
}

static hk_map_act draw_map_act(kernel_trial *t, const float *slopes) {
  hk_map_act a = {.act = draw_act(t), .a = -2, .b = 3, .slopes = slopes};
  if (a.act == HK_ACT_LEAKY) a.a = 0.5f;
  if (a.act == HK_ACT_HARDTANH && trial_chance(t, 50)) a.a = -1, a.b = 1, a.slope_lo = 0.5f, a.slope_hi = 0.25f;
  return a;
}

static double map_act_of(const hk_map_act *a, int64_t row, double v) {
  if (a->act == HK_ACT_HARDTANH && v < (double)a->a) return (double)a->a + (v - (double)a->a) * (double)a->slope_lo;
  if (a->act == HK_ACT_HARDTANH && v > (double)a->b) return (double)a->b + (v - (double)a->b) * (double)a->slope_hi;
  return trial_act(a->act, a->a, a->b, a->act == HK_ACT_PRELU ? (double)a->slopes[row] : 0, v);
}

static double map_of(const hk_map_args *a, int64_t r, int64_t i) {
  const double x = a->x[r * a->x_stride + i], x2 = a->op ? (double)a->x2[r * a->x2_stride + i] : 0;
  if (a->op == HK_MAP_SCALE) return x * x2 + (a->x3 ? (double)a->x3[r * a->x3_stride + i] : 0);
  const double v = map_act_of(&a->act, r, x);
  if (a->op == HK_MAP_ACT) return v;
  const double w = map_act_of(&a->act2, r, x2);
  return a->op == HK_MAP_GATED ? v * w : w * v + (1 - w) * x;
}

void check_map(kernel_trial *t) {
  hk_map_args a = {.rows = trial_between(t, 1, 4), .n = trial_between(t, 0, 100), .beta = 2};
  const int64_t stride = a.n + trial_between(t, 0, 3), size = (a.rows - 1) * stride + a.n;
  a.op = (int32_t)trial_between(t, HK_MAP_ACT, HK_MAP_SCALE);
  a.x_stride = a.x2_stride = a.x3_stride = a.add_stride = a.y_stride = a.sum_stride = stride;
  float *x = trial_operand(t, size), *y = trial_output(t, size), *sum = trial_operand(t, size);
  const float *slopes = trial_operand(t, a.rows);
  a.x = x;
  a.x2 = trial_operand(t, size);
  if (trial_chance(t, 50)) a.x3 = trial_operand(t, size);
  if (trial_chance(t, 50)) a.add = trial_operand(t, size);
  if (trial_chance(t, 50)) a.sum = sum;
  a.act = draw_map_act(t, slopes), a.act2 = draw_map_act(t, slopes);
  a.y = trial_chance(t, 30) ? x : y;
  float *want = trial_copy(t, a.y, size), *want_sum = trial_copy(t, sum, size);
  for (int64_t r = 0; r < a.rows; r++)
    for (int64_t i = 0; i < a.n; i++) {
      const int64_t at = r * stride + i;
      want[at] = (float)(map_of(&a, r, i) + (a.add ? 2 * (double)a.add[at] : 0));
      if (a.sum) want_sum[at] += want[at];
    }
  t->fn(&a);
  trial_compare(t, a.y, want, size);
  trial_compare(t, sum, want_sum, size);
}

/* Groups of channels o = g*y_group + j*MR + i; tiles over MG groups have one tile per group. */
void check_small(kernel_trial *t) {
  const int64_t mr = t->k->mr, mg = t->k->family == HK_FAMILY_SMALL4 ? 4 : t->k->family == HK_FAMILY_SMALL2 ? 2 : 1;
  hk_small_seg seg[3];
  hk_small_args a = {.seg = seg,
                     .n = trial_between(t, 0, 200),
                     .groups = mg * trial_between(t, 1, 3),
                     .tiles = mg > 1 ? 1 : trial_between(t, 1, 3),
                     .segs = (int32_t)trial_between(t, 0, 3),
                     .act = (int32_t)trial_between(t, HK_SMALL_NONE, HK_SMALL_LEAKY),
                     .hi = 11};
  a.lo = a.act == HK_SMALL_LEAKY ? 0.5f : -9;
  a.y_group = a.tiles * mr;
  const int64_t outputs = a.groups * a.y_group, stride = a.n + trial_between(t, 0, 3),
                size = (outputs - 1) * stride + a.n;
  a.y_stride = a.add_stride = a.sum_stride = stride;
  for (int32_t s = 0; s < a.segs; s++) {
    hk_small_seg *q = &seg[s];
    q->channels = trial_between(t, 1, 5), q->stride = a.n + trial_between(t, 0, 3), q->group = q->channels * q->stride;
    q->x = trial_operand(t, (a.groups * q->channels - 1) * q->stride + a.n);
    q->f = trial_operand(t, outputs * q->channels);
  }
  a.bias = trial_operand(t, outputs);
  float *sum = trial_operand(t, size);
  a.y = trial_output(t, size);
  if (trial_chance(t, 50)) a.add = trial_chance(t, 50) ? trial_operand(t, size) : a.y;
  if (a.add == a.y)
    for (int64_t i = 0; i < size; i++) a.y[i] = (float)trial_between(t, -3, 3);
  if (trial_chance(t, 50)) a.sum = sum;
  float *want = trial_copy(t, a.y, size), *want_sum = trial_copy(t, sum, size);
  for (int64_t o = 0; o < outputs; o++) {
    const int64_t g = o / a.y_group, j = o % a.y_group / mr, i = o % mr, index = g / mg * a.tiles + j;
    for (int64_t at = 0; at < a.n; at++) {
      double v = (double)a.bias[o] + (a.add ? (double)a.add[o * stride + at] : 0);
      for (int32_t s = 0; s < a.segs; s++)
        for (int64_t c = 0; c < seg[s].channels; c++)
          v += (double)seg[s].f[((index * seg[s].channels + c) * mg + g % mg) * mr + i] *
               (double)seg[s].x[g * seg[s].group + c * seg[s].stride + at];
      if (a.act == HK_SMALL_CLIP) v = fmin(fmax(v, a.lo), a.hi);
      if (a.act == HK_SMALL_LEAKY && v < 0) v *= (double)a.lo;
      want[o * stride + at] = (float)v;
      if (a.sum) want_sum[o * stride + at] += (float)v;
    }
  }
  t->fn(&a);
  trial_compare(t, a.y, want, size);
  trial_compare(t, sum, want_sum, size);
}

/* Several frames per step: PERMUTE or PLAIN over dense frames; else any part of a frame. Two tiles write one frame. */
typedef struct frame_draw {
  hk_frame_tile tile[2];
  hk_small_seg x[3];
  hk_frame_args a;
} frame_draw;

static void draw_frame_tile(kernel_trial *t, hk_frame_tile *q, int64_t most, int32_t taps) {
  q->inputs = q->mode == HK_FRAME_PLAIN ? 1 : trial_between(t, 1, trial_chance(t, 50) ? 4 : 17);
  q->outputs = trial_between(t, 1, most);
  q->reads = q->mode == HK_FRAME_PLAIN || q->mode == HK_FRAME_QUADS ? q->outputs
             : q->mode == HK_FRAME_BROADCAST                        ? q->inputs
                                                                    : trial_between(t, 1, most);
  float *f = trial_operand(t, taps * q->inputs * t->vw), *bias = trial_operand(t, t->vw);
  int32_t *index = (int32_t *)(void *)trial_operand(t, q->inputs * t->vw);
  for (int64_t i = 0; i < q->inputs * t->vw; i++) index[i] = (int32_t)trial_between(t, 0, q->reads - 1);
  for (int64_t l = 0; l < t->vw; l++) { /* each frame as the first one */
    const int64_t frame = l < q->frames * q->outputs ? l / q->outputs : 0, like = l - frame * q->outputs;
    bias[l] = bias[like];
    for (int64_t i = 0; i < taps * q->inputs; i++) f[i * t->vw + l] = f[i * t->vw + like];
    for (int64_t m = 0; m < q->inputs; m++) {
      const int64_t from = q->mode == HK_FRAME_QUADS ? l : frame * q->reads + index[m * t->vw + like];
      index[m * t->vw + l] = (int32_t)from;
    }
  }
  q->f = f;
  q->bias = bias;
  q->index = index;
}

static void draw_frame(kernel_trial *t, frame_draw *d) {
  hk_frame_args *a = &d->a;
  hk_frame_tile *q = d->tile;
  *a = (hk_frame_args){.tile = q,
                       .x = d->x,
                       .n = trial_between(t, 1, 70),
                       .tiles = (int32_t)trial_between(t, 1, 2),
                       .taps = (int32_t)trial_between(t, 1, 3),
                       .act = (int32_t)trial_between(t, HK_SMALL_NONE, HK_SMALL_LEAKY),
                       .hi = 11};
  a->lo = a->act == HK_SMALL_LEAKY ? 0.5f : -9;
  if (trial_chance(t, 50)) a->taps = 1;
  for (int32_t j = 0; j < a->tiles; j++) {
    q[j] = (hk_frame_tile){.frames = 1, .mode = (int32_t)trial_between(t, HK_FRAME_PLAIN, HK_FRAME_QUADS)};
    if (a->tiles == 1 && q->mode != HK_FRAME_BROADCAST) q->frames = trial_between(t, 1, t->vw);
    draw_frame_tile(t, &q[j], t->vw / q[j].frames, a->taps);
    q[j].x_at = q->frames > 1 ? 0 : trial_between(t, 0, 3);
    q[j].y_at = j ? q->outputs : 0;
    a->x_frame = hk_max64(a->x_frame, q[j].x_at + q[j].reads);
    a->y_frame = hk_max64(a->y_frame, q[j].y_at + q[j].outputs);
  }
  if (q->frames == 1) {
    a->x_frame += trial_between(t, 0, 3);
    a->y_frame += trial_between(t, 0, 3);
  }
}

static double frame_sum(const kernel_trial *t, const hk_frame_args *a, const hk_frame_tile *q, int64_t at, int64_t l) {
  double v = q->bias[l];
  for (int32_t s = 0; s < a->taps; s++) {
    for (int64_t m = 0; m < q->inputs; m++) {
      const int64_t from = q->mode == HK_FRAME_PLAIN ? l : q->mode == HK_FRAME_BROADCAST ? m : q->index[m * t->vw + l];
      v += (double)q->f[(s * q->inputs + m) * t->vw + l] * (double)a->x[s].x[q->x_at + at * a->x_frame + from];
    }
  }
  if (a->act == HK_SMALL_CLIP) v = fmin(fmax(v, a->lo), a->hi);
  return a->act == HK_SMALL_LEAKY && v < 0 ? v * (double)a->lo : v;
}

void check_frame(kernel_trial *t) {
  frame_draw d = {0};
  draw_frame(t, &d);
  hk_frame_args *a = &d.a;
  int64_t x_end = 0, y_end = 0;
  for (int32_t j = 0; j < a->tiles; j++) {
    x_end = hk_max64(x_end, d.tile[j].x_at + d.tile[j].reads);
    y_end = hk_max64(y_end, d.tile[j].y_at + d.tile[j].outputs);
  }
  const int64_t size = (a->n - 1) * a->y_frame + y_end;
  for (int32_t s = 0; s < a->taps; s++) d.x[s].x = trial_operand(t, (a->n - 1) * a->x_frame + x_end);
  a->y = trial_output(t, size);
  float *want = trial_copy(t, a->y, size);
  for (const hk_frame_tile *q = d.tile; q < d.tile + a->tiles; q++) {
    for (int64_t at = 0; at < a->n; at += q->frames) {
      for (int64_t l = 0; l < q->frames * q->outputs && l < (a->n - at) * q->outputs; l++)
        want[q->y_at + at * a->y_frame + l] = (float)frame_sum(t, a, q, at, l);
    }
  }
  t->fn(a);
  trial_compare(t, a->y, want, size);
}
