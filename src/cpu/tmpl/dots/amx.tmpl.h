/* dots by AMX tiles. Sums are held in 2 x 2 tiles of 16 pixels x 16 output channels, in f32 or s32; a step multiplies
 * 16 groups of channels, or as many fewer as make all steps of a segment alike (hk_dots_step), of 2 x 16 pixels by
 * those of 2 x 16 output channels. Tiles of x are loaded in place where the pixels of a tile are at one distance;
 * otherwise, and in the step that reaches beyond the last channel of a pixel, the channels are copied to the stack
 * first, with zeros behind them. Pixels that do not fill two tiles are split evenly. Tiles 0 to 3 hold sums, 4 and 5 x,
 * 6 and 7 f. The tile state is released before the kernel returns. Define HK_NAME and T_HALVES (x and f are bf16),
 * include a vocabulary of tiles (T_LOAD, t_even, ...), then this. */
#include <string.h>

#include "cpu/ukernel.h"

enum { T_ROWS = 16, T_BYTES = 64 };
typedef enum products { BF16, S8S8, U8S8 } products;

typedef struct config {
  uint8_t palette, start_row, reserved[14];
  uint16_t bytes[16]; /* of a row of each tile */
  uint8_t rows[16];
} config;

static void configure(int64_t rows0, int64_t rows1, int64_t groups) {
  const int64_t rows[8] = {rows0, rows0, rows1, rows1, rows0, rows1, groups, groups};
  _Alignas(64) config c = {.palette = 1};
  for (int t = 0; t < 8; t++) {
    c.rows[t] = (uint8_t)rows[t];
    c.bytes[t] = (uint16_t)(rows[t] == 0 ? 0 : t == 4 || t == 5 ? 4 * groups : T_BYTES);
  }
  t_configure(&c);
}

/* What all tiles of a call share. */
typedef struct call {
  const hk_dots_args *r;
  int64_t bytes, step_bytes, steps; /* of a row of x; of a step; steps of a segment */
  int64_t f_step, sums_step;        /* bytes from row to row */
} call;

/* One tile of x under one segment. */
typedef struct source {
  const char *const *rows;
  int64_t count, step; /* step: bytes from pixel to pixel in place; 0: none */
} source;

static inline source source_of(const char *const *rows, int64_t count) {
  const int64_t step = count > 1 ? rows[1] - rows[0] : T_BYTES;
  return (source){rows, count, count == 1 || t_even(rows, count, step) ? step : 0};
}

static inline bool is_padding(const hk_dots_args *r, const source *s) {
  return r->zeros && s->rows[0] == r->zeros && t_even(s->rows, s->count, 0);
}

/* Bytes from..from+T_BYTES-1 of every row, zeros beyond its end. */
static void copy_rows(const source *s, int64_t from, int64_t left, char *to) {
  if (left >= T_BYTES) {
    for (int64_t m = 0; m < s->count; m++) memcpy(to + m * T_BYTES, s->rows[m] + from, T_BYTES);
  } else {
    memset(to, 0, (size_t)(s->count * T_BYTES));
    for (int64_t m = 0; m < s->count; m++) memcpy(to + m * T_BYTES, s->rows[m] + from, (size_t)left);
  }
  t_fence();
}

/* Where step k of a tile of x is, and how far its rows lie apart. */
static inline const char *place(const call *c, const source *s, int64_t k, char *room, int64_t *step) {
  const int64_t from = k * c->step_bytes, left = c->bytes - from;
  *step = s->step;
  if (s->step && left >= c->step_bytes) return s->rows[0] + from;
  copy_rows(s, from, left, room);
  *step = T_BYTES;
  return room;
}

#define DOT(acc, a, b)                                                                                                 \
  do {                                                                                                                 \
    if (kind == BF16) T_DOT_BF16(acc, a, b);                                                                           \
    else if (kind == S8S8) T_DOT_S8S8(acc, a, b);                                                                      \
    else T_DOT_U8S8(acc, a, b);                                                                                        \
  } while (0)

/* Pixels of two tiles: rows0 from m on, then rows1. */
typedef struct span {
  int64_t m, rows0, rows1;
} span;

/* The pixels of two tiles (one: !low) x one or two vectors (one: !right) of output channels from vector v on. */
static inline __attribute__((always_inline)) void tile(const call *c, const span *at, int64_t v, products kind,
                                                       bool low, bool right) {
  const hk_dots_args *r = c->r;
  const int64_t m = at->m, rows0 = at->rows0, rows1 = at->rows1;
  char *sums = (char *)r->sums + m * c->sums_step + v * T_BYTES, *below = sums + rows0 * c->sums_step;
  _Alignas(64) char room[2][T_ROWS * T_BYTES];
  if (r->resume) {
    t_fence();
    T_LOAD(0, sums, c->sums_step);
    if (right) T_LOAD(1, sums + T_BYTES, c->sums_step);
    if (low) T_LOAD(2, below, c->sums_step);
    if (low && right) T_LOAD(3, below + T_BYTES, c->sums_step);
  } else {
    T_ZERO(0);
    if (right) T_ZERO(1);
    if (low) T_ZERO(2);
    if (low && right) T_ZERO(3);
  }
  for (int64_t t = 0; t < r->segments; t++) {
    const char *const *rows = r->rows + t * r->row_step + m;
    const source top = source_of(rows, rows0), bottom = low ? source_of(rows + rows0, rows1) : top;
    if (is_padding(r, &top) && is_padding(r, &bottom)) continue;
    const char *f = (const char *)r->f + r->seg[t] * c->f_step + v * T_BYTES;
    for (int64_t k = 0; k < c->steps; k++, f += c->step_bytes / 4 * c->f_step) {
      int64_t step;
      const char *x = place(c, &top, k, room[0], &step);
      T_LOAD(6, f, c->f_step);
      T_LOAD(4, x, step);
      DOT(0, 4, 6);
      if (right) {
        T_LOAD(7, f + T_BYTES, c->f_step);
        DOT(1, 4, 7);
      }
      if (!low) continue;
      x = place(c, &bottom, k, room[1], &step);
      T_LOAD(5, x, step);
      DOT(2, 5, 6);
      if (right) DOT(3, 5, 7);
    }
  }
  T_STORE(0, sums, c->sums_step);
  if (right) T_STORE(1, sums + T_BYTES, c->sums_step);
  if (low) T_STORE(2, below, c->sums_step);
  if (low && right) T_STORE(3, below + T_BYTES, c->sums_step);
}

/* All rows of a pair of vectors, so that their f stays in L1. */
static inline __attribute__((always_inline)) void pair(const call *c, int64_t v, products kind, bool right) {
  const int64_t tiles = hk_ceil_div(c->r->count, T_ROWS);
  int64_t left = c->r->count, was0 = 0, was1 = 0;
  span at = {0};
  for (int64_t n = tiles; n > 0; n -= 2) {
    at.rows0 = hk_ceil_div(left, n), at.rows1 = n > 1 ? hk_ceil_div(left - at.rows0, n - 1) : 0;
    if (at.rows0 != was0 || at.rows1 != was1) configure(at.rows0, at.rows1, c->step_bytes / 4);
    was0 = at.rows0, was1 = at.rows1;
    if (at.rows1) tile(c, &at, v, kind, true, right);
    else tile(c, &at, v, kind, false, right);
    at.m += at.rows0 + at.rows1;
    left -= at.rows0 + at.rows1;
  }
}

static inline __attribute__((always_inline)) void run(const call *c, products kind) {
  int64_t v = 0;
  for (; v + 2 <= c->r->vectors; v += 2) pair(c, v, kind, true);
  if (v < c->r->vectors) pair(c, v, kind, false);
}

void HK_NAME(const void *args) {
  const hk_dots_args *r = args;
  call c = {.r = r, .bytes = r->channels * (T_HALVES ? 2 : 1), .f_step = r->vectors * T_BYTES};
  c.step_bytes = 4 * hk_dots_step(hk_ceil_div(c.bytes, 4));
  c.steps = hk_ceil_div(c.bytes, c.step_bytes);
  c.sums_step = c.f_step;
  if (r->count <= 0) return;
#if T_HALVES
  run(&c, BF16);
#else
  if (r->x_signed) run(&c, S8S8);
  else run(&c, U8S8);
#endif
  t_release();
}
