/* The loop over the steps of a block in one mode, for frame.tmpl.h, which defines MODE and NAME; TAKE permutes a
 * vector of x. Whole vectors of x are
 * loaded while they end inside x; the last steps load and store by masks. */
#if MODE == QUADS
#define TAKE v_permute_quads
#else
#define TAKE v_permute
#endif
#define MASKED 0
#define NV NVM
#define TILE NAME(_main)
#include "cpu/tmpl/frame/frame_tile.tmpl.h"
#define MASKED 0
#define NV (NVM / 2)
#define TILE NAME(_half)
#include "cpu/tmpl/frame/frame_tile.tmpl.h"
#define MASKED 0
#define NV 1
#define TILE NAME(_one)
#include "cpu/tmpl/frame/frame_tile.tmpl.h"
#define MASKED 1
#define NV 1
#define TILE NAME(_last)
#include "cpu/tmpl/frame/frame_tile.tmpl.h"
#if MODE != PLAIN
#define IN 2
#include "cpu/tmpl/frame/frame_point.tmpl.h"
#define IN 3
#include "cpu/tmpl/frame/frame_point.tmpl.h"
#define IN 4
#include "cpu/tmpl/frame/frame_point.tmpl.h"
#define IN 6
#include "cpu/tmpl/frame/frame_point.tmpl.h"
#define IN 8
#include "cpu/tmpl/frame/frame_point.tmpl.h"
#if MODE == BROADCAST
#define IN 12
#include "cpu/tmpl/frame/frame_point.tmpl.h"
#define IN 16
#include "cpu/tmpl/frame/frame_point.tmpl.h"
#endif
#endif

#define CASE(in)                                                                                                       \
  case in: return FRAME_PASTE(NAME(_point), in)(a, q, last);

/* One tap: as many steps as fit, up to the one at frame `last`, where the inputs are a number that has a loop of its
 * own. Returns the frame to go on from. */
static int64_t NAME(_points)(const hk_frame_args *a, const hk_frame_tile *q, int64_t last) {
  switch (q->inputs) {
#if MODE != PLAIN
    CASE(2)
    CASE(3)
    CASE(4)
#if MODE == BROADCAST || HK_VREGS >= 32
    CASE(6)
    CASE(8)
#endif
#if MODE == BROADCAST
    CASE(12)
#endif
#if MODE == BROADCAST && HK_VREGS >= 32
    CASE(16)
#endif
#endif
  default: (void)a, (void)last; return 0;
  }
}

static void NAME(_run)(const hk_frame_args *a, const hk_frame_tile *q) {
  const int64_t frames = q->frames, n = a->n;
  int64_t last = n - frames, t = 0; /* the last step that is whole */
#if MODE != BROADCAST
  const int64_t x_frame = a->x_frame;
  const int64_t room = (n - 1) * x_frame + q->reads - HK_VW; /* where the last vector of x may begin */
  if (last * x_frame > room) last = room < 0 ? -1 : room / x_frame;
#endif
  if (a->taps == 1) t = NAME(_points)(a, q, last);
  const int64_t x_step = frames * a->x_frame, y_step = frames * a->y_frame;
  if (x_step == HK_VW && y_step == HK_VW) { /* vectors side by side take constant addresses */
    for (; t + (NVM - 1) * frames <= last; t += NVM * frames) NAME(_main)(a, q, t, frames, HK_VW, HK_VW);
  }
  for (; t + (NVM - 1) * frames <= last; t += NVM * frames) NAME(_main)(a, q, t, frames, x_step, y_step);
  /* What is left goes by tiles that end with the last whole step, over steps that were done: the bits are the same. */
  if (n - t > NVM / 2 * frames && last >= (NVM - 1) * frames && last + frames > t) {
    NAME(_main)(a, q, last - (NVM - 1) * frames, frames, x_step, y_step);
    t = last + frames;
  }
  while (t < n && last >= (NVM / 2 - 1) * frames && last + frames > t) {
    const int64_t end = last - (NVM / 2 - 1) * frames, from = t < end ? t : end;
    NAME(_half)(a, q, from, frames, x_step, y_step);
    t = from + NVM / 2 * frames;
  }
  for (; t <= last; t += frames) NAME(_one)(a, q, t, frames, x_step, y_step);
  for (; t < n; t += frames) NAME(_last)(a, q, t, n - t < frames ? n - t : frames, x_step, y_step);
}
#undef CASE
#undef TAKE
#undef MODE
#undef NAME
