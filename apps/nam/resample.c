/* Converts the rate of a whole signal with a windowed sinc (Kaiser, about -100 dB), 48 zero crossings to each side. One
 * filter per phase: the filters of rates without a large common divisor would fill memory, so at most MAX_TAPS are
 * made. All usual rates need a few ten thousand. The result has at most MAX_SAMPLES. */
#include <math.h>
#include <stdlib.h>

#include "program.h"

enum { CROSSINGS = 48, MAX_TAPS = 1 << 23 };

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
  const double pi = 3.14159265358979323846, beta = 10.0, all = bessel(beta);
  double sum = 0;
  for (int64_t i = 0; i < 2 * half; i++) {
    const double t = (double)(i - half + 1) - fraction, u = t / (double)half;
    const double s = cut * t == 0 ? 1 : sin(pi * cut * t) / (pi * cut * t);
    const double w = u * u < 1 ? bessel(beta * sqrt(1 - u * u)) / all : 0;
    taps[i] = (float)(s * w);
    sum += s * w;
  }
  for (int64_t i = 0; i < 2 * half; i++) taps[i] = (float)(taps[i] / sum);
}

static int64_t larger(int64_t a, int64_t b) { return a > b ? a : b; }
static int64_t smaller(int64_t a, int64_t b) { return a < b ? a : b; }

typedef struct filter_bank { /* taps[up][2*half] */
  int64_t up, down, half;
  float *taps;
} filter_bank;

/* y[n] is the sum of x around n*down/up with the filter of its phase; outside x is silence. */
static void filter(const filter_bank *b, const float *in, int64_t frames, int channels, float *out, int64_t count) {
  for (int64_t n = 0; n < count; n++) {
    const int64_t base = n * b->down / b->up - b->half + 1;
    const int64_t first = larger(0, -base), last = smaller(2 * b->half, frames - base);
    const float *f = b->taps + n * b->down % b->up * 2 * b->half;
    for (int c = 0; c < channels; c++) {
      double sum = 0;
      for (int64_t i = first; i < last; i++) sum += (double)f[i] * in[(base + i) * channels + c];
      out[n * channels + c] = (float)sum;
    }
  }
}

int resample(const float *in, int64_t *frames, int channels, int from, int to, float **out) {
  const int64_t common = divisor(from, to), up = to / common, down = from / common;
  const double cut = (to < from ? (double)to / from : 1.0) * 0.96;
  const int64_t half = (int64_t)ceil(CROSSINGS / cut), count = (*frames * up + down - 1) / down;
  if (up * 2 * half > MAX_TAPS)
    return program_fail("converting %d Hz to %d Hz needs %lld filter taps; at most %d are supported", from, to,
                        (long long)(up * 2 * half), MAX_TAPS);
  if (count > MAX_SAMPLES / channels)
    return program_fail("at %d Hz the sound has %lld frames of %d channels; at most %lld samples are supported", to,
                        (long long)count, channels, (long long)MAX_SAMPLES);
  float *taps = malloc((size_t)(up * 2 * half) * sizeof *taps);
  *out = malloc((size_t)(count * channels + 1) * sizeof **out);
  if (!taps || !*out) {
    free(taps);
    free(*out);
    return program_fail("no memory to convert %lld frames", (long long)*frames);
  }
  for (int64_t p = 0; p < up; p++) fill_phase((double)p / (double)up, cut, half, taps + p * 2 * half);
  filter(&(filter_bank){up, down, half, taps}, in, *frames, channels, *out, count);
  free(taps);
  *frames = count;
  return 0;
}
