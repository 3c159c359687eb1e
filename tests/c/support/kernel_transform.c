/* Checkers of the Winograd transforms, fft and karatsuba. */
#include <math.h>

#include "support/kernel.h"

/* B^T and A^T of F(2,3) and F(4,3). */
static const double bt4[4][4] = {{1, 0, -1, 0}, {0, 1, 1, 0}, {0, -1, 1, 0}, {0, 1, 0, -1}};
static const double bt6[6][6] = {{4, 0, -5, 0, 1, 0},  {0, -4, -4, 1, 1, 0}, {0, 4, -4, -1, 1, 0},
                                 {0, -2, -1, 2, 1, 0}, {0, 2, -1, -2, 1, 0}, {0, 4, 0, -5, 0, 1}};
static const double at4[2][4] = {{1, 1, 1, 0}, {0, 1, -1, -1}};
static const double at6[4][6] = {{1, 1, 1, 1, 1, 0}, {0, 1, -1, 2, -2, 0}, {0, 1, 1, 4, 4, 0}, {0, 1, -1, 8, -8, 1}};

void check_winoin(kernel_trial *t) {
  const int n = t->k->mr;
  const bool line = trial_chance(t, 30);
  const int64_t channels = trial_between(t, 1, 40), pixels = line ? n : n * n,
                v_step = channels + trial_between(t, 0, 3);
  const double *bt = n == 4 ? bt4[0] : bt6[0];
  const float *x = trial_operand(t, pixels * channels), *rows[36];
  const int64_t size = (pixels - 1) * v_step + channels;
  float *v = trial_output(t, size), *want = trial_copy(t, v, size);
  for (int64_t i = 0; i < pixels; i++) rows[i] = x + (pixels - 1 - i) * channels;
  for (int64_t c = 0; c < channels; c++)
    for (int i = 0; i < pixels; i++) {
      double sum = 0;
      for (int j = 0; j < pixels; j++) {
        const double b = line ? bt[i * n + j] : bt[i / n * n + j / n] * bt[i % n * n + j % n];
        sum += b * (double)rows[j][c];
      }
      want[i * v_step + c] = (float)sum;
    }
  t->fn(&(hk_winoin_args){rows, line, channels, v_step, v});
  trial_compare(t, v, want, size);
}

void check_winoout(kernel_trial *t) {
  const int m = t->k->mr, n = m + 2;
  const bool line = trial_chance(t, 30);
  const int64_t columns = trial_between(t, 1, 40), whole = hk_round_up(columns, t->vw),
                m_step = whole + trial_between(t, 0, 3);
  const int sums = line ? n : n * n, outputs = line ? m : m * m;
  const double *at = n == 4 ? at4[0] : at6[0];
  const trial_epilogue e = trial_draw_igemm_epilogue(t);
  const float *from = trial_operand(t, (sums - 1) * m_step + whole), *affine = trial_operand(t, 2 * whole);
  const float *c = trial_operand(t, outputs * columns), *c_rows[16];
  float *y = trial_output(t, outputs * columns), *want = trial_copy(t, y, outputs * columns), *rows[16];
  for (int p = 0; p < outputs; p++) {
    rows[p] = trial_chance(t, 20) ? NULL : y + p * columns;
    c_rows[p] = c + p * columns;
    for (int64_t j = 0; j < columns && rows[p]; j++) {
      double sum = 0;
      for (int i = 0; i < sums; i++)
        sum += (line ? at[p * n + i] : at[p / m * n + i / n] * at[p % m * n + i % n]) * (double)from[i * m_step + j];
      want[p * columns + j] = (float)trial_igemm_epilogue(&e, sum, affine[j], affine[whole + j], c_rows[p][j]);
    }
  }
  t->fn(&(hk_winoout_args){.m = from,
                           .line = line,
                           .m_step = m_step,
                           .columns = columns,
                           .flags = e.flags,
                           .beta = e.beta,
                           .lo = e.lo,
                           .hi = e.hi,
                           .scale = affine,
                           .bias = affine + whole,
                           .c = c_rows,
                           .y = rows});
  trial_compare(t, y, want, outputs * columns);
}

/* The frequency at place i of a transform of n points, in the order that the kernel's forward steps leave. */
static int64_t frequency(int64_t n, int64_t i) {
  if (n == 4) return i;
  if (n == 8) return 2 * (i % 4) + i / 4;
  return 4 * frequency(n / 4, i % (n / 4)) + i / (n / 4);
}

/* Twiddles as fft.tmpl.h lays them out; returns how many floats. */
static int64_t twiddles(int64_t n, float *to) {
  int64_t count = 0;
  for (; n > 8; n /= 4)
    for (int64_t j = 0; j < n / 4; j++)
      for (int64_t k = 1; k <= 3; k++) {
        to[count++] = (float)cos(-2 * M_PI * (double)(j * k) / (double)n);
        to[count++] = (float)sin(-2 * M_PI * (double)(j * k) / (double)n);
      }
  for (int64_t j = 0; j < 4 && n == 8; j++) {
    to[count++] = (float)cos(-2 * M_PI * (double)j / 8);
    to[count++] = (float)sin(-2 * M_PI * (double)j / 8);
  }
  return count;
}

/* One lane by the definition: the transform of z, times h, and the inverse transform without the factor 1/n. */
static void convolve_lane(const float *z, const float *h, float *to, int64_t n, int64_t vw) {
  double re[128], im[128];
  for (int64_t i = 0; i < n; i++) {
    double zr = 0, zi = 0;
    for (int64_t k = 0; k < n; k++) {
      const double angle = -2 * M_PI * (double)(frequency(n, i) * k % n) / (double)n;
      const double a = z[k * 2 * vw], b = z[k * 2 * vw + vw];
      zr += a * cos(angle) - b * sin(angle), zi += a * sin(angle) + b * cos(angle);
    }
    const double hr = h[i * 2 * vw], hi = h[i * 2 * vw + vw];
    re[i] = zr * hr - zi * hi, im[i] = zr * hi + zi * hr;
  }
  for (int64_t j = 0; j < n; j++) {
    double yr = 0, yi = 0;
    for (int64_t i = 0; i < n; i++) {
      const double angle = 2 * M_PI * (double)(frequency(n, i) * j % n) / (double)n;
      yr += re[i] * cos(angle) - im[i] * sin(angle), yi += re[i] * sin(angle) + im[i] * cos(angle);
    }
    to[j * 2 * vw] = (float)yr, to[j * 2 * vw + vw] = (float)yi;
  }
}

static void check_fft_convolve(kernel_trial *t) {
  const int64_t vw = t->vw, n = 16ll << trial_between(t, 0, 3), size = 2 * n * vw;
  float *z = trial_operand(t, size), *want = trial_copy(t, z, size), w[512];
  const float *h = trial_operand(t, size);
  twiddles(n, w);
  for (int64_t l = 0; l < vw; l++) convolve_lane(z + l, h + l, want + l, n, vw);
  t->integers = false; /* bounded */
  t->tolerance = 1e-5 * (double)(n * n);
  t->fn(&(hk_fft_args){.op = HK_FFT_CONVOLVE, .z = z, .h = h, .twiddle = w, .points = n});
  trial_compare(t, z, want, size);
}

void check_fft(kernel_trial *t) {
  if (trial_chance(t, 5)) {
    check_fft_convolve(t);
    return;
  }
  const int64_t vw = t->vw, points = trial_between(t, 1, 20), step = vw + trial_between(t, 0, 3);
  hk_fft_args a = {
      .lanes = (int32_t)trial_between(t, 1, vw), .points = points, .x_step = step, .y_step = step, .c_step = step};
  const int64_t z_size = 2 * points * vw, size = (points - 1) * step + a.lanes;
  if (trial_chance(t, 50)) {
    a.op = HK_FFT_GATHER, a.first = trial_between(t, 0, points), a.last = trial_between(t, a.first, points);
    const float *x = trial_operand(t, (a.last - a.first) * step);
    float *z = trial_output(t, z_size), *want = trial_copy(t, z, z_size);
    a.x = x - a.first * step + step - a.lanes, a.z = z;
    for (int64_t i = 0; i < points; i++)
      for (int64_t l = 0; l < vw; l++)
        want[i * 2 * vw + l] = i >= a.first && i < a.last && l < a.lanes ? a.x[i * step + l] : 0;
    t->fn(&a);
    trial_compare(t, z, want, z_size);
    return;
  }
  a.op = HK_FFT_SCATTER, a.fuse = trial_draw_dw_epilogue(t, true), a.scale_one = trial_chance(t, 50);
  a.z = trial_operand(t, z_size), a.c = trial_operand(t, size), a.bias = trial_operand(t, a.lanes);
  a.scale = trial_operand(t, a.scale_one ? 1 : a.lanes), a.y = trial_output(t, size);
  float *want = trial_copy(t, a.y, size);
  for (int64_t i = 0; i < points; i++)
    for (int64_t l = 0; l < a.lanes; l++)
      want[i * step + l] = (float)trial_dw_epilogue(&a.fuse, a.z[i * 2 * vw + l], a.scale[a.scale_one ? 0 : l],
                                                    a.bias[l], a.c[i * step + l]);
  t->fn(&a);
  trial_compare(t, a.y, want, size);
}

void check_karatsuba(kernel_trial *t) {
  const int64_t vw = t->vw, outputs = trial_between(t, 1, 120), fours = trial_between(t, 1, 9), taps = 4 * fours;
  hk_karatsuba_args a = {
      .outputs = outputs, .fours = fours, .lanes = (int32_t)trial_between(t, 1, vw), .scale_one = trial_chance(t, 50)};
  if (trial_chance(t, 50)) a.lanes = (int32_t)vw;
  a.x_step = a.y_step = a.c_step = vw + trial_between(t, 0, 3);
  a.first = trial_between(t, 0, 5), a.last = hk_max64(a.first, outputs + taps - 1 - trial_between(t, 0, 5));
  a.entries = fours - 1 + hk_round_up(hk_ceil_div(outputs, 4), t->k->mr);
  a.fuse = trial_draw_dw_epilogue(t, true);
  const int64_t size = (outputs - 1) * a.y_step + a.lanes, columns = a.last - a.first;
  const float *x = trial_operand(t, columns ? (columns - 1) * a.x_step + a.lanes : 0), *w = trial_operand(t, taps * vw);
  float *f = trial_output(t, 9 * fours * vw);
  for (int64_t i = 0; i < fours * vw; i++) {
    const float *q = w + i / vw * 4 * vw + i % vw, p[4] = {q[0], q[vw], q[2 * vw], q[3 * vw]};
    const float plane[9] = {p[0],        p[0] + p[1], p[1],        p[0] + p[2], p[0] + p[1] + p[2] + p[3],
                            p[1] + p[3], p[2],        p[2] + p[3], p[3]};
    for (int k = 0; k < 9; k++) f[k * fours * vw + i] = plane[k];
  }
  a.x = x - a.first * a.x_step, a.f = f, a.c = trial_operand(t, size), a.bias = trial_operand(t, a.lanes);
  a.scale = trial_operand(t, a.scale_one ? 1 : a.lanes), a.y = trial_output(t, size),
  a.planes = trial_output(t, 9 * a.entries * vw);
  float *want = trial_copy(t, a.y, size);
  for (int64_t q = 0; q < outputs; q++)
    for (int64_t l = 0; l < a.lanes; l++) {
      double sum = 0;
      for (int64_t s = 0; s < taps; s++)
        if (q + s >= a.first && q + s < a.last) sum += (double)a.x[(q + s) * a.x_step + l] * (double)w[s * vw + l];
      want[q * a.y_step + l] =
          (float)trial_dw_epilogue(&a.fuse, sum, a.scale[a.scale_one ? 0 : l], a.bias[l], a.c[q * a.c_step + l]);
    }
  t->tolerance *= 4; /* differences of inputs and sums of weights */
  t->fn(&a);
  trial_compare(t, a.y, want, size);
}
