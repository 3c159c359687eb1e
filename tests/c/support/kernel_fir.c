/* The definitions of fir and spectra: the FIR step of a stream. */
#include "support/kernel.h"

void check_spectra(kernel_trial *t) {
  hk_spectra_args a = {.count = trial_between(t, 1, 9), .parts = trial_between(t, 1, 6), .add = trial_chance(t, 50)};
  const int64_t floats = a.count * 2 * t->vw, z_row = floats + trial_between(t, 0, 3), h_row = floats;
  const bool back = trial_chance(t, 50);
  a.z = trial_operand(t, a.parts * z_row), a.h = trial_operand(t, a.parts * h_row);
  a.sum = trial_output(t, floats);
  if (a.add)
    for (int64_t i = 0; i < floats; i++) a.sum[i] = (float)(i % 7);
  a.z_step = back ? -z_row : z_row, a.h_step = h_row;
  if (back) a.z += (a.parts - 1) * z_row;
  float *want = trial_copy(t, a.sum, floats);
  for (int64_t i = 0; i < floats; i++) {
    const int64_t re = i / (2 * t->vw) * 2 * t->vw + i % t->vw, im = re + t->vw;
    double sum = a.add ? (double)want[i] : 0;
    for (int64_t p = 0; p < a.parts; p++) {
      const float *z = a.z + p * a.z_step, *h = a.h + p * a.h_step;
      if (i == re) sum += (double)z[re] * h[re] - (double)z[im] * h[im];
      else sum += (double)z[re] * h[im] + (double)z[im] * h[re];
    }
    want[i] = (float)sum;
  }
  t->fn(&a);
  trial_compare(t, a.sum, want, floats);
}

void check_fir(kernel_trial *t) {
  hk_fir_args a = {.channels = trial_between(t, 1, 3), .taps = trial_between(t, 1, 2 * 4 * t->vw + 20)};
  a.n = trial_between(t, 1, 9) * t->vw;
  a.x_stride = a.n + a.taps - 1 + trial_between(t, 0, 3);
  a.x = trial_operand(t, (a.channels - 1) * a.x_stride + a.n + a.taps - 1);
  a.f = trial_operand(t, a.channels * a.taps);
  a.y = trial_output(t, a.n);
  for (int64_t i = 0; i < a.n; i++) a.y[i] = (float)(i % 5);
  float *want = trial_copy(t, a.y, a.n);
  for (int64_t i = 0; i < a.n; i++) {
    double sum = (double)want[i];
    for (int64_t c = 0; c < a.channels; c++)
      for (int64_t j = 0; j < a.taps; j++) sum += (double)a.f[c * a.taps + j] * a.x[c * a.x_stride + i + j];
    want[i] = (float)sum;
  }
  t->fn(&a);
  trial_compare(t, a.y, want, a.n);
}
