/* What the tests of the rig share: rigs, parts, models of a few weights in a file of their own. A failure to make one
 * ends the program. */
#ifndef HK_TEST_RIG_H
#define HK_TEST_RIG_H
#include <stdlib.h>
#include <unistd.h>

#include "hankel_nam.h"
#include "support/check.h"

#define RIG_MODELS "tests/fuzz/corpus/nam/"

static inline hk_rig *rig_of(double rate, int32_t channels) {
  const hk_rig_options o = {.size = sizeof o, .sample_rate = rate, .channels = channels};
  hk_rig *r = NULL;
  CHECK(!hk_rig_create(&r, &o), "%s", hk_nam_last_error());
  if (!r) exit(1);
  return r;
}

static inline hk_rig_part *rig_amp(const hk_rig *r, const char *path) {
  hk_rig_part *p = NULL;
  CHECK(!hk_rig_load_amp(&p, r, path, NULL), "%s: %s", path, hk_nam_last_error());
  if (!p) exit(1);
  return p;
}

static inline hk_rig_part *rig_cabinet(const hk_rig *r, const float *h, int64_t frames, int32_t channels, double rate) {
  hk_rig_part *p = NULL;
  CHECK(!hk_rig_load_cabinet(&p, r, h, frames, channels, rate), "%s", hk_nam_last_error());
  if (!p) exit(1);
  return p;
}

/* A Linear model of one weight at a sample rate, with whatever metadata: "{...}". */
static inline hk_rig_part *rig_wire(const hk_rig *r, double weight, int rate, const char *metadata) {
  char path[] = "/tmp/hankel_rig_XXXXXX";
  const int file = mkstemp(path);
  FILE *f = file < 0 ? NULL : fdopen(file, "w");
  if (!f) exit(1);
  fprintf(f,
          "{\"version\":\"0.5.4\",\"architecture\":\"Linear\",\"sample_rate\":%d,\"metadata\":%s,"
          "\"config\":{\"receptive_field\":1,\"bias\":false},\"weights\":[%g]}",
          rate, metadata, weight);
  fclose(f);
  hk_rig_part *p = rig_amp(r, path);
  unlink(path);
  return p;
}

static inline void rig_drain(hk_rig *r) {
  for (hk_rig_part *p; (p = hk_rig_retired(r));) hk_rig_part_free(p);
}

/* frames of channels x and y through r, in blocks of `block` frames, or, with 0, of random lengths. */
static inline void rig_play(hk_rig *r, const hk_rig_controls *c, float *const *x, int64_t frames, float *const *y,
                            int64_t block) {
  uint64_t seed = 5;
  for (int64_t at = 0; at < frames;) {
    int64_t n = block ? block : hk_test_between(&seed, 0, 700);
    if (n > frames - at) n = frames - at;
    const float *from[2] = {x[0] + at, x[1] ? x[1] + at : NULL};
    float *to[2] = {y[0] + at, y[1] ? y[1] + at : NULL};
    const hk_status e = hk_rig_process(r, c, from, n, to);
    if (e) CHECK(!e, "%s", hk_nam_last_error());
    at += n;
  }
}
#endif
