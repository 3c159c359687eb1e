/* Checkers of outer and tapsum: sums over pixels. */
#include "support/kernel.h"

enum { SEGMENTS = 4, COUNT = 9 };

/* Segments lie in one buffer in reverse order. */
void check_outer(kernel_trial *t) {
  const int64_t vectors = trial_between(t, 1, t->k->nr / t->vw), rows = trial_between(t, 1, 27);
  const int64_t columns = (vectors - 1) * t->vw + trial_between(t, 1, t->vw), segments = trial_between(t, 0, SEGMENTS);
  const int64_t a_at = trial_between(t, 0, 3), b_at = trial_between(t, 0, 3), count = trial_between(t, 1, COUNT);
  const int64_t a_step = a_at + rows + trial_between(t, 0, 2), b_step = b_at + columns + trial_between(t, 0, 2);
  const int64_t out_step = columns + trial_between(t, 0, 2), places = segments * count;
  /* neither operand goes on beyond what its last position reads */
  const float *a = trial_operand(t, places ? (places - 1) * a_step + a_at + rows : 1);
  const float *b = trial_operand(t, places ? (places - 1) * b_step + b_at + columns : 1);
  float *out = trial_operand(t, (rows - 1) * out_step + columns),
        *want = trial_copy(t, out, (rows - 1) * out_step + columns);
  hk_outer_segment seg[SEGMENTS];
  for (int64_t s = 0; s < segments; s++) {
    const int64_t at = (segments - 1 - s) * count;
    seg[s] = (hk_outer_segment){a + at * a_step, b + at * b_step, trial_between(t, 0, count)};
  }
  const int32_t add = trial_chance(t, 50);
  for (int64_t i = 0; i < rows; i++)
    for (int64_t j = 0; j < columns; j++) {
      double sum = add ? (double)out[i * out_step + j] : 0;
      for (int64_t s = 0; s < segments; s++)
        for (int64_t p = 0; p < seg[s].count; p++)
          sum += (double)seg[s].a[a_at + p * a_step + i] * (double)seg[s].b[b_at + p * b_step + j];
      want[i * out_step + j] = (float)sum;
    }
  t->fn(&(hk_outer_args){.seg = seg,
                         .segments = segments,
                         .rows = rows,
                         .vectors = vectors,
                         .columns = columns,
                         .a_at = a_at,
                         .b_at = b_at,
                         .a_step = a_step,
                         .b_step = b_step,
                         .out_step = out_step,
                         .out = out,
                         .add = add});
  trial_compare(t, out, want, (rows - 1) * out_step + columns);
}

/* Taps are neighbours along the segment, in reverse order; every other call is grouped. */
void check_tapsum(kernel_trial *t) {
  const bool grouped = t->vw > 1 && trial_chance(t, 50);
  const int64_t vectors = trial_between(t, 1, t->k->nr / t->vw), taps = trial_between(t, 1, 20);
  const int64_t lanes = (grouped ? 0 : vectors - 1) * t->vw + trial_between(t, 1, t->vw);
  const int64_t dy_lanes = grouped ? trial_between(t, 1, t->vw) : lanes, segments = trial_between(t, 0, SEGMENTS);
  const int64_t x_step = lanes + trial_between(t, 0, 2), dy_step = dy_lanes + trial_between(t, 0, 2);
  const int64_t count = trial_between(t, 1, COUNT), length = count + taps - 1, outputs = grouped ? vectors : 1;
  const int64_t out_step = lanes + trial_between(t, 0, 2), size = (taps * outputs - 1) * out_step + lanes;
  const float *x = trial_operand(t, segments ? (segments * length - 1) * x_step + lanes : 1);
  const float *dy = trial_operand(t, segments ? (segments * count - 1) * dy_step + dy_lanes : 1);
  float *out = trial_operand(t, size), *want = trial_copy(t, out, size);
  hk_tapsum_segment seg[SEGMENTS];
  hk_tapsum_tap tap[20];
  int32_t index[4 * 16];
  for (int64_t s = 0; s < segments; s++)
    seg[s] = (hk_tapsum_segment){x + s * length * x_step, dy + s * count * dy_step, trial_between(t, 0, count)};
  for (int64_t i = 0; i < taps; i++) tap[i] = (hk_tapsum_tap){(taps - 1 - i) * x_step, i * outputs * out_step};
  for (int64_t i = 0; i < outputs * t->vw; i++) index[i] = (int32_t)trial_between(t, 0, dy_lanes - 1);
  for (int64_t i = 0; i < taps; i++)
    for (int64_t j = 0; j < outputs; j++)
      for (int64_t l = 0; l < lanes; l++) {
        const int64_t at = tap[i].out + j * out_step + l, from = grouped ? index[j * t->vw + l] : l;
        double sum = (double)out[at];
        for (int64_t s = 0; s < segments; s++)
          for (int64_t p = 0; p < seg[s].count; p++)
            sum += (double)seg[s].x[tap[i].x + p * x_step + l] * (double)seg[s].dy[p * dy_step + from];
        want[at] = (float)sum;
      }
  t->fn(&(hk_tapsum_args){.seg = seg,
                          .tap = tap,
                          .index = index,
                          .segments = segments,
                          .taps = taps,
                          .vectors = vectors,
                          .lanes = lanes,
                          .dy_lanes = dy_lanes,
                          .x_step = x_step,
                          .dy_step = dy_step,
                          .out_step = out_step,
                          .out = out,
                          .grouped = grouped});
  trial_compare(t, out, want, size);
}
