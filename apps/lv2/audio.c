/* run: plays a block up to each message of the host, so that a change that the host's worker does at once is heard from
 * its frame on. Any number of frames; any input may share its memory with any output. */
#include <lv2/atom/util.h>
#include <string.h>

#include "plugin.h"

enum { PIECE = 64 };

/* NaN becomes the least. */
static double limited(const float *port, double low, double high) {
  const double value = (double)*port;
  return value > high ? high : value > low ? value : low;
}

/* The limits and the meaning of hankel.ttl. */
static hk_rig_controls controls(const plugin *p) {
  const double gate = limited(p->control[PORT_GATE], -100, -10);
  return (hk_rig_controls){.size = sizeof(hk_rig_controls),
                           .input_db = limited(p->control[PORT_INPUT], -40, 40),
                           .output_db = limited(p->control[PORT_OUTPUT], -40, 40),
                           .gate_db = gate > -100 ? gate : 0,
                           .bypass = !(*p->control[PORT_ENABLED] > 0),
                           .resize = 1,
                           .model_size = limited(p->control[PORT_SIZE], 0, 1),
                           .level = (hk_rig_level)(int)(limited(p->control[PORT_LEVEL], 0, 2) + 0.5),
                           .interface_dbu = limited(p->control[PORT_INTERFACE], -20, 40)};
}

static void process(plugin *p, const hk_rig_controls *c, const float *const *x, uint32_t n, float *const *y) {
  if (!hk_rig_process(p->rig, c, x, n, y)) return;
  for (int32_t i = 0; i < p->channels; i++) memset(y[i], 0, n * sizeof(float));
}

/* A rig may write over the input of the same channel only; the other's is copied where a host crosses them. */
static void play(plugin *p, const hk_rig_controls *c, uint32_t from, uint32_t to) {
  const bool crossed = p->channels == 2 && (p->in[0] == p->out[1] || p->in[1] == p->out[0]);
  float copy[2][PIECE];
  for (uint32_t at = from, n = to - from; at < to; at += n) {
    if (crossed && n > PIECE) n = PIECE;
    if (n > to - at) n = to - at;
    const float *x[2];
    float *y[2];
    for (int32_t i = 0; i < p->channels; i++) {
      if (crossed) memcpy(copy[i], p->in[i] + at, n * sizeof(float));
      x[i] = crossed ? copy[i] : p->in[i] + at;
      y[i] = p->out[i] + at;
    }
    process(p, c, x, n, y);
  }
}

void plugin_run(LV2_Handle instance, uint32_t frames) {
  plugin *p = instance;
  const hk_rig_controls c = controls(p);
  uint32_t at = 0;
  plugin_receive(p);
  LV2_ATOM_SEQUENCE_FOREACH(p->messages, event) {
    const int64_t time = event->time.frames;
    const uint32_t to = time < (int64_t)at ? at : time > (int64_t)frames ? frames : (uint32_t)time;
    play(p, &c, at, to);
    at = to;
    plugin_handle(p, &event->body);
    plugin_receive(p);
  }
  play(p, &c, at, frames);
  plugin_retire(p);
  plugin_send(p);
  plugin_notify(p);
  *p->latency = (float)hk_rig_latency(p->rig);
}
