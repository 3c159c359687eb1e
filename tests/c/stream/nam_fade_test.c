/* Changes during play: amps, sizes, cabinets, nothing, bypass, levels, gains and the gate, under a sine. A step in the
 * output shows in its second difference; beyond those of the old and the new sound alone it stays below -80 dB of the
 * peak. After the change the output is the new sound's, to the bit where nothing is recurrent. */
#include <math.h>
#include <stdbool.h>

#include "support/rig.h"

enum { FRAMES = 40000, CHANGE = 8000 };
static float x[FRAMES], y[FRAMES], old[FRAMES], new[FRAMES];

typedef struct side {
  const char *amp; /* NULL: none */
  double size, input_db;
  hk_rig_level level;
  int cabinet; /* frames; 0: none */
  int bypass;
  double gate_db;
} side;

static hk_rig_part *response(const hk_rig *r, int frames) {
  float h[4000];
  for (int i = 0; i < frames; i++)
    h[i] = expf(-12.0f * (float)i / (float)frames) * cosf(0.2f * (float)i + (float)frames);
  return rig_cabinet(r, h, frames, 1, 48000);
}

static void set(hk_rig *r, const side *was, const side *s, hk_rig_controls *c) {
  const bool same = was && was->amp && s->amp && !strcmp(was->amp, s->amp);
  if (!same) hk_rig_set(r, HK_RIG_AMP, s->amp ? rig_amp(r, s->amp) : NULL);
  if (!was || was->cabinet != s->cabinet) hk_rig_set(r, HK_RIG_CABINET, s->cabinet ? response(r, s->cabinet) : NULL);
  *c = (hk_rig_controls){sizeof *c, .input_db = s->input_db, .resize = 1, .model_size = s->size, .bypass = s->bypass};
  c->level = s->level;
  c->gate_db = s->gate_db;
}

/* `first` until CHANGE, then `then` (NULL: no change). */
static void play(double rate, const side *first, const side *then, float *to) {
  hk_rig *r = rig_of(rate, 1);
  hk_rig_controls c;
  set(r, NULL, first, &c);
  float *in[2] = {x, NULL}, *out[2] = {to, NULL};
  rig_play(r, &c, in, CHANGE, out, 64);
  if (then) set(r, first, then, &c);
  in[0] += CHANGE;
  out[0] += CHANGE;
  rig_play(r, &c, in, FRAMES - CHANGE, out, 48);
  rig_drain(r);
  hk_rig_free(r);
}

static double bend(const float *a, int i) { return fabs((double)a[i] - 2.0 * a[i - 1] + a[i - 2]); }

static void test(const char *what, double rate, side a, side b, bool exact) {
  play(rate, &a, NULL, old);
  play(rate, &b, NULL, new);
  play(rate, &a, &b, y);
  double peak = 0, click = 0;
  int at = 0;
  for (int i = CHANGE - 200; i < FRAMES; i++) {
    peak = fmax(peak, fmax(fabs((double)old[i]), fabs((double)new[i])));
    double alone = 0; /* within 3 ms: where a fade moves one of them by a frame or two the bends move too */
    for (int k = i - 140; k <= i + 140; k++)
      if (k < FRAMES) alone = fmax(alone, fmax(bend(old, k), bend(new, k)));
    if (bend(y, i) - alone > click) click = bend(y, i) - alone, at = i;
  }
  printf("%-36s %.1f dB of the peak, at %d\n", what, 20 * log10(click / peak + 1e-9), at - CHANGE);
  CHECK(click < 1e-4 * peak, "%s: a click of %.1f dB, %d frames after the change", what, 20 * log10(click / peak),
        at - CHANGE);
  double apart = 0;
  for (int i = FRAMES - 2000; i < FRAMES; i++) apart = fmax(apart, fabs((double)y[i] - new[i]));
  CHECK(exact ? apart == 0 : apart < 1e-4 * peak, "%s: in the end the sound differs by %g", what, apart);
}

int main(void) {
  for (int i = 0; i < FRAMES; i++) x[i] = 0.3f * sinf(0.008f * (float)i);
  static const char *const wave = RIG_MODELS "wavenet.nam", *const films = RIG_MODELS "features.nam",
                           *const lstm = RIG_MODELS "lstm.nam", *const slim = RIG_MODELS "slimmable.nam";
  const double rates[] = {48000, 44100, 96000};
  const side none = {.amp = NULL};
#ifdef HK_SANITIZED
  enum { FIRST = 1, END = 2 }; /* the rate that has everything */
#else
  enum { FIRST = 0, END = 3 };
#endif
  for (int k = FIRST; k < END; k++) {
    const double rate = rates[k];
    printf("%g Hz\n", rate);
    test("amp to amp", rate, (side){.amp = wave}, (side){.amp = films}, true);
    test("amp to LSTM", rate, (side){.amp = wave}, (side){.amp = lstm}, false);
    test("LSTM to amp", rate, (side){.amp = lstm}, (side){.amp = wave}, true);
    test("amp to nothing", rate, (side){.amp = wave}, none, true);
    test("nothing to amp", rate, none, (side){.amp = wave}, true);
    test("size 1 to 0", rate, (side){.amp = slim, .size = 1}, (side){.amp = slim, .size = 0}, true);
    test("size 0 to 1", rate, (side){.amp = slim, .size = 0}, (side){.amp = slim, .size = 1}, true);
    test("cabinet to cabinet", rate, (side){.cabinet = 2000}, (side){.cabinet = 600}, false);
    test("nothing to cabinet", rate, none, (side){.cabinet = 4000}, false);
    test("cabinet to nothing", rate, (side){.amp = wave, .cabinet = 500}, (side){.amp = wave}, true);
    test("amp and cabinet at once", rate, (side){.amp = wave, .cabinet = 500}, (side){.amp = films, .cabinet = 300},
         false);
    test("bypass", rate, (side){.amp = wave}, (side){.amp = wave, .bypass = 1}, true);
    test("no bypass", rate, (side){.amp = wave, .bypass = 1}, (side){.amp = wave}, true);
    test("amp to nothing, bypassed", rate, (side){.amp = wave, .bypass = 1}, (side){.bypass = 1}, true);
    test("gain", rate, (side){.amp = wave, .input_db = -10}, (side){.amp = wave, .input_db = 10}, true);
    test("gate shuts", rate, (side){.amp = wave}, (side){.amp = wave, .gate_db = -1}, true);
    test("gate off", rate, (side){.amp = wave, .gate_db = -1}, (side){.amp = wave}, true);
  }
  return hk_test_end();
}
