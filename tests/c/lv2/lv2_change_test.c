/* Changes while the plugin plays make no click above -80 dB of the peak: of the amp, its size, the cabinet, gains, the
 * level, on and off, also one before the last has ended. Twice: the output stays between those before and after the
 * change, sample by sample, and above 8 kHz, where a steady low tone has little, it never has more than they have. */
#include <math.h>
#include <stdlib.h>

#include "host.h"
#include "material.h"
#include "support/check.h"

enum { FRAMES = 36000, CHANGE = 12000, EDGE = 2000, TAPS = 255 };
static const double CLICK = 1e-4; /* -80 dB */
static float x[FRAMES], before[FRAMES], after[FRAMES], y[FRAMES], high[3][FRAMES];

static void make_tone(void) {
  const double pi = 3.14159265358979323846;
  for (int64_t i = 0; i < FRAMES; i++) {
    const double t = (double)i / 48000;
    x[i] = (float)(0.3 * sin(2 * pi * 110 * t) + 0.1 * sin(2 * pi * 317 * t + 1));
  }
}

/* What is above 8 kHz at 48 kHz: a windowed sinc. */
static void high_pass(const float *from, float *to) {
  const double pi = 3.14159265358979323846, cut = 8000.0 / 24000;
  double f[TAPS];
  for (int i = 0; i < TAPS; i++) {
    const double t = i - TAPS / 2, w = 0.5 + 0.5 * cos(2 * pi * t / (TAPS + 1));
    f[i] = (t == 0 ? 1 - cut : -sin(pi * cut * t) / (pi * t)) * w;
  }
  for (int64_t i = 0; i < FRAMES; i++) {
    double sum = 0;
    for (int k = 0; k < TAPS && k <= i; k++) sum += f[k] * (double)from[i - k];
    to[i] = (float)sum;
  }
}

static double most(const float *a, int64_t from) {
  double peak = 0;
  for (int64_t i = from; i < FRAMES; i++) peak = fmax(peak, fabs((double)a[i]));
  return peak;
}

typedef struct setting { /* what an instance plays with */
  const char *model, *cabinet;
  float control[CONTROLS]; /* added to the host's own */
} setting;

static void apply(host *h, const setting *old, const setting *new) {
  if (!old || strcmp(old->model, new->model)) host_set(h, 0, AMP_MODEL, new->model);
  if (!old || strcmp(old->cabinet, new->cabinet)) host_set(h, 0, AMP_CABINET, new->cabinet);
  for (int i = 0; i < CONTROLS; i++) h->control[i] += new->control[i] - (old ? old->control[i] : 0);
}

/* From a to b at frame CHANGE, and if `back` says so to and fro every so many frames until FRAMES / 2, ending with b.
 */
static void play(const setting *a, const setting *b, int back, float *to) {
  host *h = host_open(&(host_options){.worker = WORKER_AT_ONCE}, NULL);
  const setting *now = a;
  int64_t change = CHANGE;
  apply(h, NULL, a);
  for (int64_t at = 0; at < FRAMES; at += 50) {
    const int64_t n = 50;
    if (b && at >= change && at < FRAMES / 2 && (back || now == a)) {
      const setting *next = now == a ? b : a;
      apply(h, now, next);
      now = next;
      change = at + back;
    }
    if (b && at == FRAMES / 2 && now != b) {
      apply(h, now, b);
      now = b;
    }
    host_run(h, (const float *const[]){x + at}, (uint32_t)n, (float *const[]){to + at});
  }
  CHECK(!h->errors, "%s", h->log);
  host_close(h);
}

/* inside: whether every output between is a mean of the two, which gains before the amp do not give. */
static void check_change(const char *what, const setting *a, const setting *b, int back, bool inside) {
  play(a, NULL, 0, before);
  play(b, NULL, 0, after);
  play(a, b, back, y);
  const double peak = fmax(most(before, EDGE), most(after, EDGE));
  double outside = 0;
  for (int64_t i = EDGE; i < FRAMES; i++) {
    outside = fmax(outside, (double)y[i] - fmax((double)before[i], (double)after[i]));
    outside = fmax(outside, fmin((double)before[i], (double)after[i]) - (double)y[i]);
  }
  high_pass(before, high[0]);
  high_pass(after, high[1]);
  high_pass(y, high[2]);
  const double steady = fmax(most(high[0], EDGE), most(high[1], EDGE)), worst = most(high[2], EDGE);
  CHECK(!inside || outside <= CLICK * peak, "%s: %.1f dB outside of both", what, 20 * log10(outside / peak));
  CHECK(worst <= steady + CLICK * peak, "%s: a click of %.1f dB", what, 20 * log10((worst - steady) / peak));
  double ends = 0;
  for (int64_t i = FRAMES - 1000; i < FRAMES; i++) ends = fmax(ends, fabs((double)y[i] - (double)after[i]));
  CHECK(ends <= CLICK * peak, "%s: off by %.1f dB at the end", what, 20 * log10(ends / peak));
  if (getenv("HANKEL_TEST_SHOW"))
    printf("%-32s outside %6.1f dB, click %6.1f dB, end %6.1f dB\n", what, 20 * log10(outside / peak),
           20 * log10(fmax(worst - steady, 0) / peak), 20 * log10(ends / peak));
}

/* The test sees a click: a step of -60 dB in the input where nothing plays. */
static void test_detector(void) {
  const setting none = {"", "", {0}};
  for (int64_t i = CHANGE; i < FRAMES; i++) x[i] += 4e-4f;
  play(&none, NULL, 0, y);
  make_tone();
  high_pass(x, high[0]);
  high_pass(y, high[2]);
  CHECK(most(high[2], EDGE) > most(high[0], EDGE) + CLICK * 0.4, "a step of -60 dB is not seen");
}

int main(void) {
  static char models[MATERIAL_MODELS][MATERIAL_PATH], small[MATERIAL_PATH], big[MATERIAL_PATH], sizes[MATERIAL_PATH];
  static char lstm[MATERIAL_PATH], cab[MATERIAL_PATH], other[MATERIAL_PATH];
  material_absolute(material_small, small);
  material_absolute(material_big, big);
  material_absolute("tests/fuzz/corpus/nam/slimmable.nam", sizes);
  material_absolute("tests/fuzz/corpus/nam/lstm.nam", lstm);
  material_cabinet("one.wav", 700, 1, 48000, NULL, cab);
  material_cabinet("two.wav", 2100, 1, 48000, NULL, other);
  make_tone();
  test_detector();
  const setting none = {"", "", {0}}, a = {small, "", {0}}, b = {big, "", {0}}, l = {lstm, "", {0}},
                s = {sizes, "", {0}}, slim = {sizes, "", {[7] = -1}};
  check_change("amp", &a, &b, 0, true);
  check_change("amp back", &b, &a, 0, true);
  check_change("amp to LSTM", &a, &l, 0, true);
  check_change("amp from LSTM", &l, &a, 0, true);
  check_change("amp removed", &a, &none, 0, true);
  check_change("amp inserted", &none, &a, 0, true);
  check_change("size", &s, &slim, 0, true);
  check_change("amp, every 300 frames", &a, &b, 300, true);
  const setting c = {small, cab, {0}}, d = {small, other, {0}}, e = {big, other, {0}}, off = {small, cab, {[8] = -1}},
                loud = {small, cab, {[3] = 20}}, driven = {small, cab, {[2] = 12}}, normal = {small, cab, {[5] = 1}};
  check_change("amp before a cabinet", &d, &e, 0, false);
  check_change("cabinet", &c, &d, 0, true);
  check_change("cabinet removed", &c, &a, 0, true);
  check_change("cabinet inserted", &a, &c, 0, true);
  check_change("amp and cabinet", &c, &e, 0, false);
  check_change("off", &c, &off, 0, true);
  check_change("on", &off, &c, 0, true);
  check_change("output gain", &c, &loud, 0, true);
  check_change("input gain", &c, &driven, 0, false);
  check_change("level", &c, &normal, 0, true);
  check_change("cabinet, every 1000 frames", &c, &d, 1000, true);
  check_change("output gain, every 100 frames", &c, &loud, 100, true);
  check_change("off and on, every 100 frames", &c, &off, 100, true);
  const int count = material_models(models);
  for (int i = 8; i < count; i++) { /* real ones, where they are */
    const setting real = {models[i], "", {0}}, next = {models[i + 1 < count ? i + 1 : 8], "", {0}};
    check_change(strrchr(models[i], '/') + 1, &real, &next, 0, true);
  }
  host_end();
  material_end();
  return hk_test_end();
}
