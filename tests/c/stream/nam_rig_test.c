/* The rig: the bits of the player at 0 dB, gains, levels, channels, cabinets, bypass, what is not finite, what is
 * refused, and that the output does not depend on the blocks. */
#include <math.h>
#include <stdbool.h>

#include "support/rig.h"

enum { FRAMES = 24000 };
static float x[2][FRAMES], y[2][FRAMES], want[2][FRAMES];
static float *const in[2] = {x[0], x[1]}, *const out[2] = {y[0], y[1]}, *const ref[2] = {want[0], want[1]};

static hk_rig_controls none(void) { return (hk_rig_controls){.size = sizeof(hk_rig_controls)}; }

static void fill(float level) {
  uint64_t seed = 9;
  for (int c = 0; c < 2; c++)
    for (int i = 0; i < FRAMES; i++) x[c][i] = level * hk_test_float(&seed);
}

static double worst(const float *a, const float *b, int64_t from, int64_t to) {
  double most = 0;
  for (int64_t i = from; i < to; i++) most = fmax(most, isnan(a[i]) ? INFINITY : fabs((double)a[i] - b[i]));
  return most;
}

static void test_bits(void) {
  static const char *const models[] = {RIG_MODELS "wavenet.nam", RIG_MODELS "lstm.nam", RIG_MODELS "container.nam",
                                       RIG_MODELS "slimmable.nam"};
  for (size_t i = 0; i < sizeof models / sizeof *models; i++) {
    for (int c = 0; c < 2; c++) {
      hk_nam *m = NULL;
      CHECK(!hk_nam_load_file(&m, models[i], NULL), "%s", hk_nam_last_error());
      if (!m) exit(1);
      hk_nam_process(m, x[c], FRAMES, want[c]);
      hk_nam_free(m);
    }
    for (int32_t channels = 1; channels <= 2; channels++) {
      hk_rig *r = rig_of(48000, channels);
      hk_rig_set(r, HK_RIG_AMP, rig_amp(r, models[i]));
      rig_play(r, NULL, in, FRAMES, out, 0);
      for (int32_t c = 0; c < channels; c++)
        CHECK(!memcmp(y[c], want[c], sizeof y[c]), "%s: channel %d of %d is not the player's", models[i], c, channels);
      CHECK(hk_rig_latency(r) == 0, "latency %lld", (long long)hk_rig_latency(r));
      hk_rig_reset(r);
      rig_play(r, NULL, in, FRAMES, out, 64);
      CHECK(!memcmp(y[0], want[0], sizeof y[0]), "%s: another output after reset", models[i]);
      hk_rig_free(r);
    }
  }
}

/* An empty rig is a wire; gains arrive at their value exactly and move without a step. */
static void test_gains(void) {
  hk_rig *r = rig_of(48000, 2);
  hk_rig_controls c = none();
  rig_play(r, &c, in, FRAMES, out, 0);
  CHECK(!memcmp(x, y, sizeof x), "an empty rig changes the signal");
  for (int i = 0; i < FRAMES; i++) x[0][i] = x[1][i] = 1.0f;
  c.input_db = -6.0205999132796239;
  c.output_db = -6.0205999132796239;
  rig_play(r, &c, in, FRAMES, out, 0);
  double step = 0, bend = 0;
  for (int i = 2; i < FRAMES; i++) {
    step = fmax(step, fabs((double)y[0][i] - y[0][i - 1]));
    bend = fmax(bend, fabs((double)y[0][i] - 2.0 * y[0][i - 1] + y[0][i - 2]));
  }
  CHECK(step < 0.0025 && bend < 2e-5, "largest step %g, largest bend %g", step, bend);
  CHECK(y[0][FRAMES - 1] == 0.25f && !memcmp(y[0], y[1], sizeof y[0]), "the gain is %g", (double)y[0][FRAMES - 1]);
  c.input_db = c.output_db = 0;
  rig_play(r, &c, in, FRAMES, out, 0);
  CHECK(y[0][FRAMES - 1] == 1.0f, "the gain is %g at 0 dB", (double)y[0][FRAMES - 1]);
  hk_rig_free(r);
  fill(0.3f);
}

static double level_of(const char *metadata, hk_rig_level level, double dbu) {
  hk_rig *r = rig_of(48000, 1);
  hk_rig_set(r, HK_RIG_AMP, rig_wire(r, 1, 48000, metadata));
  hk_rig_controls c = none();
  c.level = level;
  c.interface_dbu = dbu;
  rig_play(r, &c, in, 100, out, 0);
  hk_rig_free(r);
  return 20 * log10((double)y[0][50] / x[0][50]);
}

static void test_levels(void) {
  static const char *const all = "{\"loudness\":-24.5,\"input_level_dbu\":18.25,\"output_level_dbu\":12}";
  const struct {
    const char *metadata;
    hk_rig_level level;
    double dbu, want;
  } cases[] = {{all, HK_RIG_RAW, 3, 0},
               {all, HK_RIG_NORMALIZED, 3, 6.5},
               {all, HK_RIG_CALIBRATED, 13, (12 - 13) + (13 - 18.25)},
               {"{\"output_level_dbu\":12}", HK_RIG_CALIBRATED, 13, -1},
               {"{\"input_level_dbu\":12}", HK_RIG_CALIBRATED, 13, 1},
               {"null", HK_RIG_NORMALIZED, 13, 0},
               {"{\"loudness\":null}", HK_RIG_CALIBRATED, 13, 0}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    const double got = level_of(cases[i].metadata, cases[i].level, cases[i].dbu);
    CHECK(fabs(got - cases[i].want) < 1e-5, "case %zu: %g dB, not %g", i, got, cases[i].want);
  }
}

/* One response serves both channels, two serve one each, four cross; all by the formula in double. */
static void test_cabinets(void) {
  enum { TAPS = 700 };
  static float h[4 * TAPS];
  uint64_t seed = 3;
  for (int i = 0; i < 4 * TAPS; i++) h[i] = 0.1f * hk_test_float(&seed);
  for (int32_t rig = 1; rig <= 2; rig++) {
    for (int32_t n = 1; n <= 4; n *= 2) {
      hk_rig *r = rig_of(48000, rig);
      hk_rig_set(r, HK_RIG_CABINET, rig_cabinet(r, h, TAPS, n, 48000));
      rig_play(r, NULL, in, 3000, out, 0);
      for (int32_t c = 0; c < rig; c++) {
        for (int i = 0; i < 3000; i++) {
          double sum = 0;
          for (int t = 0; t < TAPS && t <= i; t++) {
            if (n < 4) sum += (double)h[t * n + (n == 2 ? c : 0)] * x[c][i - t];
            else sum += (double)h[t * 4 + c] * x[0][i - t] + (rig == 2 ? (double)h[t * 4 + 2 + c] * x[1][i - t] : 0);
          }
          want[c][i] = (float)sum;
        }
        CHECK(worst(y[c], want[c], 0, 3000) < 1e-4, "%d responses, channel %d of %d: %g", n, c, rig,
              worst(y[c], want[c], 0, 3000));
      }
      CHECK(hk_rig_latency(r) == 0, "a cabinet has latency");
      hk_rig_free(r);
    }
  }
}

/* A smooth response at another rate is the same filter: a slow sine keeps its level and phase. */
static void test_cabinet_rate(void) {
  enum { TAPS = 800 };
  static float h[TAPS], h2[2 * TAPS];
  for (int i = 0; i < TAPS; i++) h[i] = (float)(0.02 * pow(sin(3.14159265358979 * (i + 1) / (TAPS + 1)), 2));
  for (int i = 0; i < 2 * TAPS; i++) h2[i] = (float)(0.01 * pow(sin(3.14159265358979 * (0.5 * i + 1) / (TAPS + 1)), 2));
  for (int i = 0; i < FRAMES; i++) x[0][i] = sinf(0.004f * (float)i);
  hk_rig *r = rig_of(48000, 1);
  hk_rig_set(r, HK_RIG_CABINET, rig_cabinet(r, h, TAPS, 1, 48000));
  rig_play(r, NULL, in, FRAMES, ref, 0);
  hk_rig_reset(r);
  hk_rig_part *p = rig_cabinet(r, h2, 2 * TAPS, 1, 96000);
  hk_rig_part_facts f = {.size = sizeof f};
  CHECK(!hk_rig_part_info(p, &f) && f.frames == TAPS && f.slot == HK_RIG_CABINET && !f.latency && f.bytes > 0,
        "%lld frames", (long long)f.frames);
  hk_rig_set(r, HK_RIG_CABINET, p);
  rig_play(r, NULL, in, FRAMES, out, 0);
  CHECK(worst(y[0], want[0], 0, FRAMES) < 2e-3, "the response at 96 kHz is off by %g", worst(y[0], want[0], 0, FRAMES));
  hk_rig_free(r);
  fill(0.3f);
}

/* Amps, sizes, cabinets and controls change at given frames; blocks of any length give the same bits. */
static void play_changes(double rate, float *const *to, int64_t block) {
  enum { AMP_AT = 3000, CABINET_AT = 5000, SIZE_AT = 9000, AGAIN_AT = 9500, OFF_AT = 16000 };
  const int64_t stops[] = {AMP_AT, CABINET_AT, SIZE_AT, AGAIN_AT, OFF_AT, FRAMES};
  float h[300];
  for (int i = 0; i < 300; i++) h[i] = 0.05f * cosf(0.3f * (float)i) * expf(-0.01f * (float)i);
  hk_rig *r = rig_of(rate, 2);
  hk_rig_set(r, HK_RIG_AMP, rig_amp(r, RIG_MODELS "slimmable.nam"));
  hk_rig_controls c = none();
  int64_t at = 0;
  for (size_t s = 0; s < sizeof stops / sizeof *stops; s++) {
    float *const from[2] = {x[0] + at, x[1] + at}, *const y_at[2] = {to[0] + at, to[1] + at};
    rig_play(r, &c, from, stops[s] - at, y_at, block);
    rig_drain(r);
    at = stops[s];
    if (at == AMP_AT) {
      c = (hk_rig_controls){sizeof c, .input_db = 3, .output_db = -5, .gate_db = -40, .level = HK_RIG_NORMALIZED};
      hk_rig_set(r, HK_RIG_AMP, rig_amp(r, RIG_MODELS "container.nam"));
    } else if (at == CABINET_AT) {
      hk_rig_set(r, HK_RIG_CABINET, rig_cabinet(r, h, 300, 1, 48000));
    } else if (at == SIZE_AT) {
      c.resize = c.bypass = 1;
    } else if (at == AGAIN_AT) {
      c.bypass = 0;
      hk_rig_set(r, HK_RIG_AMP, rig_amp(r, RIG_MODELS "lstm.nam"));
      hk_rig_set(r, HK_RIG_AMP, rig_amp(r, RIG_MODELS "wavenet.nam")); /* the one before is retired unheard */
    } else if (at == OFF_AT) {
      hk_rig_set(r, HK_RIG_AMP, NULL);
      hk_rig_set(r, HK_RIG_CABINET, NULL);
    }
  }
  hk_rig_free(r);
}

static void test_blocks(void) {
  const double rates[] = {48000, 44100, 96000};
  for (int k = 0; k < 3; k++) {
    play_changes(rates[k], ref, 64);
    for (int64_t block = 0; block <= 1024; block = block ? block * 7 : 1) {
      play_changes(rates[k], out, block);
      CHECK(!memcmp(y, want, sizeof y), "%g Hz: blocks of %lld give another output (first %g, last %g)", rates[k],
            (long long)block, worst(y[0], want[0], 0, 3000), worst(y[0], want[0], 20000, FRAMES));
    }
  }
}

/* Bypass is x, delayed by what the rig says; whatever the gains do. */
static void test_bypass(void) {
  const double rates[] = {48000, 44100, 192000, 11025};
  for (int k = 0; k < 4; k++) {
    hk_rig *r = rig_of(rates[k], 2);
    hk_rig_set(r, HK_RIG_AMP, rig_amp(r, RIG_MODELS "wavenet.nam"));
    hk_rig_controls c = none();
    c.bypass = 1;
    c.input_db = 20;
    rig_play(r, &c, in, FRAMES, out, 0);
    const int64_t late = hk_rig_latency(r);
    CHECK((late > 0) == (rates[k] != 48000), "latency %lld at %g Hz", (long long)late, rates[k]);
    for (int ch = 0; ch < 2; ch++)
      CHECK(!memcmp(y[ch] + late, x[ch], (size_t)(FRAMES - late) * sizeof(float)), "%g Hz: bypass changes the signal",
            rates[k]);
    hk_rig_free(r);
  }
}

/* Silence of -60 dB, sound of -20 dB in the left channel alone, silence, something of -43 dB: within the hysteresis of
 * a gate at -40 dB. Times in frames of 48 kHz. */
static void test_gate(void) {
  enum { ON = 6000, OFF = 12000, LOW = 18000 };
  for (int i = 0; i < FRAMES; i++) {
    const float level = i < ON ? 0.001f : i < OFF ? 0.1f : i < LOW ? 0.001f : 0.007f;
    x[0][i] = i % 2 ? level : -level;
    x[1][i] = i % 3 ? 0.001f : -0.001f;
  }
  hk_rig *r = rig_of(48000, 2);
  hk_rig_controls c = none();
  c.gate_db = -40;
  rig_play(r, &c, in, FRAMES, out, 0);
  double gain[FRAMES], step = 0;
  bool linked = true;
  for (int i = 0; i < FRAMES; i++) {
    gain[i] = (double)y[0][i] / x[0][i];
    linked &= fabs(gain[i] - (double)y[1][i] / x[1][i]) < 1e-6;
    if (i) step = fmax(step, fabs(gain[i] - gain[i - 1]));
  }
  CHECK(linked, "the channels have gains of their own");
  CHECK(gain[ON - 1] == 0, "closed to %g before the sound", gain[ON - 1]);
  CHECK(gain[ON + 48] == 1 && gain[ON + 24] > 0.4, "open by %g after 1 ms", gain[ON + 48]);
  CHECK(gain[OFF + 2400] == 1, "open by %g in the hold time", gain[OFF + 2400]);
  CHECK(gain[OFF + 2400 + 4800 + 1500] == 0 && gain[OFF + 2400 + 2400 + 1500] > 0.3, "closed to %g and %g",
        gain[OFF + 2400 + 2400 + 1500], gain[OFF + 2400 + 4800 + 1500]);
  CHECK(gain[FRAMES - 1] == 0, "opened to %g below the threshold", gain[FRAMES - 1]);
  CHECK(step < 0.032, "the gain moves by %g per frame", step); /* of a rise within 48 frames */
  c.gate_db = -45;
  rig_play(r, &c, in, ON, out, 0); /* closed by silence */
  for (int i = 0; i < ON; i++) x[0][i] = i < 1000 ? 0.1f : 0.007f;
  c.gate_db = -40;
  rig_play(r, &c, in, ON, out, 0);
  CHECK(y[0][ON - 1] == x[0][ON - 1], "-43 dB after the sound closes a gate of -40 dB");
  hk_rig_free(r);
  fill(0.3f);
}

/* What is not finite counts as 0 where it would stay; afterwards the output is as if it had never been there. */
static void test_not_finite(void) {
  static const char *const models[] = {RIG_MODELS "lstm.nam", RIG_MODELS "wavenet.nam"};
  const float h[3] = {0.5f, 0.2f, -0.1f};
  for (int k = 0; k < 4; k++) {
    for (int pass = 0; pass < 2; pass++) {
      hk_rig *r = rig_of(k < 2 ? 48000 : 44100, 1);
      hk_rig_set(r, HK_RIG_AMP, rig_amp(r, models[k % 2]));
      hk_rig_set(r, HK_RIG_CABINET, rig_cabinet(r, h, 3, 1, 48000));
      fill(0.3f);
      for (int i = 100; i < 110; i++) x[0][i] = pass ? 0.0f : i % 3 == 0 ? NAN : i % 3 == 1 ? INFINITY : -INFINITY;
      hk_rig_controls c = none();
      c.input_db = 6;
      c.gate_db = -60;
      rig_play(r, &c, in, FRAMES, pass ? ref : out, 64);
      hk_rig_free(r);
    }
    CHECK(!memcmp(y[0], want[0], sizeof y[0]), "model %d, NaN and Inf: off by %g", k, worst(y[0], want[0], 0, FRAMES));
  }
  fill(0.3f);
  hk_rig *r = rig_of(48000, 2); /* a part that overflows is not heard before it fades in, and is silent then */
  hk_rig_controls c = none();
  c.input_db = 60;
  rig_play(r, &c, in, FRAMES, ref, 0);
  hk_rig_set(r, HK_RIG_AMP, rig_wire(r, 3e38, 48000, "null"));
  rig_play(r, &c, in, FRAMES, out, 0);
  CHECK(!memcmp(y[1], want[1], 2048 * sizeof(float)), "a part is heard before it fades in");
  double most = 0;
  for (int i = 0; i < FRAMES; i++) most = fmax(most, isfinite(y[1][i]) ? 0 : 1);
  CHECK(most == 0 && y[1][FRAMES - 1] == 0, "a part that overflows gives %g", (double)y[1][FRAMES - 1]);
  hk_rig_free(r);
}

static void test_clones(void) {
  static const char *const path = RIG_MODELS "container.nam";
  hk_nam *m = NULL, *other = NULL, *third = NULL;
  CHECK(!hk_nam_load_file(&m, path, NULL), "%s", hk_nam_last_error());
  CHECK(!hk_nam_set_size(m, 0.2) && !hk_nam_clone(&other, m) && !hk_nam_clone(&third, other), "%s",
        hk_nam_last_error());
  if (!m || !other || !third) return;
  hk_nam_facts f = {.size = sizeof f}, g = f;
  hk_nam_info(m, &f);
  hk_nam_info(third, &g);
  CHECK(!strcmp(f.architecture, g.architecture) && !strcmp(f.layers, g.layers) && f.at_size == g.at_size &&
            g.bytes < f.bytes,
        "the clone differs: %zu and %zu bytes", f.bytes, g.bytes);
  hk_nam_process(m, x[0], 5000, want[0]);
  hk_nam_free(m); /* the weights stay */
  hk_nam_process(other, x[1], 300, y[1]);
  const float *const from[1] = {x[0]};
  float *const to[1] = {y[0]};
  CHECK(!hk_nam_process_planar(third, from, 5000, to), "%s", hk_nam_last_error());
  CHECK(!memcmp(y[0], want[0], 5000 * sizeof(float)), "the clone plays something else");
  hk_nam_free(other);
  hk_nam_set_size(third, 1);
  hk_nam_process(third, x[0], 300, y[0]);
  hk_nam_free(third);
  CHECK(hk_nam_clone(NULL, NULL) == HK_INVALID && strstr(hk_nam_last_error(), "NULL"), "%s", hk_nam_last_error());
}

#define REFUSED(word, call)                                                                                            \
  CHECK((call) == HK_INVALID && strstr(hk_nam_last_error(), (word)), "\"%s\" is not in \"%s\"", word,                  \
        hk_nam_last_error())

static void test_refused(void) {
  hk_rig *r = rig_of(48000, 2), *bad = NULL;
  hk_rig_part *p = NULL;
  hk_rig_options o = {.size = sizeof o, .sample_rate = 7000, .channels = 1};
  REFUSED("sample_rate is 7000", hk_rig_create(&bad, &o));
  o = (hk_rig_options){.size = sizeof o, .sample_rate = 48000, .channels = 3};
  REFUSED("channels is 3", hk_rig_create(&bad, &o));
  o = (hk_rig_options){.size = sizeof o, .sample_rate = 48000, .channels = 1, .fade_seconds = -1};
  REFUSED("fade_seconds is -1", hk_rig_create(&bad, &o));
  o = (hk_rig_options){.size = sizeof o + 8, .sample_rate = 48000, .channels = 1};
  REFUSED("newer hankel_nam.h", hk_rig_create(&bad, &o));
  REFUSED("options is NULL", hk_rig_create(&bad, NULL));
  CHECK(hk_rig_load_amp(&p, r, "/nowhere.nam", NULL) == HK_IO, "%s", hk_nam_last_error());
  REFUSED("path is NULL", hk_rig_load_amp(&p, r, NULL, NULL));
  float h[6] = {1, 2, 3, 4, 5, INFINITY};
  REFUSED("3 channels", hk_rig_load_cabinet(&p, r, h, 1, 3, 48000));
  REFUSED("sample rate of 1", hk_rig_load_cabinet(&p, r, h, 1, 1, 1));
  REFUSED("0 frames", hk_rig_load_cabinet(&p, r, h, 0, 1, 48000));
  REFUSED("10 seconds", hk_rig_load_cabinet(&p, r, h, 480001, 1, 48000));
  REFUSED("frame 2 of", hk_rig_load_cabinet(&p, r, h, 3, 2, 48000));
  REFUSED("only whole rates", hk_rig_load_cabinet(&p, r, h, 3, 1, 44100.5));
  REFUSED("filter taps", hk_rig_load_cabinet(&p, r, h, 3, 1, 767999));
  hk_rig *fast = rig_of(768000, 1);
  float *ten = calloc(480000, sizeof *ten);
  if (!ten) exit(1);
  REFUSED("7680000 frames at 768000 Hz", hk_rig_load_cabinet(&p, fast, ten, 480000, 1, 48000));
  free(ten);
  hk_rig_free(fast);
  CHECK(!p, "a part all the same");
  hk_rig_controls c = none();
  const float *from[2] = {x[0], x[1]};
  float *to[2] = {y[0], y[1]};
  c.input_db = NAN;
  REFUSED("input_db is nan", hk_rig_process(r, &c, from, 8, to));
  c = none();
  c.output_db = 300;
  REFUSED("output_db is 300", hk_rig_process(r, &c, from, 8, to));
  c = none();
  c.resize = 1;
  c.model_size = 1.5;
  REFUSED("model_size is 1.5", hk_rig_process(r, &c, from, 8, to));
  c = none();
  c.level = (hk_rig_level)7;
  REFUSED("level is 7", hk_rig_process(r, &c, from, 8, to));
  c = none();
  c.gate_db = NAN;
  REFUSED("gate_db is nan", hk_rig_process(r, &c, from, 8, to));
  from[1] = NULL;
  REFUSED("x[1]", hk_rig_process(r, NULL, from, 8, to));
  REFUSED("n is negative", hk_rig_process(r, NULL, from, -1, to));
  hk_rig_free(r);
  hk_rig_free(NULL);
  hk_rig_part_free(NULL);
}

static void test_foreign_parts(void) {
  hk_rig *r = rig_of(48000, 2), *other = rig_of(44100, 2);
  hk_rig_part *p = rig_wire(other, 1, 48000, "null");
  hk_rig_set(r, HK_RIG_AMP, p); /* of another rig: comes back unheard */
  CHECK(hk_rig_retired(r) == p && !hk_rig_retired(r) && !hk_rig_latency(r), "a part of another rate was taken");
  hk_rig_set(other, HK_RIG_CABINET, p);
  CHECK(hk_rig_retired(other) == p, "an amp was taken as a cabinet");
  hk_rig_part_free(p);
  hk_rig_free(other);
  hk_rig_free(r);
}

/* Structs of an older header: what they lack is zero, and is not written. */
static void test_sizes(void) {
  hk_rig *r = rig_of(48000, 1);
  hk_rig_controls c = {.size = 2 * sizeof(size_t), .input_db = 0, .output_db = 40, .gate_db = -3};
  rig_play(r, &c, in, 1000, out, 0);
  CHECK(!memcmp(x[0], y[0], 1000 * sizeof(float)), "fields beyond the size were read");
  hk_rig_part *p = rig_wire(r, 1, 48000, "null");
  hk_rig_part_facts f;
  memset(&f, 0x55, sizeof f);
  f.size = 3 * sizeof(size_t);
  CHECK(!hk_rig_part_info(p, &f) && f.slot == HK_RIG_AMP && f.bytes == (size_t)0x5555555555555555, "%zu bytes",
        f.bytes);
  hk_rig_part_free(p);
  hk_nam_options o = {.size = 16, .film_blended_only = 1};
  CHECK(!hk_rig_load_amp(&p, r, RIG_MODELS "lstm.nam", &o), "%s", hk_nam_last_error());
  hk_rig_part_free(p);
  hk_rig_free(r);
}

int main(void) {
  fill(0.3f);
  test_bits();
  test_gains();
  test_levels();
  test_cabinets();
  test_cabinet_rate();
  test_blocks();
  test_bypass();
  test_gate();
  test_not_finite();
  test_clones();
  test_refused();
  test_foreign_parts();
  test_sizes();
  return hk_test_end();
}
