/* Parts on their way between the threads. To the audio thread: one mailbox per slot, exchanged atomically; a parcel
 * that was not taken is replaced and freed by the one who replaces it. From the audio thread: a ring with one writer
 * and one reader; where it is full, parts stay in the rig or in the mailbox until there is room. */
#include <stdio.h>
#include <stdlib.h>

#include "plugin.h"

static unsigned ring_room(plugin *p) {
  const unsigned read = atomic_load_explicit(&p->spent_read, memory_order_acquire);
  return SPENT - (atomic_load_explicit(&p->spent_written, memory_order_relaxed) - read);
}

static void ring_put(plugin *p, parcel *shell, hk_rig_part *part) {
  const unsigned at = atomic_load_explicit(&p->spent_written, memory_order_relaxed);
  p->spent[at % SPENT] = (spent){shell, part};
  atomic_store_explicit(&p->spent_written, at + 1, memory_order_release);
}

void plugin_receive(plugin *p) {
  for (int32_t s = 0; s < SLOTS && ring_room(p); s++) {
    slot *to = &p->slot[s];
    if (!atomic_load_explicit(&to->mail, memory_order_relaxed)) continue;
    parcel *mail = atomic_exchange_explicit(&to->mail, NULL, memory_order_acquire);
    if (!mail) continue;
    hk_rig_set(p->rig, (hk_rig_slot)s, mail->part);
    mail->part = NULL;
    if (to->current) ring_put(p, to->current, NULL);
    to->current = mail;
    to->tell = true;
  }
}

void plugin_retire(plugin *p) {
  while (ring_room(p)) {
    hk_rig_part *part = hk_rig_retired(p->rig);
    if (!part) return;
    ring_put(p, NULL, part);
  }
}

void plugin_discard(parcel *unheard) {
  if (unheard) hk_rig_part_free(unheard->part);
  free(unheard);
}

void plugin_collect(plugin *p) {
  const unsigned written = atomic_load_explicit(&p->spent_written, memory_order_acquire);
  unsigned at = atomic_load_explicit(&p->spent_read, memory_order_relaxed);
  for (; at != written; at++) {
    free(p->spent[at % SPENT].parcel);
    hk_rig_part_free(p->spent[at % SPENT].part);
    atomic_store_explicit(&p->spent_read, at + 1, memory_order_release);
  }
}

void plugin_deliver(plugin *p, hk_rig_slot s, parcel *new) {
  pthread_mutex_lock(&p->mutex);
  snprintf(p->slot[s].saved, MAX_PATH, "%s", new->path);
  parcel *old = atomic_exchange_explicit(&p->slot[s].mail, new, memory_order_acq_rel);
  pthread_mutex_unlock(&p->mutex);
  plugin_discard(old);
}
