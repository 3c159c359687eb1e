/* Gains that move without a step. A glide is two one-pole filters in a row, of 5 ms each: value and slope are
 * continuous whenever and however often the target moves, and where the block ends does not matter. Within a millionth
 * of the target it is the target, so that a gain of 0 dB is 1 exactly. */
#include <math.h>

#include "rig.h"

static const double SECONDS = 0.005, NEAR = 1e-6;

double rig_gain(double db) { return pow(10.0, db / 20.0); }

void rig_glide_set(rig_glide *g, double value) { g->target = g->first = g->now = value; }

bool rig_glide_next(rig_glide *g, double rate, int64_t n, float *gain) {
  if (g->now == g->target && g->first == g->target) return false;
  const double pull = 1.0 - exp(-1.0 / (SECONDS * rate)), near = NEAR * fmax(1.0, g->target);
  for (int64_t i = 0; i < n; i++) {
    g->first += pull * (g->target - g->first);
    g->now += pull * (g->first - g->now);
    if (fabs(g->target - g->first) < near && fabs(g->target - g->now) < near) g->first = g->now = g->target;
    gain[i] = (float)g->now;
  }
  return true;
}

void rig_scale(hk_rig *rig, rig_glide *g, int64_t n, float *x) {
  const bool moves = rig_glide_next(g, rig->rate, n, rig->gain);
  const float now = (float)g->now;
  if (!moves && now == 1.0f) return;
  for (int32_t c = 0; c < rig->channels; c++) {
    float *row = x + c * BLOCK;
    if (moves)
      for (int64_t i = 0; i < n; i++) row[i] *= rig->gain[i];
    else
      for (int64_t i = 0; i < n; i++) row[i] *= now;
  }
}
