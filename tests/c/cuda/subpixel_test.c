/* The rewrite subpixel without a GPU: for random problems that it takes, the convolution by its filter, stored by its
 * geometry and fold, is the problem's, with integers exactly. */
#include <stdio.h>
#include <stdlib.h>

#include "plan/rewrite/polyphase.h"
#include "support/check.h"

extern const hk_rewrite hk_rewrite_subpixel;
enum { ROOM = 1 << 16, WANTED = 300 };
static float x[ROOM], f[ROOM], made[ROOM], y[ROOM];
static uint64_t seed = 5;

static int pick(int lo, int hi) { return lo + (hk_test_integer(&seed, 1 << 20) + (1 << 20)) % (hi - lo + 1); }

/* Of dimensions 1 and 2; filter: at f[0]. */
static float sum(const hk_geom *g, const float *filter, int64_t n, int64_t k, int64_t p, int64_t q) {
  double all = 0;
  for (int64_t tap = 0; tap < g->taps; tap++) {
    const int64_t r = tap / g->win[2], s = tap % g->win[2];
    const int64_t i = hk_geom_source(g, 1, p, r), j = hk_geom_source(g, 2, q, s);
    if (i < 0 || j < 0 || i >= g->in_span[1] || j >= g->in_span[2] || i % g->in_dil[1] || j % g->in_dil[2]) continue;
    const float *from = x + n * g->x.outer + i / g->in_dil[1] * g->x.at[1] + j / g->in_dil[2] * g->x.at[2];
    const float *by = filter + k * g->f.outer + r * g->f.at[1] + s * g->f.at[2];
    for (int64_t c = 0; c < g->c; c++) all += (double)from[c * g->x.channel] * by[c * g->f.channel];
  }
  return (float)all;
}

/* Where channel k of output p, q lies. */
static int64_t place(const hk_geom *g, int64_t n, int64_t k, int64_t p, int64_t q) {
  const int64_t channel = g->fold ? k / g->fold * g->fold_step + k % g->fold : k * g->y.channel;
  return n * g->y.outer + p * g->y.at[1] + q * g->y.at[2] + channel;
}

static int64_t each_output(const hk_geom *g, const float *filter, bool store) {
  int64_t wrong = 0;
  for (int64_t n = 0; n < g->n; n++)
    for (int64_t k = 0; k < g->k; k++)
      for (int64_t i = 0; i < g->out[1] * g->out[2]; i++) {
        const int64_t p = i / g->out[2], q = i % g->out[2], at = place(g, n, k, p, q);
        const float v = sum(g, filter, n, k, p, q);
        if (store) y[at] = v;
        else wrong += y[at] != v;
      }
  return wrong;
}

static bool problem(void) {
  char text[200], why[HK_REASON] = "";
  hk_problem p = {.size = sizeof p};
  hk_task t;
  const hk_options o = {.size = sizeof o, .device = HK_CPU};
  const hk_weights w = {.size = sizeof w, .f = f};
  snprintf(text, sizeof text, "2d_n%d_c%d_i%dx%d_k%d_w%dx%d_s%dx%d_p%d:%dx%d:%d_l%dx%d%s_f32_last", pick(1, 2),
           pick(1, 5), pick(1, 5), pick(1, 6), pick(1, 5), pick(1, 7), pick(1, 7), pick(1, 2), pick(1, 2), pick(0, 5),
           pick(0, 6), pick(0, 5), pick(0, 6), pick(1, 4), pick(1, 5), pick(0, 2) ? "" : "_flip");
  if (hk_problem_parse(&p, text) || hk_task_make(&t, &p, NULL, &o, &w)) return false;
  if (!hk_rewrite_subpixel.takes(&t, why)) return false;
  hk_task in = t;
  CHECK(hk_rewrite_subpixel.inner(&t, 0, &in) == 1 && hk_subpixel_elements(&t) <= ROOM, "%s", text);
  for (int i = 0; i < ROOM; i++) made[i] = 0, y[i] = -77;
  hk_subpixel_filter(&t, (const char *)(f + t.geom.f.offset), (char *)made);
  each_output(&in.geom, made, true);
  const int64_t wrong = each_output(&t.geom, f + t.geom.f.offset, false);
  CHECK(!wrong, "%s: %lld outputs are wrong", text, (long long)wrong);
  return true;
}

int main(void) {
  int done = 0;
  for (int i = 0; i < ROOM; i++) x[i] = (float)pick(-3, 3), f[i] = (float)pick(-2, 2);
  for (int i = 0; i < 100 * WANTED && done < WANTED; i++) done += problem();
  CHECK(done == WANTED, "%d problems", done);
  return hk_test_end();
}
