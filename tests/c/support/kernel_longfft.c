/* The definition of longfft: convolutions and correlations modulo X^2N + 1, by their sums. */
#include "cpu/longfft.h"
#include "support/kernel.h"

/* What position p of 2n holds: position p + 2n is minus position p. */
static double at(const hk_longfft_row *r, int64_t p, int64_t n) {
  const double sign = p < 0 || p >= 2 * n ? -1 : 1;
  const int64_t q = p < 0 ? p + 2 * n : p >= 2 * n ? p - 2 * n : p;
  return q >= r->first && q < r->last ? sign * (double)r->at[q + r->shift] : 0;
}

static hk_longfft_row row_of(kernel_trial *t, int64_t most, bool output) {
  hk_longfft_row r = {.shift = 0, .first = trial_between(t, 0, most - 1)};
  r.last = trial_between(t, r.first + 1, most);
  if (trial_chance(t, 30)) r.first = 0, r.last = most;
  r.shift = -r.first;
  r.at = output ? trial_output(t, r.last - r.first) : trial_operand(t, r.last - r.first);
  return r;
}

/* want[p] = sum over i of f[i] * x[p - i], or with back of f[i] * x[p + i], at the positions of y. */
static void sums(const hk_longfft_row *x, const hk_longfft_row *f, const hk_longfft_row *y, int64_t n, bool back,
                 float *want) {
  for (int64_t p = y->first; p < y->last; p++) {
    double sum = 0;
    for (int64_t i = f->first; i < f->last; i++) sum += (double)f->at[i + f->shift] * at(x, back ? p + i : p - i, n);
    want[p + y->shift] = (float)sum;
  }
}

static void compare(kernel_trial *t, const hk_longfft_row *y, const float *want) {
  trial_compare(t, y->at, want, y->last - y->first);
}

/* FORWARD or INVERSE: at once, or by its two passes, some steps at a time. */
static void run(kernel_trial *t, hk_longfft_args *a, int32_t op) {
  a->op = op;
  if (trial_chance(t, 50)) {
    t->fn(a);
    return;
  }
  const bool forward = op == HK_LONGFFT_FORWARD;
  for (int pass = 0; pass < 2; pass++) {
    const bool columns = (pass == 0) == forward;
    const int64_t steps = (columns ? a->n2 : a->n1) / t->vw * HK_LONGFFT_STEPS;
    a->op = forward ? (columns ? HK_LONGFFT_COLUMNS : HK_LONGFFT_ROWS)
                    : (columns ? HK_LONGFFT_COLUMNS_BACK : HK_LONGFFT_ROWS_BACK);
    for (a->from = 0; a->from < steps; a->from = a->to) {
      a->to = trial_between(t, a->from + 1, steps);
      t->fn(a);
    }
  }
}

void check_longfft(kernel_trial *t) {
  static const int64_t sizes[][2] = {{16, 16}, {32, 16}, {48, 16}, {16, 32}, {64, 16}, {96, 16}};
  const int64_t *size = sizes[trial_between(t, 0, HK_COUNT(sizes) - 1)], n = size[0] * size[1];
  hk_longfft_args a = {.op = HK_LONGFFT_FORWARD, .n1 = size[0], .n2 = size[1]};
  hk_longfft_tables(&a, t->vw, trial_output(t, hk_longfft_floats(a.n1, a.n2, t->vw)));
  a.buffer = trial_output(t, 2 * size[0] * t->vw);
  float *h = trial_output(t, 2 * n), *sum = trial_output(t, 2 * n);
  const hk_longfft_row f = row_of(t, trial_between(t, 1, 60), false), x = row_of(t, 2 * n, false);
  const hk_longfft_row dy = row_of(t, 2 * n, false), y = row_of(t, 2 * n, true), dx = row_of(t, 2 * n, true);
  const hk_longfft_row df = row_of(t, 40, true);
  float *want = trial_copy(t, y.at, y.last - y.first), *want_dx = trial_copy(t, dx.at, dx.last - dx.first);
  float *want_df = trial_copy(t, df.at, df.last - df.first);
  t->integers = false; /* bounded */
  t->tolerance = 4e-4 * 40;
  a.x = f, a.z = h;
  run(t, &a, HK_LONGFFT_FORWARD);
  a.h = h, a.x = x, a.y = y, a.z = trial_output(t, 2 * n);
  sums(&x, &f, &y, n, false, want);
  if (trial_chance(t, 50)) {
    a.op = HK_LONGFFT_CONVOLVE;
    t->fn(&a);
  } else {
    a.op = HK_LONGFFT_GRADIENT, a.dy = dy, a.dx = dx, a.sum = sum, a.g = trial_output(t, 2 * n);
    for (int64_t i = 0; i < 2 * n; i++) sum[i] = 0;
    t->fn(&a);
    a.z = sum, a.y = df;
    run(t, &a, HK_LONGFFT_INVERSE);
    sums(&dy, &f, &dx, n, true, want_dx);
    sums(&dy, &x, &df, n, true, want_df);
    compare(t, &dx, want_dx);
    t->tolerance *= 4;
    compare(t, &df, want_df);
  }
  compare(t, &y, want);
}
