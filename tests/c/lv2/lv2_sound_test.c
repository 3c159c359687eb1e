/* What comes out of the plugin: the bits of hk_nam_process at 48 kHz for every kind of model and any blocks, both
 * channels, buffers shared in any way, a cabinet as direct convolution has it, the input where it is off, and the
 * latency that it reports at other rates. */
#include <math.h>
#include <stdlib.h>

#include "host.h"
#include "material.h"
#include "support/check.h"

enum { FRAMES = 16000 };
static float x[FRAMES], want[FRAMES], y[2 * FRAMES];

static int64_t first_difference(const float *a, const float *b, int64_t n) {
  for (int64_t i = 0; i < n; i++)
    if (memcmp(a + i, b + i, sizeof *a)) return i;
  return -1;
}

static void check_same(const char *what, const char *model, const float *got) {
  const int64_t at = first_difference(got, want, FRAMES);
  CHECK(at < 0, "%s, %s: frame %lld is %.9g, not %.9g", model, what, (long long)at, (double)got[at < 0 ? 0 : at],
        (double)want[at < 0 ? 0 : at]);
}

static host *opened(bool stereo, double rate, const char *model) {
  host *h = host_open(&(host_options){.stereo = stereo, .rate = rate}, NULL);
  CHECK(h != NULL, "no instance at %g Hz", rate);
  if (h && model) {
    host_load(h, AMP_MODEL, model);
    CHECK(!h->errors && !strcmp(h->model, model), "%s: the plugin says \"%s\"", model, h->log);
  }
  return h;
}

static void test_bits(const char *model) {
  material_play(model, x, FRAMES, want);
  static const uint32_t most[] = {4096, 64, 9};
  for (size_t i = 0; i < sizeof most / sizeof *most; i++) {
    host *h = opened(false, 48000, model);
    if (!h) return;
    host_play(h, x, FRAMES, most[i], y);
    check_same("mono", model, y);
    CHECK(h->control[9] == 0, "latency %g at the rate of the model", (double)h->control[9]);
    host_close(h);
  }
  host *h = opened(true, 48000, model);
  if (!h) return;
  host_play(h, x, FRAMES, 1000, y);
  check_same("left", model, y);
  check_same("right", model, y + FRAMES);
  host_close(h);
}

/* In place, and with left and right crossed. */
static void test_shared_buffers(const char *model) {
  material_play(model, x, FRAMES, want);
  for (int crossed = 0; crossed < 2; crossed++) {
    host *h = opened(true, 48000, model);
    if (!h) return;
    for (int c = 0; c < 2; c++) memcpy(y + c * FRAMES, x, sizeof x);
    for (int64_t at = 0, n = 0; at < FRAMES; at += n) {
      n = FRAMES - at < 777 ? FRAMES - at : 777;
      float *a = y + at, *b = y + FRAMES + at;
      host_run(h, (const float *const[]){a, b}, (uint32_t)n, crossed ? (float *const[]){b, a} : (float *const[]){a, b});
    }
    check_same(crossed ? "crossed" : "in place", model, y);
    check_same(crossed ? "crossed" : "in place", model, y + FRAMES);
    host_close(h);
  }
}

enum { TAPS = 700, SHORT = 4000 };

static void test_cabinet(const char *model) {
  static float ir[TAPS];
  char path[MATERIAL_PATH];
  material_cabinet("cabinet.wav", TAPS, 1, 48000, ir, path);
  material_play(model, x, FRAMES, want);
  host *h = opened(false, 48000, model);
  if (!h) return;
  host_load(h, AMP_CABINET, path);
  CHECK(!h->errors && !strcmp(h->cabinet, path), "the plugin says \"%s\"", h->log);
  host_play(h, x, SHORT, 500, y);
  host_close(h);
  double worst = 0, peak = 0;
  for (int64_t i = 0; i < SHORT; i++) {
    double sum = 0;
    for (int64_t t = 0; t < TAPS && t <= i; t++) sum += (double)ir[t] * (double)want[i - t];
    worst = fmax(worst, fabs(sum - (double)y[i]));
    peak = fmax(peak, fabs(sum));
  }
  /* the largest model of the corpus answers silence with a little; the cabinet hears that before the first frame too */
  CHECK(worst <= 1e-6 * peak, "off by %g of the peak", worst / peak);
}

static void test_off(double rate, const char *model) {
  host *h = opened(false, rate, model);
  if (!h) return;
  h->control[8] = 0;
  host_play(h, x, FRAMES, 300, y);
  const int64_t late = (int64_t)h->control[9];
  CHECK(late >= 0 && late < 1000 && (late > 0) == (model && rate != 48000), "latency %lld at %g Hz", (long long)late,
        rate);
  for (int64_t i = 0; i < FRAMES; i++) {
    const float is = y[i], was = i < late ? 0.0f : x[i - late];
    CHECK(is == was, "off at %g Hz: frame %lld is %g, not %g", rate, (long long)i, (double)is, (double)was);
    if (is != was) break;
  }
  host_close(h);
}

static void test_rates(const char *model) {
  static const double rates[] = {8000, 22050, 44100, 48000, 88200, 96000, 192000};
  for (size_t i = 0; i < sizeof rates / sizeof *rates; i++) {
    test_off(rates[i], model);
    test_off(rates[i], NULL);
    host *h = opened(true, rates[i], model);
    if (!h) return;
    host_play(h, x, FRAMES, 300, y);
    double peak = 0;
    for (int64_t k = 0; k < FRAMES; k++) peak = fmax(peak, fabs((double)y[k]));
    CHECK(peak > 1e-3 && peak < 100, "the output has a peak of %g at %g Hz", peak, rates[i]);
    CHECK(first_difference(y, y + FRAMES, FRAMES) < 0, "left and right differ at %g Hz", rates[i]);
    host_close(h);
  }
}

int main(void) {
  static char models[MATERIAL_MODELS][MATERIAL_PATH];
  const int count = material_models(models);
  CHECK(count >= 8, "only %d models were found", count);
  material_signal(x, FRAMES);
  for (int i = 0; i < count; i++) test_bits(models[i]);
  char standard[MATERIAL_PATH];
  material_amp("standard.nam", 16, standard);
  test_bits(standard);
  test_shared_buffers(models[1]);
  test_cabinet(models[0]);
  test_rates(models[0]);
  host_end();
  material_end();
  return hk_test_end();
}
