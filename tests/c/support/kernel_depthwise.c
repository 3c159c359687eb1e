/* Checkers of dwd, dwp, dwc and dwm. */
#include <string.h>

#include "core/core.h"
#include "support/kernel.h"

/* A copy of f32 operands in the type, between guards; the operands become what it holds. */
static const float *narrowed(kernel_trial *t, hk_type type, float *v, int64_t count) {
  if (type == HK_F32) return v;
  uint16_t *to = (uint16_t *)(void *)trial_output(t, (count + 1) / 2);
  if (t->high) to += (count + 1) / 2 * 2 - count; /* the last element touches the guard */
  for (int64_t i = 0; i < count; i++) {
    hk_store_element(type, to, i, (double)v[i]);
    v[i] = (float)hk_load_element(type, to, i);
  }
  return (const float *)(const void *)to;
}

/* x and f are pointers to f32 in the arguments, whatever the row's types are. */
void check_dwd(kernel_trial *t) {
  hk_dwd_args a = {.count = trial_between(t, 0, 200),
                   .x_step = trial_between(t, 1, 9),
                   .outputs = (int32_t)trial_between(t, 1, 8),
                   .add = trial_chance(t, 50)};
  const int64_t length = (a.outputs - 1) * a.x_step + a.count;
  float *x = trial_operand(t, length), *f = trial_operand(t, a.count);
  a.x = narrowed(t, t->k->x_type, x, length), a.f = narrowed(t, t->k->f_type, f, a.count);
  a.sum = a.add ? trial_operand(t, a.outputs) : trial_output(t, a.outputs);
  float *want = trial_copy(t, a.sum, a.outputs);
  for (int32_t j = 0; j < a.outputs; j++) {
    double sum = a.add ? (double)a.sum[j] : 0;
    for (int64_t i = 0; i < a.count; i++) sum += (double)f[i] * (double)x[j * a.x_step + i];
    want[j] = (float)sum;
  }
  t->fn(&a);
  trial_compare(t, a.sum, want, a.outputs);
}

/* Adds the epilogue to a call and stores one element of the definition. */
static float dwp_value(const hk_dwp_args *a, double sum, const float *c) {
  return (float)trial_dw_epilogue(&a->fuse, sum, a->scale, a->bias, c ? (double)*c : 0);
}

static bool has_residual(const hk_dw_fuse *e) { return e->flags & (HK_DW_BEFORE | HK_DW_AFTER); }

/* One row per tile, its window read in place. */
static void check_dwp_line(kernel_trial *t, hk_dwp_args a) {
  const int32_t registers = t->k->isa == HK_ISA_AVX2 ? 16 : 32;
  a.x_step = trial_chance(t, 60) ? 1 : trial_between(t, 2, 5);
  a.line = (int32_t)trial_between(t, 1, a.x_step == 1 ? HK_LINE_TAPS(registers) : HK_LINE_APART);
  a.count = trial_between(t, 1, 150), a.tiles = trial_between(t, 1, 3);
  const int64_t length = a.count + (a.line - 1) * a.x_step;
  a.x_next = length + trial_between(t, 0, 2), a.y_next = a.count + trial_between(t, 0, 2);
  const int64_t size = (a.tiles - 1) * a.y_next + a.count;
  a.x = trial_operand(t, (a.tiles - 1) * a.x_next + length), a.f = trial_operand(t, a.tiles * a.line);
  a.y = trial_output(t, size);
  if (has_residual(&a.fuse)) a.c = trial_operand(t, size);
  float *want = trial_copy(t, a.y, size);
  for (int64_t r = 0; r < a.tiles; r++)
    for (int64_t i = 0; i < a.count; i++) {
      double sum = 0;
      for (int64_t k = 0; k < a.line; k++)
        sum += (double)a.f[r * a.line + k] * (double)a.x[r * a.x_next + i + k * a.x_step];
      want[r * a.y_next + i] = dwp_value(&a, sum, a.c ? a.c + r * a.y_next + i : NULL);
    }
  t->fn(&a);
  trial_compare(t, a.y, want, size);
}

/* The definition of runs: tap k of vector j is vector j + k of a chain, or the vector k floats further on of a fan. */
static void define_dwp(const hk_dwp_args *a, int64_t vw, float *y) {
  for (int64_t tile = 0; tile < a->tiles; tile++)
    for (int64_t j = 0; j < a->vectors; j++) {
      const bool last = tile == a->tiles - 1;
      const int64_t lanes = !last ? vw : j == a->vectors - 1 ? a->last_lanes : a->lanes;
      for (int64_t l = 0; l < lanes; l++) {
        double sum = a->start ? (double)a->start[j * vw + l] : 0;
        const float *f = a->f;
        for (const hk_dw_run *r = a->runs; r < a->runs + a->run_count; f += r->taps, r++)
          for (int64_t k = 0; k < r->taps; k++) {
            const int64_t m = r->fan ? j : j + k, column = r->column + tile * vw + l;
            if (a->width && (m < r->first || m >= r->last || column < 0 || column >= a->width)) continue;
            sum += (double)f[k] * (double)a->x[tile * a->x_next + r->offset + m * a->x_step + (r->fan ? k : 0) + l];
          }
        const int64_t at = tile * a->y_next + j * a->y_step + l;
        y[at] = dwp_value(a, sum, a->c ? a->c + at : NULL);
      }
    }
}

/* x in place: `rows` rows of `width` floats; vectors are rows, tiles go along them. */
static void draw_dwp_masked(kernel_trial *t, hk_dwp_args *a, hk_dw_run *runs) {
  const int64_t rows = trial_between(t, 1, 9), out = trial_between(t, 1, 3 * t->vw);
  a->width = trial_between(t, 1, 40), a->tiles = hk_ceil_div(out, t->vw);
  a->lanes = a->last_lanes = (int32_t)(out - (a->tiles - 1) * t->vw);
  a->x_step = a->width, a->x_next = a->y_next = a->c_next = t->vw, a->y_step = a->c_step = out + trial_between(t, 0, 2);
  a->x = trial_operand(t, rows * a->width);
  for (int64_t i = 0; i < a->run_count; i++) {
    const int64_t row = trial_between(t, -3, rows - 1), column = trial_between(t, -5, 5);
    runs[i].offset = (int32_t)(row * a->width + column), runs[i].column = (int32_t)column;
    runs[i].first = (int16_t)hk_max64(0, -row),
    runs[i].last = (int16_t)hk_min64(rows - row, a->vectors + runs[i].taps - 1);
  }
}

static void draw_dwp_padded(kernel_trial *t, hk_dwp_args *a, hk_dw_run *runs) {
  const bool fans = t->vw > 1 && trial_chance(t, 50);
  int64_t end = 0;
  a->tiles = trial_between(t, 1, 3);
  a->lanes = (int32_t)trial_between(t, 1, t->vw), a->last_lanes = (int32_t)trial_between(t, 1, t->vw);
  a->x_step = fans ? t->vw : trial_between(t, 1, 40), a->x_next = trial_between(t, 1, 40);
  a->y_step = a->c_step = t->vw + trial_between(t, 0, 3), a->y_next = a->c_next = a->vectors * a->y_step;
  for (int64_t i = 0; i < a->run_count; i++) {
    runs[i].fan = fans && runs[i].taps > 1 && trial_chance(t, 70), runs[i].offset = (int32_t)trial_between(t, 0, 60);
    const int64_t reach =
        runs[i].fan ? (a->vectors - 1) * t->vw + runs[i].taps - 1 : (a->vectors + runs[i].taps - 2) * a->x_step;
    end = hk_max64(end, runs[i].offset + reach + t->vw);
  }
  a->x = trial_operand(t, (a->tiles - 1) * a->x_next + end);
  if (a->tiles == 1 && trial_chance(t, 50)) a->start = trial_operand(t, a->vectors * t->vw);
}

void check_dwp(kernel_trial *t) {
  hk_dw_run runs[4] = {{0}};
  hk_dwp_args a = {.runs = runs,
                   .run_count = trial_between(t, 1, 4),
                   .vectors = (int32_t)trial_between(t, 1, t->k->mr),
                   .fuse = trial_draw_dw_epilogue(t, true),
                   .scale = 2,
                   .bias = -3};
  if (t->vw > 1 && trial_chance(t, 25)) {
    check_dwp_line(t, a);
    return;
  }
  int64_t taps = 0;
  for (int64_t i = 0; i < a.run_count; i++)
    runs[i].taps = (int16_t)trial_between(t, 1, HK_RUN_TAPS), taps += runs[i].taps;
  if (t->k->isa >= HK_ISA_AVX512 && trial_chance(t, 40)) draw_dwp_masked(t, &a, runs);
  else draw_dwp_padded(t, &a, runs);
  const int64_t size = (a.tiles - 1) * a.y_next + (a.vectors - 1) * a.y_step + t->vw;
  a.f = trial_operand(t, taps), a.y = trial_output(t, size);
  if (has_residual(&a.fuse)) a.c = trial_operand(t, size);
  float *want = trial_copy(t, a.y, size);
  define_dwp(&a, t->vw, want);
  t->fn(&a);
  trial_compare(t, a.y, want, size);
}

/* The definition: pixels j of blocks b, whose lane l is channel b*y_block - back + l. */
static void define_dwc(const hk_dwc_args *a, int64_t vw, float *y) {
  const int64_t inputs = a->inputs ? a->inputs : 1;
  for (int64_t tile = 0; tile < a->tiles; tile++)
    for (int64_t b = 0; b < a->blocks; b++) {
      const bool last = b == a->blocks - 1;
      const int64_t back = last ? a->back : 0, lanes = last ? a->last_lanes : a->y_lanes,
                    channel = b * a->y_block - back;
      for (int64_t j = 0; j < a->pixels; j++)
        for (int64_t l = 0; l < lanes; l++) {
          const int64_t at = tile * a->y_next + j * a->y_step + channel + l;
          const float *x = a->x + tile * a->x_next + (b >> a->x_shift) * a->x_block - back, *f = a->f + b * a->f_block;
          double sum = a->resume ? (double)a->y[at] : 0;
          for (const hk_dw_run *r = a->runs; r < a->runs + a->run_count; f += r->taps * vw * inputs, r++)
            for (int64_t i = 0; i < inputs; i++)
              for (int64_t k = 0; k < r->taps; k++) {
                if (j + k < r->first || j + k >= r->last) continue;
                const int64_t lane = !a->inputs ? l : a->broadcast ? i : a->index[i * vw + l];
                sum += (double)f[(i * r->taps + k) * vw + l] * (double)x[r->offset + (j + k) * a->x_step + lane];
              }
          const double scale = a->scale ? (double)a->scale[a->scale_one ? 0 : channel + l] : 1;
          y[at] = (float)trial_dw_epilogue(&a->fuse, sum, scale, a->bias ? (double)a->bias[channel + l] : 0,
                                           a->c ? (double)a->c[tile * a->c_next + j * a->c_step + channel + l] : 0);
        }
    }
}

/* Channels and lanes: depthwise blocks of whole vectors but the last, or groups of x_lanes inputs and y_lanes outputs.
 */
static void draw_dwc_blocks(kernel_trial *t, hk_dwc_args *a, int32_t *index) {
  const int64_t vw = t->vw;
  a->blocks = trial_between(t, 1, 5);
  a->y_lanes = a->x_lanes = (int32_t)vw, a->last_lanes = a->last_x_lanes = (int32_t)trial_between(t, 1, vw);
  a->x_block = a->y_block = vw;
  a->inputs = trial_chance(t, 40) ? (int32_t)trial_between(t, 1, hk_min64(vw, 4)) : 0;
  if (!a->inputs) {
    if (a->blocks > 1 && a->last_lanes < vw && trial_chance(t, 40)) {
      a->back = (int32_t)vw - a->last_lanes, a->last_lanes = a->last_x_lanes = (int32_t)vw;
    }
    return;
  }
  a->broadcast = trial_chance(t, 50), a->x_shift = (int32_t)trial_between(t, 0, 1);
  a->y_lanes = (int32_t)trial_between(t, 1, vw), a->last_lanes = (int32_t)trial_between(t, 1, a->y_lanes);
  a->x_lanes = a->last_x_lanes = (int32_t)trial_between(t, a->inputs, vw);
  a->x_block = a->x_lanes, a->y_block = a->y_lanes;
  for (int64_t i = 0; i < a->inputs * vw; i++) index[i] = (int32_t)trial_between(t, 0, a->x_lanes - 1);
}

/* Runs over a line of `width` pixels; a chain lies inside it as a whole. Returns the taps. */
static int64_t draw_dwc_runs(kernel_trial *t, hk_dwc_args *a, hk_dw_run *runs, int64_t *width) {
  int64_t taps = 0;
  if (!a->inputs && t->vw > 1 && trial_chance(t, 50)) {
    static const int32_t sizes[] = {4, 6, 8};
    a->chain = (int32_t)trial_between(t, 1, HK_CHAIN_TAPS), a->pixels = sizes[trial_between(t, 0, 2)];
    *width = a->pixels + a->chain - 1;
    for (; taps < a->chain; taps += runs[a->run_count++].taps) {
      const int16_t n = (int16_t)hk_min64(HK_RUN_TAPS, a->chain - taps);
      runs[a->run_count] = (hk_dw_run){(int32_t)(taps * a->x_step), n, 0, (int16_t)(a->pixels + n - 1), 0, 0};
    }
    return taps;
  }
  *width = trial_between(t, 1, 14), a->run_count = trial_between(t, 1, 3);
  for (int64_t i = 0; i < a->run_count; i++) {
    const int64_t at = trial_between(t, -2, *width - 1), n = trial_between(t, 1, HK_RUN_TAPS);
    runs[i] = (hk_dw_run){(int32_t)(at * a->x_step),
                          (int16_t)n,
                          (int16_t)hk_max64(0, -at),
                          (int16_t)hk_min64(*width - at, a->pixels + n - 1),
                          0,
                          0};
    taps += n;
  }
  return taps;
}

void check_dwc(kernel_trial *t) {
  hk_dw_run runs[4] = {{0}};
  int32_t index[4 * 16] = {0};
  hk_dwc_args a = {
      .runs = runs, .index = index, .tiles = trial_between(t, 1, 2), .pixels = (int32_t)trial_between(t, 1, t->k->mr)};
  draw_dwc_blocks(t, &a, index);
  const int64_t x_blocks = (a.blocks - 1) >> a.x_shift;
  const int64_t x_channels = x_blocks * a.x_block - a.back + a.last_x_lanes,
                channels = (a.blocks - 1) * a.y_block - a.back + a.last_lanes;
  int64_t width;
  a.x_step = x_channels + trial_between(t, 0, 3);
  const int64_t taps = draw_dwc_runs(t, &a, runs, &width);
  /* non-temporal stores: y aligned, whole vectors of whole cache lines */
  a.nontemporal = !t->high && !a.inputs && !a.back && channels % 16 == 0 && trial_chance(t, 70);
  a.y_step = a.c_step = a.nontemporal ? channels : channels + trial_between(t, 0, 3);
  a.x_next = width * a.x_step, a.y_next = a.c_next = a.pixels * a.y_step;
  a.backwards = trial_chance(t, 30), a.resume = !a.back && !a.chain && trial_chance(t, 30);
  a.fuse = trial_draw_dw_epilogue(t, !a.back), a.scale_one = trial_chance(t, 50);
  a.f_block = taps * hk_max64(a.inputs, 1) * t->vw;
  const int64_t size = ((a.tiles * a.pixels) - 1) * a.y_step + channels;
  a.y = a.resume ? trial_operand(t, size) : trial_output(t, size); /* first: aligned to a page where it is low */
  a.x = trial_operand(t, (a.tiles * width - 1) * a.x_step + x_channels);
  float *f = trial_operand(t, a.blocks * a.f_block), *shared = f + (a.blocks - 1) * a.f_block;
  for (int64_t i = 0; i < taps * a.back; i++) { /* lanes that the last block shares with the one before */
    const int64_t at = i / a.back * t->vw + i % a.back;
    shared[at] = shared[at - a.f_block + t->vw - a.back];
  }
  a.f = f;
  if (trial_chance(t, 70)) a.scale = trial_operand(t, a.scale_one ? 1 : channels);
  if (trial_chance(t, 70)) a.bias = trial_operand(t, channels);
  if (has_residual(&a.fuse)) a.c = trial_operand(t, size);
  float *want = trial_copy(t, a.y, size);
  define_dwc(&a, t->vw, want);
  t->fn(&a);
  trial_compare(t, a.y, want, size);
}

void check_dwm(kernel_trial *t) {
  const int64_t vw = t->vw;
  hk_dwm_args a = {.blocks = trial_between(t, 1, 4),
                   .rows = trial_between(t, 1, 7),
                   .window = 3,
                   .stride = (int32_t)trial_between(t, 1, 2),
                   .last_lanes = (int32_t)(trial_chance(t, 50) ? vw : trial_between(t, 1, vw)),
                   .scale_one = trial_chance(t, 50)};
  if (t->k->mr > 12) a.window = (int32_t)(3 + 2 * trial_between(t, 0, 2));
  a.columns = (int32_t)trial_between(t, 1, hk_min64(t->k->mr, 30));
  const int64_t high = (a.rows - 1) * a.stride + a.window, wide = (a.columns - 1) * a.stride + a.window;
  const int64_t pad = trial_chance(t, 70) ? 1 : a.window;
  a.row_first = trial_between(t, 0, hk_min64(pad, high - 1)),
  a.row_last = trial_between(t, hk_max64(a.row_first + 1, high - pad), high);
  a.col_first = (int32_t)trial_between(t, 0, hk_min64(pad, wide - 1));
  a.col_last = (int32_t)trial_between(t, hk_max64(a.col_first + 1, wide - pad), wide);
  const int64_t channels = (a.blocks - 1) * vw + a.last_lanes, taps = a.window * a.window;
  a.x_col = channels + trial_between(t, 0, 3), a.y_col = a.c_col = channels + trial_between(t, 0, 3);
  a.x_row = (a.col_last - a.col_first) * a.x_col, a.y_row = a.c_row = a.columns * a.y_col;
  a.fuse = trial_draw_dw_epilogue(t, true);
  const int64_t size = (a.rows * a.columns - 1) * a.y_col + channels;
  const float *x = trial_operand(t, ((a.row_last - a.row_first) * (a.col_last - a.col_first) - 1) * a.x_col + channels);
  a.x = x - a.row_first * a.x_row - a.col_first * a.x_col;
  a.f = trial_operand(t, a.blocks * taps * vw), a.y = trial_output(t, size);
  if (trial_chance(t, 70)) a.scale = trial_operand(t, a.scale_one ? 1 : channels);
  if (trial_chance(t, 70)) a.bias = trial_operand(t, channels);
  if (has_residual(&a.fuse)) a.c = trial_operand(t, size);
  float *want = trial_copy(t, a.y, size);
  for (int64_t i = 0; i < a.rows * a.columns * channels; i++) {
    const int64_t k = i % channels, q = i / channels % a.columns, p = i / channels / a.columns,
                  at = p * a.y_row + q * a.y_col + k;
    double sum = 0;
    for (int64_t s = 0; s < taps; s++) {
      const int64_t row = p * a.stride + s / a.window, col = q * a.stride + s % a.window;
      if (row < a.row_first || row >= a.row_last || col < a.col_first || col >= a.col_last) continue;
      sum += (double)a.f[(k / vw * taps + s) * vw + k % vw] * (double)a.x[row * a.x_row + col * a.x_col + k];
    }
    const double scale = a.scale ? (double)a.scale[a.scale_one ? 0 : k] : 1;
    want[at] = (float)trial_dw_epilogue(&a.fuse, sum, scale, a.bias ? (double)a.bias[k] : 0, a.c ? (double)a.c[at] : 0);
  }
  t->fn(&a);
  trial_compare(t, a.y, want, size);
}
