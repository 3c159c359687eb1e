/* The windowed sinc: its filters, and the conversion of whole signals. Filters are computed in double, and each phase
 * is scaled to pass a constant unchanged. */
#include <math.h>

#include "sinc.h"

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

sinc_bank sinc_plan(int64_t from, int64_t to, int crossings, double cut, int64_t round) {
  const int64_t common = divisor(from, to);
  sinc_bank b = {.up = to / common, .down = from / common};
  b.cut = (to < from ? (double)to / (double)from : 1.0) * cut;
  b.half = ((int64_t)ceil(crossings / b.cut) + round - 1) / round * round;
  return b;
}

int64_t sinc_taps(const sinc_bank *b) { return b->up * 2 * b->half; }

void sinc_fill(const sinc_bank *b) {
  for (int64_t p = 0; p < b->up; p++) fill_phase((double)p / (double)b->up, b->cut, b->half, b->taps + p * 2 * b->half);
}

int64_t sinc_frames(const sinc_bank *b, int64_t frames) { return (frames * b->up + b->down - 1) / b->down; }

static int64_t larger(int64_t a, int64_t b) { return a > b ? a : b; }
static int64_t smaller(int64_t a, int64_t b) { return a < b ? a : b; }

void sinc_convert(const sinc_bank *b, const float *in, int64_t frames, int channels, float *out) {
  const int64_t count = sinc_frames(b, frames);
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
