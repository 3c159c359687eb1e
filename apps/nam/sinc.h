/* Rate conversion with a windowed sinc (Kaiser, about -100 dB), one filter per phase. With rates in the ratio
 * to/from = up/down, frame n of the result lies at n*down/up of the signal and is
 *   sum over i < 2*half of taps[n*down mod up][i] * x[floor(n*down/up) - half + 1 + i].
 * `crossings` of the sinc lie to each side of the middle, at the lower rate; `cut` is where the response is halved, as
 * a share of the lower rate's half. The transition is 3.2/crossings of that half to each side of cut. */
#ifndef NAM_SINC_H
#define NAM_SINC_H
#include <stdbool.h>
#include <stdint.h>

/* The phases of rates without a large common divisor would fill memory. All usual rates need a few ten thousand. */
enum { SINC_MAX_TAPS = 1 << 23 };

typedef struct sinc_bank {
  int64_t up, down, half;
  double cut; /* as a share of half the signal's rate */
  float *taps;
} sinc_bank;

/* Everything but the taps. half is a multiple of `round`. */
sinc_bank sinc_plan(int64_t from, int64_t to, int crossings, double cut, int64_t round);
int64_t sinc_taps(const sinc_bank *b); /* how many there are: floats */
void sinc_fill(const sinc_bank *b);    /* taps point to room for them */
/* Frames that a signal has after conversion. */
int64_t sinc_frames(const sinc_bank *b, int64_t frames);
/* A whole signal of interleaved channels; outside it is silence. Sums in double. */
void sinc_convert(const sinc_bank *b, const float *in, int64_t frames, int channels, float *out);

/* For whole signals: flat to 0.446 of the lower rate, stops from 0.513 of it. */
#define SINC_WHOLE 48, 0.96, 1
/* For play, with a third less delay: flat to 0.45 of the lower rate, stops from 0.55 of it. */
#define SINC_LIVE 32, 1.0, 4
#endif
