/* stage: copies rows of a plane into a padded buffer, columns split into phases (the stride of the convolution); see
 * hk_stage_args. Define HK_NAME, include a vocabulary, then this. Reads only the columns it is told to. */
#include "cpu/tmpl/depthwise/dwfuse.tmpl.h"

HK_INLINE v_f32 stage_load(const float *x, int64_t left) {
  return left >= HK_VW ? v_load(x) : v_load_m(x, v_tail(left));
}

/* One phase: a copy by vectors. */
static void stage_copy(const hk_stage_args *a) {
  for (int64_t r = 0; r < a->rows; r++) {
    const float *x = a->x + r * a->x_row;
    float *b = a->buffer + r * a->row + a->lead;
    int64_t i = 0;
    for (; i + HK_VW <= a->cols; i += HK_VW) v_store(b + i, v_load(x + i));
    if (i < a->cols) v_store(b + i, v_load_m(x + i, v_tail(a->cols - i)));
  }
}

/* Two phases: column lead + i goes to phase (lead + i) % 2. */
static void stage_two(const hk_stage_args *a) {
  const int64_t odd = a->lead & 1;
  for (int64_t r = 0; r < a->rows; r++) {
    const float *x = a->x + r * a->x_row;
    float *even_to = a->buffer + r * a->row + odd * a->pitch + a->lead / 2;
    float *odd_to = a->buffer + r * a->row + (1 - odd) * a->pitch + (a->lead + 1) / 2;
    for (int64_t i = 0; i < a->cols; i += 2 * HK_VW, even_to += HK_VW, odd_to += HK_VW) {
      const int64_t left = a->cols - i;
      const v_f32 v = stage_load(x + i, left);
      const v_f32 w = left > HK_VW ? stage_load(x + i + HK_VW, left - HK_VW) : v_zero();
      v_store(even_to, v_even(v, w));
      if (left > 1) v_store(odd_to, v_odd(v, w));
    }
  }
}

/* Columns [from, to) of a row, one by one. */
static void stage_columns(const hk_stage_args *a, const float *x, float *b, int64_t from, int64_t to) {
  const int64_t column = a->lead + from * a->spread, phases = a->spread % a->phases, ats = a->spread / a->phases;
  int64_t phase = column % a->phases, at = column / a->phases;
  for (int64_t i = from; i < to; i++) {
    b[phase * a->pitch + at] = x[i * a->x_step];
    phase += phases;
    at += ats;
    if (phase >= a->phases) {
      phase -= a->phases;
      at++;
    }
  }
}

#define STAGE_PHASES 8

/* Four or eight phases: separates even and odd columns repeatedly. */
HK_INLINE void stage_even_odd(const int phases, const float *x, float *to, int64_t pitch) {
  v_f32 v[STAGE_PHASES], w[STAGE_PHASES];
  HK_UNROLL for (int k = 0; k < phases; k++) v[k] = v_load(x + k * HK_VW);
  HK_UNROLL for (int part = phases; part > 1; part /= 2) {
    HK_UNROLL for (int k = 0; k < phases; k += 2) {
      const int at = k / part * part + k % part / 2;
      w[at] = v_even(v[k], v[k + 1]);
      w[at + part / 2] = v_odd(v[k], v[k + 1]);
    }
    HK_UNROLL for (int k = 0; k < phases; k++) v[k] = w[k];
  }
  HK_UNROLL for (int k = 0; k < phases; k++) {
    const int phase = phases == 4 ? (k & 1) << 1 | k >> 1 : (k & 1) << 2 | (k & 2) | k >> 2;
    v_store(to + phase * pitch, v[k]);
  }
}

/* Other phase counts: lane l of phase c is column l*phases + c, a transpose. Reads 8 - phases columns more than it
 * writes, except with three phases. */
HK_INLINE void stage_transpose(const int phases, const float *x, float *to, int64_t pitch) {
  v_f32 v[STAGE_PHASES];
  if (phases == 3) v_deinterleave3(x, v);
  else v_deinterleave(x, phases, v);
  HK_UNROLL for (int c = 0; c < phases; c++) v_store(to + c * pitch, v[c]);
}

static void stage_phases(const hk_stage_args *a) {
  const int64_t phases = a->phases, block = phases * HK_VW, first = (phases - a->lead % phases) % phases;
  const int64_t reads = phases <= 4 ? block : block + STAGE_PHASES - phases;
  for (int64_t r = 0; r < a->rows; r++) {
    const float *x = a->x + r * a->x_row;
    float *b = a->buffer + r * a->row, *to = b + (a->lead + first) / phases;
    int64_t i = hk_min64(first, a->cols);
    stage_columns(a, x, b, 0, i);
    for (; i + reads <= a->cols; i += block, to += HK_VW) {
      switch (phases) {
        case 3: stage_transpose(3, x + i, to, a->pitch); break;
        case 4: stage_even_odd(4, x + i, to, a->pitch); break;
        case 5: stage_transpose(5, x + i, to, a->pitch); break;
        case 6: stage_transpose(6, x + i, to, a->pitch); break;
        case 7: stage_transpose(7, x + i, to, a->pitch); break;
        default: stage_even_odd(8, x + i, to, a->pitch); break;
      }
    }
    stage_columns(a, x, b, i, a->cols);
  }
}

void HK_NAME(const void *args) {
  const hk_stage_args *a = args;
  const bool plain = a->x_step == 1 && a->spread == 1;
  if (plain && a->phases == 1) stage_copy(a);
  else if (plain && a->phases == 2) stage_two(a);
  else if (plain && HK_VW > 1 && a->phases <= STAGE_PHASES) stage_phases(a);
  else
    for (int64_t r = 0; r < a->rows; r++) stage_columns(a, a->x + r * a->x_row, a->buffer + r * a->row, 0, a->cols);
}
