/* Rate conversion: sines through the filters (flat where they pass, 90 dB down where they stop), and through an amp
 * that is a wire at another rate than the host's: the signal comes back, late by what the rig says, whatever the
 * blocks; and it is the conversion of the whole signal there and back. */
#include <math.h>

#include "sinc.h"
#include "support/rig.h"

enum { FRAMES = 6000 };
static const double PI = 3.14159265358979323846;
static float x[FRAMES], y[FRAMES];

static sinc_bank bank(int from, int to, bool live) {
  sinc_bank b = live ? sinc_plan(from, to, SINC_LIVE) : sinc_plan(from, to, SINC_WHOLE);
  b.taps = malloc((size_t)sinc_taps(&b) * sizeof *b.taps);
  if (!b.taps) exit(1);
  sinc_fill(&b);
  return b;
}

/* The amplitude of frequency f in y, by projection on a window that has no steps. */
static double amplitude(const float *from, int64_t n, double f, double rate) {
  double re = 0, im = 0, all = 0;
  for (int64_t i = 0; i < n; i++) {
    const double w = pow(sin(PI * ((double)i + 0.5) / (double)n), 4), p = 2 * PI * f / rate * (double)i;
    re += w * from[i] * cos(p);
    im += w * from[i] * sin(p);
    all += w;
  }
  return 2 * hypot(re, im) / all;
}

static double loudest(const float *from, int64_t n) {
  double most = 0;
  for (int64_t i = 0; i < n; i++) most = fmax(most, fabs((double)from[i]));
  return most;
}

/* Sines over the whole band of x: those that pass keep their level, those that stop leave nothing at any frequency,
 * and those that pass leave nothing at the frequency of their image. */
static void test_response(int from, int to, bool live) {
  const sinc_bank b = bank(from, to, live);
  const double lower = from < to ? from : to, pass = live ? 0.45 : 0.446, stop = live ? 0.55 : 0.513;
  const int64_t count = sinc_frames(&b, FRAMES), edge = 2 * (b.half * to / from + 2);
  float *out = malloc((size_t)count * sizeof *out);
  double ripple = 0, leak = 0;
  for (double f = 0.01 * lower; f < 0.5 * from; f += 0.0101 * lower) {
    for (int i = 0; i < FRAMES; i++) x[i] = (float)sin(2 * PI * f / from * i);
    sinc_convert(&b, x, FRAMES, 1, out);
    if (f <= pass * lower) {
      ripple = fmax(ripple, fabs(20 * log10(amplitude(out + edge, count - 2 * edge, f, to))));
      for (int image = 1; image <= 2 && to > from; image++) {
        if (image * from - f < 0.5 * to)
          leak = fmax(leak, amplitude(out + edge, count - 2 * edge, image * (double)from - f, to));
      }
    } else if (f >= stop * lower) {
      leak = fmax(leak, loudest(out + edge, count - 2 * edge));
    }
  }
  printf("%6d to %6d Hz, %s: flat within %.6f dB to %.3f of the lower rate", from, to, live ? "live " : "whole", ripple,
         pass);
  if (leak > 0) printf(", stops %.1f dB from %.3f", 20 * log10(leak), stop);
  puts("");
  CHECK(ripple < 0.1, "%d to %d Hz: ripple of %g dB", from, to, ripple);
  CHECK(leak < 3.17e-5, "%d to %d Hz: only %.1f dB down", from, to, 20 * log10(leak));
  free(out);
  free(b.taps);
}

/* Through the rig in blocks of any length, against conversion of the whole signal with the same filters. The start is
 * left out, which rings before frame 0 where the whole signal's conversion has no frames. */
static void test_bridge(int host, int model) {
  static float again[FRAMES];
  uint64_t seed = 11;
  for (int i = 0; i < FRAMES; i++) x[i] = hk_test_float(&seed);
  hk_rig *r = rig_of(host, 1);
  hk_rig_set(r, HK_RIG_AMP, rig_wire(r, 1, model, "null"));
  const int64_t late = hk_rig_latency(r);
  float *const in[2] = {x, NULL}, *const out[2] = {y, NULL}, *const to[2] = {again, NULL};
  rig_play(r, NULL, in, FRAMES, out, 0);
  for (int64_t block = 1; block < 1000; block *= 9) {
    hk_rig_reset(r);
    rig_play(r, NULL, in, FRAMES, to, block);
    CHECK(!memcmp(y, again, sizeof y), "%d and %d Hz: blocks of %lld give another output", host, model,
          (long long)block);
  }
  const sinc_bank there = bank(host, model, true), back = bank(model, host, true);
  const int64_t middle = sinc_frames(&there, FRAMES), end = sinc_frames(&back, middle);
  float *m = malloc((size_t)middle * sizeof *m), *whole = malloc((size_t)end * sizeof *whole);
  sinc_convert(&there, x, FRAMES, 1, m);
  sinc_convert(&back, m, middle, 1, whole);
  double worst = 0;
  for (int64_t i = 3 * late; i < FRAMES; i++) worst = fmax(worst, fabs((double)y[i] - whole[i - late]));
  CHECK(worst < 3e-6, "%d and %d Hz: the whole signal's conversion differs by %g", host, model, worst);
  const double floor_ms = 1e3 * 62 / (host < model ? host : model);
  CHECK(1e3 * (double)late / host < floor_ms * 1.35 + 1, "%d and %d Hz: %lld frames late", host, model,
        (long long)late);
  printf("%6d Hz around %6d Hz: %lld frames late, %.2f ms\n", host, model, (long long)late, 1e3 * (double)late / host);
  free(m);
  free(whole);
  free(there.taps);
  free(back.taps);
  hk_rig_free(r);
}

/* A sine comes back as it went in, `latency` frames later. */
static void test_latency(int host, int model) {
  hk_rig *r = rig_of(host, 1);
  hk_rig_set(r, HK_RIG_AMP, rig_wire(r, 1, model, "null"));
  const int64_t late = hk_rig_latency(r), settled = 2 * late + 200;
  const double lower = host < model ? host : model;
  float *const in[2] = {x, NULL}, *const out[2] = {y, NULL};
  for (double f = 0.02; f < 0.45; f += 0.08) {
    for (int i = 0; i < FRAMES; i++) x[i] = (float)sin(2 * PI * f * lower / host * i);
    hk_rig_reset(r);
    rig_play(r, NULL, in, FRAMES, out, 0);
    double worst = 0;
    for (int64_t i = settled; i < FRAMES; i++) worst = fmax(worst, fabs((double)y[i] - x[i - late]));
    CHECK(worst < 1e-4, "%d and %d Hz, %g of the lower rate: off by %g", host, model, f, worst);
  }
  hk_rig_free(r);
}

int main(void) {
  static const int pairs[][2] = {{44100, 48000}, {48000, 44100}, {88200, 48000},  {96000, 48000}, {192000, 48000},
                                 {50000, 48000}, {32000, 48000}, {22050, 48000},  {48000, 96000}, {96000, 44100},
                                 {8000, 48000},  {11025, 44100}, {192000, 44100}, {47999, 48000}};
#ifdef HK_SANITIZED
  const size_t count = 3;
#else
  const size_t count = sizeof pairs / sizeof *pairs;
#endif
  for (size_t i = 0; i < count; i++) {
    if (pairs[i][0] != 47999) {
      test_response(pairs[i][0], pairs[i][1], true);
      test_response(pairs[i][0], pairs[i][1], false);
      test_response(pairs[i][1], pairs[i][0], true);
    }
    test_bridge(pairs[i][0], pairs[i][1]);
    test_latency(pairs[i][0], pairs[i][1]);
  }
  hk_rig *r = rig_of(44100.5, 1);
  hk_rig_part *p = NULL;
  CHECK(hk_rig_load_amp(&p, r, RIG_MODELS "wavenet.nam", NULL) == HK_INVALID &&
            strstr(hk_nam_last_error(), "whole rates"),
        "%s", hk_nam_last_error());
  hk_rig_free(r);
  r = rig_of(767999, 1);
  CHECK(hk_rig_load_amp(&p, r, RIG_MODELS "wavenet.nam", NULL) == HK_INVALID &&
            strstr(hk_nam_last_error(), "filter taps"),
        "%s", hk_nam_last_error());
  hk_rig_free(r);
  return hk_test_end();
}
