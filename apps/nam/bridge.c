/* The bridge between the host's rate and a model's. With H:M the ratio of the rates in lowest terms, half_in and
 * half_out the filters' half lengths: of N host frames the model gets all frames k with floor(k*H/M) + half_in < N, and
 * host frame j leaves as the signal at (j - latency)*M/H of the model's frames. The latency is the smallest at which
 * that position never needs a frame that the model has not made, so n frames in are always n frames out. It is a whole
 * number of host frames and does not depend on the blocks. */
#include <math.h>
#include <string.h>

#include "bridge.h"

static int64_t divide_up(int64_t a, int64_t b) { return a >= 0 ? (a + b - 1) / b : -(-a / b); }
static int64_t divide_down(int64_t a, int64_t b) { return -divide_up(-a, b); }

/* The model's frames that n frames of the host are enough for; up:down is M:H. */
static int64_t frames_made(const rig_bridge *b, int64_t n) {
  return divide_up((n - b->in.half) * b->in.up, b->in.down);
}

static bool in_time(const rig_bridge *b, int64_t latency) {
  for (int64_t n = 1; n <= b->in.down; n++) {
    if (divide_down((n - 1 - latency) * b->in.up, b->in.down) + b->out.half >= frames_made(b, n)) return false;
  }
  return true;
}

static bool whole(double rate) { return rate == (double)(int64_t)rate; }

bool rig_bridge_plan(rig_bridge *b, double host, double model) {
  memset(b, 0, sizeof *b);
  if (host == model) return true;
  if (!whole(host) || !whole(model))
    return nam_fail("the host has %.17g Hz, the model %.17g Hz: only whole rates can be converted", host, model);
  b->in = sinc_plan((int64_t)host, (int64_t)model, SINC_LIVE);
  b->out = sinc_plan((int64_t)model, (int64_t)host, SINC_LIVE);
  if (rig_bridge_taps(b) > SINC_MAX_TAPS)
    return nam_fail("converting %g Hz to %g Hz and back needs %lld filter taps; at most %d are supported", host, model,
                    (long long)rig_bridge_taps(b), SINC_MAX_TAPS);
  const int64_t up = b->in.up, down = b->in.down;
  b->latency = b->in.half - 1 + divide_up((b->out.half + 1) * down, up);
  while (in_time(b, b->latency - 1)) b->latency--;
  b->most = divide_up(BLOCK * up, down) + 1;
  b->ahead = divide_up((b->latency - b->in.half) * up, down) + b->out.half + 2;
  return true;
}

int64_t rig_bridge_taps(const rig_bridge *b) { return sinc_taps(&b->in) + sinc_taps(&b->out); }

void rig_bridge_fill(rig_bridge *b, float *taps) {
  b->in.taps = taps;
  b->out.taps = taps + sinc_taps(&b->in);
  sinc_fill(&b->in);
  sinc_fill(&b->out);
}

static int64_t room_in(const rig_bridge *b) { return 2 * b->in.half + BLOCK; }
static int64_t room_out(const rig_bridge *b) { return b->ahead + b->most; }

int64_t rig_crossing_floats(const rig_bridge *b) { return room_in(b) + room_out(b) + b->most; }

void rig_crossing_place(const rig_bridge *b, rig_crossing *c, float *memory) {
  c->in.frame = memory;
  c->out.frame = memory + room_in(b);
  c->model = c->out.frame + room_out(b);
}

static void rewind_reel(rig_reel *r, int64_t first, int64_t end, int64_t phase) {
  r->filled = end > first ? end - first : 0;
  r->at = end > first ? 0 : first - end;
  r->phase = phase;
  memset(r->frame, 0, (size_t)r->filled * sizeof *r->frame);
}

void rig_crossing_reset(const rig_bridge *b, rig_crossing *c, int64_t now) {
  const int64_t up = b->in.up, down = b->in.down, made = frames_made(b, now), host = divide_down(made * down, up),
                model = divide_down((now - b->latency) * up, down);
  rewind_reel(&c->in, host - b->in.half + 1, now, made * down - host * up);
  rewind_reel(&c->out, model - b->out.half + 1, made, (now - b->latency) * up - model * down);
}

/* Eight sums, so that a compiler may use vectors; n is a multiple of 8. */
static float dot(const float *f, const float *x, int64_t n) {
  float sum[8] = {0};
  for (int64_t i = 0; i < n; i += 8)
    for (int64_t j = 0; j < 8; j++) sum[j] += f[i + j] * x[i + j];
  return ((sum[0] + sum[4]) + (sum[2] + sum[6])) + ((sum[1] + sum[5]) + (sum[3] + sum[7]));
}

/* Below -400 dB a frame counts as silence: its products with the taps would be denormals, which are slow. */
static void append(rig_reel *r, const float *x, int64_t n) {
  float *to = r->frame + r->filled;
  for (int64_t i = 0; i < n; i++) to[i] = fabsf(x[i]) < 1e-20f ? 0.0f : x[i];
  r->filled += n;
}

/* Makes as many frames as the reel has the signal for, at most `most`, and forgets what no later one needs. */
static int64_t convert(const sinc_bank *b, rig_reel *r, int64_t most, float *y) {
  const int64_t length = 2 * b->half, step = b->down / b->up, rest = b->down % b->up;
  int64_t made = 0;
  for (; made < most && r->at + length <= r->filled; made++) {
    y[made] = dot(b->taps + r->phase * length, r->frame + r->at, length);
    r->at += step;
    r->phase += rest;
    if (r->phase < b->up) continue;
    r->phase -= b->up;
    r->at++;
  }
  const int64_t done = r->at < r->filled ? r->at : r->filled;
  memmove(r->frame, r->frame + done, (size_t)(r->filled - done) * sizeof *r->frame);
  r->filled -= done;
  r->at -= done;
  return made;
}

hk_status rig_crossing_play(const rig_bridge *b, rig_crossing *c, const hk_nam *player, int32_t size, int64_t n,
                            float *x) {
  append(&c->in, x, n);
  const int64_t made = convert(&b->in, &c->in, b->most, c->model);
  const hk_status e = nam_voice_play(player, size, c->model, made, c->model);
  append(&c->out, c->model, made);
  convert(&b->out, &c->out, n, x);
  return e;
}
