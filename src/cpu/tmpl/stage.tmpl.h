/* stage: rows of a plane into a padded buffer, columns dealt to phases (the stride of the convolution); see
 * hk_stage_args. Define HK_NAME, include a vocabulary, then this. Reads only the columns it is told to. */
#include "dwfuse.tmpl.h"

HK_INLINE v_f32 stage_load(const float *x, int64_t left) {
  return left >= HK_VW ? v_load(x) : v_load_m(x, v_tail(left));
}

/* one phase: a plain copy in vectors */
static void stage_copy(const hk_stage_args *a) {
  for (int64_t r = 0; r < a->rows; r++) {
    const float *x = a->x + r * a->x_row;
    float *b = a->buffer + r * a->row + a->lead;
    int64_t i = 0;
    for (; i + HK_VW <= a->cols; i += HK_VW) v_store(b + i, v_load(x + i));
    if (i < a->cols) v_store(b + i, v_load_m(x + i, v_tail(a->cols - i)));
  }
}

/* two phases: column lead + i goes to phase (lead + i) % 2 */
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

static void stage_any(const hk_stage_args *a) {
  for (int64_t r = 0; r < a->rows; r++) {
    const float *x = a->x + r * a->x_row;
    float *b = a->buffer + r * a->row;
    int64_t phase = a->lead % a->phases, at = a->lead / a->phases;
    const int64_t phases = a->spread % a->phases, ats = a->spread / a->phases;
    for (int64_t i = 0; i < a->cols; i++) {
      b[phase * a->pitch + at] = x[i * a->x_step];
      phase += phases;
      at += ats;
      if (phase >= a->phases) {
        phase -= a->phases;
        at++;
      }
    }
  }
}

void HK_NAME(const void *args) {
  const hk_stage_args *a = args;
  if (a->x_step == 1 && a->spread == 1 && a->phases == 1) stage_copy(a);
  else if (a->x_step == 1 && a->spread == 1 && a->phases == 2) stage_two(a);
  else stage_any(a);
}
