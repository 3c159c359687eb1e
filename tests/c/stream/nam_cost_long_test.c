/* What a block costs while the rig fades: never more than 1.15 times what both sides cost when each plays alone. Every
 * scenario is played several times and each block counts with its fastest run, which leaves the rig's own cost and not
 * the noise of other programs; on a busy machine it takes more runs. Needs the models of ../shared/nam. */
#include <math.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "hankel_nam.h"
#include "support/check.h"

enum { BLOCK = 64, BEFORE = 120, AFTER = 120, MOST = 1200, RUNS = 9, MOST_RUNS = 60 };
/* In CI, beside programs that nobody knows, only what shows a reset or a page fault on the audio thread (1.74). */
static double allowed(void) { return getenv("CI") ? 1.5 : 1.15; }

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

typedef struct side { /* path NULL: nothing in the slot */
  const char *path;
  int frames; /* above 0: a cabinet */
  double size;
} side;

static hk_rig_part *load(const hk_rig *r, side s) {
  hk_rig_part *p = NULL;
  if (s.path) CHECK(!hk_rig_load_amp(&p, r, s.path, NULL), "%s", hk_nam_last_error());
  if (s.frames) {
    float *h = malloc((size_t)s.frames * sizeof *h);
    for (int i = 0; i < s.frames; i++) h[i] = expf(-(float)i / 300.0f) * (float)((i * 37 % 101 - 50) * 0.001);
    CHECK(!hk_rig_load_cabinet(&p, r, h, s.frames, 1, 48000), "%s", hk_nam_last_error());
    free(h);
  }
  return p;
}

static double cost[MOST];
static int blocks, fade_blocks;

static int by_size(const void *a, const void *b) { return *(const double *)a < *(const double *)b ? -1 : 1; }
static double median(const double *from, int n) {
  double v[MOST];
  memcpy(v, from, (size_t)n * sizeof *v);
  qsort(v, (size_t)n, sizeof *v, by_size);
  return v[n / 2];
}

/* One run; the part of the new side is made in the middle of the play, as a worker would make it. */
static void run(double rate, side a, side b) {
  const hk_rig_options o = {.size = sizeof o, .sample_rate = rate, .channels = 1};
  const hk_rig_slot slot = b.frames ? HK_RIG_CABINET : HK_RIG_AMP;
  hk_rig *r = NULL;
  CHECK(!hk_rig_create(&r, &o), "%s", hk_nam_last_error());
  hk_rig_set(r, slot, load(r, a));
  hk_rig_controls c = {.size = sizeof c, .resize = 1, .model_size = a.size};
  float x[BLOCK], y[BLOCK];
  const float *in[1] = {x};
  float *out[1] = {y};
  const int same = a.path && b.path && !strcmp(a.path, b.path);
  for (int i = 0; i < blocks; i++) {
    for (int k = 0; k < BLOCK; k++) x[k] = 0.2f * sinf(0.03f * (float)(i * BLOCK + k));
    if (i == BEFORE) {
      if (!same) hk_rig_set(r, slot, load(r, b));
      c.model_size = b.size;
    }
    const double start = now();
    hk_rig_process(r, &c, in, BLOCK, out);
    const double took = now() - start;
    if (took < cost[i]) cost[i] = took;
    hk_rig_part_free(hk_rig_retired(r));
  }
  hk_rig_free(r);
}

static void test(const char *what, double rate, side a, side b, int fade_frames) {
  fade_blocks = (int)((2048 + fade_frames + 0.02 * rate) / BLOCK) + 2;
  blocks = BEFORE + fade_blocks + AFTER;
  if (blocks > MOST) exit(1);
  for (int i = 0; i < blocks; i++) cost[i] = 1e18;
  double worst = 0, sum = 0, med = 0;
  int at = 0, runs = 0;
  while (runs < RUNS || (worst > allowed() * sum && runs < MOST_RUNS)) {
    run(rate, a, b);
    runs++;
    sum = median(cost, BEFORE) + median(cost + BEFORE + fade_blocks, AFTER);
    med = median(cost + BEFORE, fade_blocks);
    worst = 0;
    for (int i = 0; i < blocks; i++)
      if (cost[i] > worst) worst = cost[i], at = i;
  }
  printf("%-40s alone %.2f + %.2f us, fading %.2f median, %.2f worst (block %d of %d): %.3f of the sum, %d runs\n",
         what, median(cost, BEFORE) / 1e3, median(cost + BEFORE + fade_blocks, AFTER) / 1e3, med / 1e3, worst / 1e3,
         at - BEFORE, fade_blocks, worst / sum, runs);
  CHECK(worst <= allowed() * sum, "%s: block %d costs %.3f of the sum", what, at - BEFORE, worst / sum);
}

#define A1 "../shared/nam/wavenet_a1_standard.nam"
#define A2 "../shared/nam/A2.nam"
#define NANO "../shared/nam/wavenet.nam"
#define LSTM "../shared/nam/lstm.nam"

int main(void) {
#ifdef HK_SANITIZED
  return printf("skipped: sanitizers cost what they cost\n"), 77;
#endif
  if (access(A1, R_OK)) return printf("skipped: no ../shared/nam\n"), 77;
  const side a1 = {A1, 0, 1}, a2 = {A2, 0, 1}, lite = {A2, 0, 0}, nano = {NANO, 0, 1}, lstm = {LSTM, 0, 1};
  test("A1 to A2", 48000, a1, a2, 6347);
  test("A2 to A1", 48000, a2, a1, 4093);
  test("A2 to A2 lite (size)", 48000, a2, lite, 6347);
  test("A2 lite to A2 (size)", 48000, lite, a2, 6347);
  test("nano to LSTM", 48000, nano, lstm, 4800);
  test("LSTM to nano", 48000, lstm, nano, 4093);
  test("A1 to A2 at 44.1 kHz", 44100, a1, a2, 6347);
  test("A2 to lite at 96 kHz (size)", 96000, a2, lite, 14000);
  test("cabinets", 48000, (side){NULL, 2048, 1}, (side){NULL, 1500, 1}, 1500);
  return hk_test_end();
}
