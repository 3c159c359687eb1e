/* Checkers of igemm, dot, pgemm, weave, qgemm and dgemm. */
#include <string.h>

#include "support/kernel.h"

/* What igemm, dot and pgemm draw alike. */
typedef struct shape {
  int64_t count, segments, channels, vectors, lanes, nr, columns;
  trial_epilogue e;
  bool raw; /* SUSPEND: partial sums in place of y */
} shape;

static shape draw_shape(kernel_trial *t, bool dot) {
  shape s = {.lanes = dot ? 1 : t->vw, .count = trial_between(t, 1, 27), .segments = trial_between(t, 0, 3)};
  s.vectors = trial_between(t, 1, t->k->nr / s.lanes);
  s.channels = trial_between(t, 1, dot ? 40 : 9);
  s.nr = s.vectors * s.lanes;
  s.columns = (s.vectors - 1) * s.lanes + trial_between(t, 1, s.lanes);
  s.e = trial_draw_igemm_epilogue(t);
  if (trial_chance(t, 25)) s.e.flags |= HK_IGEMM_RESUME;
  if (trial_chance(t, 25)) s.e.flags = (s.e.flags & HK_IGEMM_RESUME) | HK_IGEMM_SUSPEND;
  s.raw = s.e.flags & HK_IGEMM_SUSPEND;
  return s;
}

/* Rows lie in one buffer in reverse order; every other time without tables, as hk_igemm_line. */
void check_igemm(kernel_trial *t) {
  const bool dot = t->k->family == HK_FAMILY_DOT;
  const shape s = draw_shape(t, dot);
  const int64_t row = s.channels, places = s.count * s.segments, outputs = s.count * s.columns;
  const float *x = trial_operand(t, places * row), *f = trial_operand(t, s.segments * row * s.nr);
  const float *c = trial_operand(t, outputs), *affine = trial_operand(t, 2 * s.nr), *rows[4 * 27], *c_rows[27];
  float *y = trial_output(t, outputs), *part = trial_operand(t, s.count * s.nr), *y_rows[27];
  float *want = trial_copy(t, y, outputs), *want_part = trial_copy(t, part, s.count * s.nr);
  int64_t seg[4], x_seg[4];
  for (int64_t i = 0; i < places; i++) rows[i] = x + (places - 1 - i) * row;
  for (int64_t i = 0; i < s.segments; i++) {
    seg[i] = (s.segments - 1 - i) * row;
    x_seg[i] = (places - 1 - i * s.count) * row;
  }
  for (int64_t m = 0; m < s.count; m++) y_rows[m] = y + m * s.columns, c_rows[m] = c + m * s.columns;
  for (int64_t m = 0; m < s.count; m++)
    for (int64_t j = 0; j < s.nr; j++) {
      double sum = s.e.flags & HK_IGEMM_RESUME ? (double)part[m * s.nr + j] : 0;
      for (int64_t i = 0; i < s.segments; i++)
        for (int64_t a = 0; a < row; a++)
          sum +=
              (double)rows[i * s.count + m][a] * (double)f[dot ? seg[i] * s.nr + j * row + a : (seg[i] + a) * s.nr + j];
      if (s.raw) want_part[m * s.nr + j] = (float)sum;
      else if (j < s.columns)
        want[m * s.columns + j] =
            (float)trial_igemm_epilogue(&s.e, sum, affine[j], affine[s.nr + j], c[m * s.columns + j]);
    }
  const hk_igemm_line line = {
      .x = x, .c = c, .y = y, .x_seg = x_seg, .x_step = -row, .y_step = s.columns, .c_step = s.columns};
  const bool even = (dot || !(s.e.flags & (HK_IGEMM_RESUME | HK_IGEMM_SUSPEND))) && trial_chance(t, 50);
  t->fn(&(hk_igemm_args){.line = even ? &line : NULL,
                         .rows = even ? NULL : rows,
                         .row_step = s.count,
                         .count = s.count,
                         .segments = s.segments,
                         .channels = row,
                         .seg = seg,
                         .f = f,
                         .prefetch = trial_chance(t, 50),
                         .vectors = s.vectors,
                         .columns = s.columns,
                         .flags = s.e.flags,
                         .beta = s.e.beta,
                         .lo = s.e.lo,
                         .hi = s.e.hi,
                         .scale = affine,
                         .bias = affine + s.nr,
                         .c = even ? NULL : c_rows,
                         .y = even ? NULL : y_rows,
                         .partial = part});
  trial_compare(t, y, want, outputs);
  trial_compare(t, part, want_part, s.count * s.nr);
}

/* Weights packed by tiles as hk_tile_rows splits them; two strips where the strips are whole. */
void check_pgemm(kernel_trial *t) {
  const shape s = draw_shape(t, false);
  const int64_t depth = s.segments * s.channels;
  const bool two = s.columns == s.nr && !(s.e.flags & (HK_IGEMM_SUSPEND | HK_IGEMM_RESUME));
  const int64_t strips = two ? 2 : 1, width = s.nr * strips, columns = s.columns + s.nr * (strips - 1);
  const int64_t outputs = s.count * columns;
  const float *a = trial_operand(t, s.count * depth), *b = trial_operand(t, depth * width);
  const float *c = trial_operand(t, outputs), *affine = trial_operand(t, 2 * s.count);
  float *y = trial_output(t, outputs), *part = trial_operand(t, s.count * s.nr), *kept = trial_output(t, depth * s.nr);
  float *want = trial_copy(t, y, outputs), *want_part = trial_copy(t, part, s.count * s.nr);
  hk_pgemm_segment seg[4];
  for (int64_t i = 0; i < s.segments; i++)
    seg[i] = (hk_pgemm_segment){b + i * s.channels * width, (s.segments - 1 - i) * s.channels, s.channels};
  for (int64_t m0 = 0, rows; m0 < s.count; m0 += rows) {
    rows = hk_tile_rows(s.count - m0, t->k->mr);
    for (int64_t m = m0; m < m0 + rows; m++)
      for (int64_t j = 0; j < width; j++) {
        double sum = s.e.flags & HK_IGEMM_RESUME ? (double)part[m * s.nr + j] : 0;
        for (int64_t i = 0; i < s.segments; i++)
          for (int64_t h = 0; h < s.channels; h++)
            sum += (double)a[m0 * depth + (seg[i].at + h) * rows + m - m0] * (double)seg[i].b[h * width + j];
        if (s.raw) want_part[m * s.nr + j] = (float)sum;
        else if (j < columns)
          want[m * columns + j] =
              (float)trial_igemm_epilogue(&s.e, sum, affine[m], affine[s.count + m], c[m * columns + j]);
      }
  }
  t->fn(&(hk_pgemm_args){.a = a,
                         .depth = depth,
                         .count = s.count,
                         .segments = s.segments,
                         .b_step = width,
                         .seg = seg,
                         .vectors = s.vectors,
                         .columns = s.columns,
                         .strips = strips,
                         .prefetch = trial_chance(t, 50),
                         .flags = s.e.flags,
                         .beta = s.e.beta,
                         .lo = s.e.lo,
                         .hi = s.e.hi,
                         .scale = affine,
                         .bias = affine + s.count,
                         .c = c,
                         .y = y,
                         .c_step = columns,
                         .y_step = columns,
                         .partial = part,
                         .kept = trial_chance(t, 50) ? kept : NULL});
  trial_compare(t, y, want, outputs);
  trial_compare(t, part, want_part, s.count * s.nr);
}

/* Lines of exactly `width` floats; any lane may read any float of its vector. */
void check_weave(kernel_trial *t) {
  enum { ROWS = 3 };
  const int64_t vw = t->vw, rows = trial_between(t, 0, ROWS), taps = trial_between(t, 1, 4),
                channels = trial_between(t, 1, 6);
  const int64_t vectors = trial_between(t, 1, 15), y_lanes = trial_between(t, 1, vw), width = trial_between(t, 1, 90);
  const int64_t outputs = (vectors - 1) * y_lanes + trial_between(t, 1, y_lanes), x_step = trial_between(t, 1, 20);
  const int64_t start = trial_between(t, -30, 9), tap_step = trial_between(t, 1, 9);
  const int64_t first = trial_chance(t, 50) ? trial_between(t, 0, vectors - 1) : 0, f_row[ROWS] = {2, 0, 1};
  const trial_epilogue e = trial_draw_igemm_epilogue(t);
  const float *x[ROWS], *f = trial_operand(t, taps * ROWS * channels * vw), *c = trial_operand(t, outputs);
  const float *affine = trial_operand(t, 2 * vw);
  float *y = trial_output(t, outputs), *want = trial_copy(t, y, outputs);
  int32_t index[6 * 16];
  for (int r = 0; r < ROWS; r++) x[r] = trial_operand(t, width);
  for (int64_t i = 0; i < channels * vw; i++) index[i] = (int32_t)trial_between(t, 0, vw - 1);
  for (int64_t o = first * y_lanes; o < outputs; o++) {
    const int64_t j = o / y_lanes, l = o % y_lanes;
    double sum = 0;
    for (int64_t s = 0; s < taps; s++)
      for (int64_t r = 0; r < rows; r++)
        for (int64_t i = 0; i < channels; i++) {
          const int64_t at = start + s * tap_step + j * x_step + index[i * vw + l];
          if (at >= 0 && at < width)
            sum += (double)x[r][at] * (double)f[((s * ROWS + f_row[r]) * channels + i) * vw + l];
        }
    want[o] = (float)trial_igemm_epilogue(&e, sum, affine[l], affine[vw + l], c[o]);
  }
  t->fn(&(hk_weave_args){.x = x,
                         .f_row = f_row,
                         .f = f,
                         .index = index,
                         .rows = rows,
                         .taps = taps,
                         .channels = channels,
                         .f_rows = ROWS,
                         .start = start,
                         .tap_step = tap_step,
                         .x_step = x_step,
                         .width = width,
                         .y_lanes = y_lanes,
                         .outputs = outputs,
                         .first = first,
                         .end = vectors,
                         .flags = e.flags,
                         .beta = e.beta,
                         .lo = e.lo,
                         .hi = e.hi,
                         .scale = affine,
                         .bias = affine + vw,
                         .c = c,
                         .y = y});
  trial_compare(t, y, want, outputs);
}

/* s16 operands in buffers of floats; products of up to 2^15 squared wrap around as s32 sums do. */
void check_qgemm(kernel_trial *t) {
  const int64_t mr = t->k->mr, nr = t->k->nr, segments = trial_between(t, 0, 3), pairs = trial_between(t, 1, 9);
  const int64_t rows = mr * segments;
  int16_t *x = (int16_t *)trial_output(t, rows * pairs), *f = (int16_t *)trial_output(t, segments * pairs * nr);
  int32_t *out = (int32_t *)trial_output(t, mr * nr), *want = (int32_t *)trial_output(t, mr * nr);
  const int16_t *row[3 * 16];
  const int most = trial_chance(t, 50) ? 32767 : 255;
  for (int64_t i = 0; i < 2 * rows * pairs; i++) x[i] = (int16_t)trial_between(t, -most, most);
  for (int64_t i = 0; i < 2 * segments * pairs * nr; i++) f[i] = (int16_t)trial_between(t, -most, most);
  for (int64_t i = 0; i < rows; i++) row[i] = x + (rows - 1 - i) * 2 * pairs;
  const int32_t accumulate = trial_chance(t, 50);
  for (int64_t m = 0; m < mr; m++)
    for (int64_t j = 0; j < nr; j++) {
      uint32_t sum = accumulate ? (uint32_t)out[m * nr + j] : 0;
      for (int64_t s = 0; s < segments; s++)
        for (int64_t i = 0; i < 2 * pairs; i++)
          sum += (uint32_t)(row[s * mr + m][i] * f[((s * pairs + i / 2) * nr + j) * 2 + i % 2]);
      want[m * nr + j] = (int32_t)sum;
    }
  t->fn(&(hk_qgemm_args){row, f, out, segments, pairs, accumulate});
  t->failed |= memcmp(out, want, (size_t)(mr * nr) * sizeof *out) != 0;
}

void check_dgemm(kernel_trial *t) {
  const int64_t mr = t->k->mr, nr = t->k->nr, segments = trial_between(t, 0, 3), channels = trial_between(t, 1, 9);
  const int64_t step = trial_between(t, 1, 3), rows = mr * segments, length = (channels - 1) * step + 1;
  double *x = (double *)(void *)trial_output(t, 2 * rows * length),
         *f = (double *)(void *)trial_output(t, 2 * segments * channels * nr);
  double *out = (double *)(void *)trial_output(t, 2 * mr * nr);
  const double *row[3 * 16];
  for (int64_t i = 0; i < rows * length; i++) x[i] = (double)trial_between(t, -3, 3);
  for (int64_t i = 0; i < segments * channels * nr; i++) f[i] = (double)trial_between(t, -3, 3);
  for (int64_t i = 0; i < mr * nr; i++) out[i] = (double)trial_between(t, -3, 3);
  for (int64_t i = 0; i < rows; i++) row[i] = trial_chance(t, 20) ? NULL : x + (rows - 1 - i) * length;
  const int32_t accumulate = trial_chance(t, 50);
  double want[16 * 16];
  for (int64_t m = 0; m < mr; m++)
    for (int64_t j = 0; j < nr; j++) {
      double sum = accumulate ? out[m * nr + j] : 0;
      for (int64_t s = 0; s < segments; s++)
        for (int64_t i = 0; i < channels && row[s * mr + m]; i++)
          sum += row[s * mr + m][i * step] * f[(s * channels + i) * nr + j];
      want[m * nr + j] = sum;
    }
  for (int64_t i = 0; i < mr * nr && !accumulate; i++) out[i] = KERNEL_POISON;
  t->fn(&(hk_dgemm_args){row, f, out, segments, channels, step, accumulate});
  for (int64_t i = 0; i < mr * nr; i++) t->failed |= out[i] != want[i];
}
