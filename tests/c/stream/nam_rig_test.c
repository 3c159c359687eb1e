/* The rig: the bits of the player at 0 dB, gains, parts that come and go, two channels, bypass, what is refused, and
 * that the output does not depend on the blocks. */
#include <math.h>
#include <stdlib.h>

#include "hankel_nam.h"
#include "support/check.h"

enum { FRAMES = 12000 };
static float x[2][FRAMES], y[2][FRAMES], want[2][FRAMES];
static const float *const in[2] = {x[0], x[1]};
static float *const out[2] = {y[0], y[1]};

#define MODELS "tests/fuzz/corpus/nam/"

static hk_rig *rig_of(double rate, int32_t channels) {
  const hk_rig_options o = {.size = sizeof o, .sample_rate = rate, .channels = channels};
  hk_rig *r = NULL;
  CHECK(!hk_rig_create(&r, &o), "%s", hk_nam_last_error());
  if (!r) exit(1);
  return r;
}

static hk_rig_part *amp(const hk_rig *r, const char *path) {
  hk_rig_part *p = NULL;
  CHECK(!hk_rig_load_amp(&p, r, path, NULL), "%s: %s", path, hk_nam_last_error());
  if (!p) exit(1);
  return p;
}

static hk_rig_part *cabinet(const hk_rig *r, const float *h, int64_t frames, int32_t channels, double rate) {
  hk_rig_part *p = NULL;
  CHECK(!hk_rig_load_cabinet(&p, r, h, frames, channels, rate), "%s", hk_nam_last_error());
  if (!p) exit(1);
  return p;
}

static hk_rig_controls none(void) { return (hk_rig_controls){.size = sizeof(hk_rig_controls)}; }

/* All of x in blocks of random length, or of `block` frames. */
static void play(hk_rig *r, const hk_rig_controls *c, int64_t block) {
  uint64_t seed = 5;
  for (int64_t at = 0; at < FRAMES;) {
    int64_t n = block ? block : hk_test_between(&seed, 0, 700);
    if (n > FRAMES - at) n = FRAMES - at;
    const float *from[2] = {x[0] + at, x[1] + at};
    float *to[2] = {y[0] + at, y[1] + at};
    CHECK(!hk_rig_process(r, c, from, n, to), "%s", hk_nam_last_error());
    at += n;
  }
}

/* The player alone, both channels of x. */
static void play_models(const char *path) {
  for (int c = 0; c < 2; c++) {
    hk_nam *m = NULL;
    CHECK(!hk_nam_load_file(&m, path, NULL), "%s", hk_nam_last_error());
    if (!m) exit(1);
    CHECK(!hk_nam_process(m, x[c], FRAMES, want[c]), "%s", hk_nam_last_error());
    hk_nam_free(m);
  }
}

static void test_bits(void) {
  static const char *const models[] = {MODELS "wavenet.nam", MODELS "lstm.nam", MODELS "container.nam",
                                       MODELS "slimmable.nam"};
  for (size_t i = 0; i < sizeof models / sizeof *models; i++) {
    play_models(models[i]);
    for (int32_t channels = 1; channels <= 2; channels++) {
      hk_rig *r = rig_of(48000, channels);
      hk_rig_set(r, HK_RIG_AMP, amp(r, models[i]));
      play(r, NULL, 0);
      for (int32_t c = 0; c < channels; c++)
        CHECK(!memcmp(y[c], want[c], sizeof y[c]), "%s: channel %d of %d is not the player's", models[i], c, channels);
      CHECK(hk_rig_latency(r) == 0, "latency %lld", (long long)hk_rig_latency(r));
      hk_rig_free(r);
    }
  }
}

int main(void) {
  uint64_t seed = 9;
  for (int c = 0; c < 2; c++)
    for (int i = 0; i < FRAMES; i++) x[c][i] = 0.3f * hk_test_float(&seed);
  test_bits();
  return hk_test_end();
}
