/* The example models of the amp-model ecosystem, where they are present (../shared/nam beside the repository): each
 * must render input.wav within 5e-6 of the peak and -110 dB of a float64 engine's rendering, for every block size and
 * ISA, and its output must not depend on how the signal is cut into blocks. Skipped (77) where the models are not
 * there. */
#include <math.h>
#include <stdlib.h>

#include "base/base.h"
#include "hankel_nam.h"
#include "support/check.h"

enum { FRAMES = 96000 };

static void *slurp(const char *name, size_t *bytes) {
  char path[256];
  snprintf(path, sizeof path, "../shared/nam/%s", name);
  FILE *file = fopen(path, "rb");
  if (!file) return NULL;
  fseek(file, 0, SEEK_END);
  *bytes = (size_t)ftell(file);
  rewind(file);
  char *data = malloc(*bytes + 1);
  if (fread(data, 1, *bytes, file) != *bytes) *bytes = 0;
  fclose(file);
  return data;
}

/* 24-bit mono with the plain 44-byte head, which is what input.wav is */
static float *read_input(void) {
  size_t bytes;
  unsigned char *wav = slurp("input.wav", &bytes);
  if (!wav) return NULL;
  CHECK(bytes == 44 + 3 * FRAMES, "input.wav has %zu bytes", bytes);
  float *x = malloc(FRAMES * sizeof *x);
  for (int i = 0; i < FRAMES; i++) {
    const unsigned char *p = wav + 44 + 3 * i;
    x[i] = (float)((int32_t)((uint32_t)p[0] << 8 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 24) >> 8) / 8388608.0f;
  }
  free(wav);
  return x;
}

static void render(hk_nam *m, const float *x, float *y, int64_t block) {
  uint64_t seed = 7;
  CHECK_STATUS(HK_OK, "", hk_nam_reset(m));
  for (int64_t at = 0; at < FRAMES;) {
    int64_t n = hk_test_between(&seed, 1, 700);
    if (block) n = block;
    if (n > FRAMES - at) n = FRAMES - at;
    const hk_status e = hk_nam_process(m, x + at, n, y + at);
    if (e) CHECK(!e, "%s", hk_nam_last_error());
    at += n;
  }
}

static void compare(const char *what, int64_t block, const float *y, const float *want, double limit_peak,
                    double limit_db) {
  double peak = 0, worst = 0, error = 0, power = 0;
  for (int i = 0; i < FRAMES; i++) {
    const double e = fabs((double)y[i] - want[i]);
    peak = fmax(peak, fabs(want[i]));
    if (!(e <= worst)) worst = e;
    error += e * e;
    power += (double)want[i] * want[i];
  }
  const double db = 10 * log10(error / power + 1e-300);
  CHECK(worst <= limit_peak * peak && db <= limit_db, "%s, blocks of %lld: worst %.2e of peak %.3g, %.1f dB", what,
        (long long)block, worst, peak, db);
  printf("%-40s blocks of %3lld: worst %.1e of the peak, %.1f dB\n", what, (long long)block, worst / peak, db);
}

static void test_model(const char *file, const char *expected, double size, const float *x, hk_isa isa) {
  size_t bytes, want_bytes;
  char *text = slurp(file, &bytes);
  float *want = slurp(expected, &want_bytes), *y = malloc(FRAMES * sizeof *y), *first = malloc(FRAMES * sizeof *first);
  const hk_nam_options o = {.size = sizeof o, .isa = isa};
  hk_nam *m = NULL;
  char what[128];
  snprintf(what, sizeof what, "%s (%s)", expected, hk_isa_name(isa));
  if (text && want && want_bytes == FRAMES * sizeof(float)) {
    const hk_status e = hk_nam_load_memory(&m, text, bytes, &o);
    CHECK(!e, "%s: %s", file, hk_nam_last_error());
    if (!e) {
      hk_nam_set_size(m, size);
      const int64_t blocks[] = {64, 1, 16, 37, 256, 0};
      for (int i = 0; i < (isa == HK_ISA_SCALAR ? 2 : 6); i++) {
        render(m, x, i ? y : first, blocks[i]);
        compare(what, blocks[i], i ? y : first, want, 5e-6, -110);
        if (i) compare("  against blocks of 64", blocks[i], y, first, 1e-6, -110);
      }
      hk_nam_free(m);
    }
  }
  free(text);
  free(want);
  free(y);
  free(first);
}

int main(void) {
  static const struct {
    const char *file, *expected;
    double size;
  } models[] = {{"wavenet.nam", "wavenet.expected.f32", 1},
                {"wavenet_a1_standard.nam", "wavenet_a1_standard.expected.f32", 1},
                {"A2.nam", "A2-full.expected.f32", 1},
                {"A2.nam", "A2-lite.expected.f32", 0},
                {"lstm.nam", "lstm.expected.f32", 1},
                {"slimmable_container.nam", "slimmable_container.expected.f32", 1},
                {"wavenet_a2_max.nam", "wavenet_a2_max.expected.f32", 1},
                {"wavenet_condition_dsp.nam", "wavenet_condition_dsp.expected.f32", 1}};
  float *x = read_input();
  if (!x) return 77;
  const hk_isa isas[] = {HK_ISA_SCALAR, HK_ISA_NEON, HK_ISA_AVX2, HK_ISA_AVX512};
  for (int i = 0; i < 4; i++) {
    for (size_t j = 0; hk_cpu_has(isas[i]) && j < sizeof models / sizeof *models; j++) {
      test_model(models[j].file, models[j].expected, models[j].size, x, isas[i]);
    }
  }
  free(x);
  return hk_test_end();
}
