/* Converts the rate of a whole signal with a windowed sinc (Kaiser, about -100 dB), 48 zero crossings to each side. One
 * filter a phase, so the ratio of the rates must reduce to fewer than 65536 phases: all usual rates do. */
#include <math.h>
#include <stdlib.h>

#include "program.h"

enum { CROSSINGS = 48 };

static double bessel(double x) {
  double sum = 1, term = 1;
  for (int k = 1; term > 1e-12 * sum; k++) {
    term *= x * x / (4.0 * k * k);
    sum += term;
  }
  return sum;
}

static int64_t divisor(int64_t a, int64_t b) { return b ? divisor(b, a % b) : a; }

/* taps of one phase: input k counts from floor(position) - half + 1 */
static void fill_phase(double fraction, double cut, int64_t half, float *taps) {
  const double pi = 3.14159265358979323846, beta = 10.0;
  double sum = 0;
  for (int64_t i = 0; i < 2 * half; i++) {
    const double t = (double)(i - half + 1) - fraction, u = t / (double)half;
    const double s = cut * t == 0 ? 1 : sin(pi * cut * t) / (pi * cut * t);
    const double w = u * u < 1 ? bessel(beta * sqrt(1 - u * u)) / bessel(beta) : 0;
    taps[i] = (float)(s * w);
    sum += s * w;
  }
  for (int64_t i = 0; i < 2 * half; i++) taps[i] = (float)(taps[i] / sum);
}

bool resample(const float *in, int64_t *frames, int channels, int from, int to, float **out) {
  const int64_t common = divisor(from, to), up = to / common, down = from / common;
  const double cut = (to < from ? (double)to / from : 1.0) * 0.96;
  const int64_t half = (int64_t)ceil(CROSSINGS / cut), count = (*frames * up + down - 1) / down;
  float *taps = up < 65536 ? malloc((size_t)(up * 2 * half) * sizeof *taps) : NULL;
  *out = taps ? malloc((size_t)(count * channels + 1) * sizeof **out) : NULL;
  for (int64_t p = 0; *out && p < up; p++) fill_phase((double)p / (double)up, cut, half, taps + p * 2 * half);
  for (int64_t n = 0; *out && n < count; n++) {
    const int64_t base = n * down / up - half + 1;
    const float *f = taps + n * down % up * 2 * half;
    for (int c = 0; c < channels; c++) {
      double sum = 0;
      for (int64_t i = 0; i < 2 * half; i++) {
        if (base + i >= 0 && base + i < *frames) sum += (double)f[i] * in[(base + i) * channels + c];
      }
      (*out)[n * channels + c] = (float)sum;
    }
  }
  free(taps);
  *frames = count;
  return *out != NULL;
}
