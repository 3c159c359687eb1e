/* The noise gate. It opens when the dry signal's envelope exceeds the threshold, and closes when the envelope has been
 * 6 dB below it for the hold time; between the two it stays as it is. The envelope rises at once and decays with 10 ms,
 * longer than half a period of the lowest strings. The gain follows a cubic between 0 and 1, so it has no corners.
 * A gate that is switched off opens as slowly as it closes. */
#include <float.h>
#include <math.h>

#include "rig.h"

static const double ATTACK = 0.001, HOLD = 0.05, RELEASE = 0.1, DECAY = 0.01, HYSTERESIS_DB = 6;

void rig_gate_reset(rig_gate *g, bool open) { *g = (rig_gate){.open = open, .way = open ? 1 : 0}; }

static double loudest(const hk_rig *rig, const float *x, int64_t i) {
  double peak = 0;
  for (int32_t c = 0; c < rig->channels; c++) {
    const double v = fabs((double)x[c * BLOCK + i]);
    if (v > peak && v <= FLT_MAX) peak = v;
  }
  return peak;
}

/* The next n gains, from the n frames of x; false, and no values, when all are 1. */
bool rig_gate_next(hk_rig *rig, const float *x, int64_t n, float *gain) {
  rig_gate *g = &rig->gate;
  const double db = rig->controls.gate_db, rate = rig->rate;
  if (db >= 0) {
    g->open = true;
    g->peak = 0;
    if (g->way == 1) return false;
  }
  const double threshold = rig_gain(db), close = rig_gain(db - HYSTERESIS_DB), decay = exp(-1.0 / (DECAY * rate)),
               up = 1.0 / ((db < 0 ? ATTACK : RELEASE) * rate), down = 1.0 / (RELEASE * rate);
  for (int64_t i = 0; i < n; i++) {
    const double peak = loudest(rig, x, i);
    g->peak = fmax(peak, g->peak * decay);
    if (db < 0) {
      g->quiet = g->peak < close ? g->quiet + 1 : 0;
      if (g->peak > threshold) g->open = true;
      else if (g->quiet > HOLD * rate) g->open = false;
    }
    g->way = g->open ? fmin(1, g->way + up) : fmax(0, g->way - down);
    gain[i] = (float)(g->way * g->way * (3 - 2 * g->way));
  }
  return true;
}
