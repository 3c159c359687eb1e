/* A worker thread loads and frees parts while the audio thread plays, hands over and takes back; the two meet only in a
 * mailbox of atomics, as in a plugin. The thread sanitizer watches; the output stays finite. */
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>

#include "support/rig.h"

enum { FRAMES = 256, ROUNDS = 40 };
static hk_rig *rig;
static _Atomic(hk_rig_part *) fresh, used;
static atomic_bool done;
static atomic_int failures; /* CHECK counts for one thread */

static void *work(void *unused) {
  static const char *const models[] = {RIG_MODELS "wavenet.nam", RIG_MODELS "slimmable.nam", RIG_MODELS "lstm.nam"};
  static float h[2000];
  for (int i = 0; i < ROUNDS; i++) {
    h[i] = 0.1f;
    hk_rig_part *p = NULL;
    if (i % 2 ? hk_rig_load_cabinet(&p, rig, h, 1000, 2, 44100) : hk_rig_load_amp(&p, rig, models[i % 3], NULL))
      atomic_fetch_add(&failures, 1);
    while (atomic_load(&fresh)) {}
    atomic_store(&fresh, p);
    hk_rig_part_free(atomic_exchange(&used, NULL));
  }
  while (atomic_load(&fresh)) {}
  atomic_store(&done, 1);
  return unused;
}

int main(void) {
  float x[2][FRAMES], y[2][FRAMES];
  const float *in[2] = {x[0], x[1]};
  float *out[2] = {y[0], y[1]};
  uint64_t seed = 8;
  pthread_t worker;
  rig = rig_of(44100, 2);
  CHECK(!pthread_create(&worker, NULL, work, NULL), "no thread");
  hk_rig_part *waiting = NULL;
  long played = 0;
  for (; !atomic_load(&done); played++) {
    for (int c = 0; c < 2; c++)
      for (int i = 0; i < FRAMES; i++) x[c][i] = 0.2f * hk_test_float(&seed);
    hk_rig_part *p = atomic_exchange(&fresh, NULL);
    hk_rig_part_facts f = {.size = sizeof f};
    if (p && !hk_rig_part_info(p, &f)) hk_rig_set(rig, f.slot, p);
    hk_rig_controls c = {
        .size = sizeof c, .input_db = played % 7, .resize = 1, .model_size = (double)(played % 50) / 50};
    CHECK(!hk_rig_process(rig, &c, in, 1 + played % FRAMES, out), "%s", hk_nam_last_error());
    CHECK(isfinite(y[0][0]) && isfinite(y[1][0]), "block %ld is not finite", played);
    if (!waiting) waiting = hk_rig_retired(rig);
    if (waiting && !atomic_load(&used)) {
      atomic_store(&used, waiting);
      waiting = NULL;
    }
  }
  pthread_join(worker, NULL);
  CHECK(!atomic_load(&failures), "%d parts were not made", atomic_load(&failures));
  hk_rig_part_free(atomic_load(&used));
  hk_rig_part_free(waiting);
  hk_rig_free(rig);
  return hk_test_end();
}
