/* What passes between the main and the audio thread of live: two rings, each with one writer and one reader. The audio
 * thread allocates, locks and calls nothing. */
#include <string.h>
#include <time.h>

#include "live.h"

void live_order(live *l, order o) {
  const struct timespec wait = {0, 5000000};
  const unsigned at = atomic_load_explicit(&l->ordered, memory_order_relaxed);
  while (at - atomic_load_explicit(&l->obeyed, memory_order_acquire) == ORDERS) {
    if (atomic_load(&l->ended)) {
      hk_rig_part_free(o.part);
      return;
    }
    live_collect(l);
    nanosleep(&wait, NULL);
  }
  l->orders[at % ORDERS] = o;
  atomic_store_explicit(&l->ordered, at + 1, memory_order_release);
}

void live_collect(live *l) {
  const unsigned written = atomic_load_explicit(&l->spent_written, memory_order_acquire);
  unsigned at = atomic_load_explicit(&l->spent_read, memory_order_relaxed);
  for (; at != written; at++) hk_rig_part_free(l->spent[at % ORDERS]);
  atomic_store_explicit(&l->spent_read, at, memory_order_release);
}

static void obey(live *l) {
  unsigned at = atomic_load_explicit(&l->obeyed, memory_order_relaxed);
  const unsigned ordered = atomic_load_explicit(&l->ordered, memory_order_acquire);
  for (; at != ordered; at++) {
    const order *o = &l->orders[at % ORDERS];
    if (o->slot < 0) l->playing = o->controls;
    else hk_rig_set(l->rig, (hk_rig_slot)o->slot, o->part);
  }
  atomic_store_explicit(&l->obeyed, at, memory_order_release);
}

/* Parts that find no room stay in the rig. */
static void give_back(live *l) {
  unsigned at = atomic_load_explicit(&l->spent_written, memory_order_relaxed);
  const unsigned read = atomic_load_explicit(&l->spent_read, memory_order_acquire);
  for (hk_rig_part *part; at - read < ORDERS && (part = hk_rig_retired(l->rig)); at++) l->spent[at % ORDERS] = part;
  atomic_store_explicit(&l->spent_written, at, memory_order_release);
}

int live_process(uint32_t frames, void *of) {
  live *l = of;
  const float *x[LIVE_CHANNELS];
  float *y[LIVE_CHANNELS];
  for (int32_t c = 0; c < l->channels; c++) {
    x[c] = l->jack.port_get_buffer(l->in[c], frames);
    y[c] = l->jack.port_get_buffer(l->out[c], frames);
  }
  obey(l);
  if (hk_rig_process(l->rig, &l->playing, x, frames, y)) {
    for (int32_t c = 0; c < l->channels; c++) memset(y[c], 0, frames * sizeof(float));
  }
  give_back(l);
  atomic_store_explicit(&l->latency, (unsigned)hk_rig_latency(l->rig), memory_order_relaxed);
  return 0;
}
