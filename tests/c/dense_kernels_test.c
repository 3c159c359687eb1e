/* Every igemm, dot, pgemm, weave, turn and gather row of every ISA the host has, against loops written here: small integers, so that
 * results are exact; every number of vectors, rows and columns with their tails; all parts of the epilogue; buffers
 * between guard pages on both sides, outputs poisoned. Kernels broken on purpose must be caught by the same
 * comparison. */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cpu/ukernel.h"
#include "support/guard.h"

static uint32_t seed = 1;
static uint32_t draw(uint32_t below) {
  seed = seed * 1664525u + 1013904223u;
  return (uint32_t)(((uint64_t)seed * below) >> 32);
}
static float small(void) { return (float)((int)draw(7) - 3); }
static void fill(float *p, int64_t n) {
  for (int64_t i = 0; i < n; i++) p[i] = small();
}
static const float poison = -12345.0f;

/* what the epilogue makes of one sum */
static float finish(uint32_t flags, float v, float scale, float bias, float c, float beta, float lo, float hi) {
  if (flags & HK_IGEMM_AFFINE) v = v * scale + bias;
  if (flags & HK_IGEMM_BEFORE) v += beta * c;
  if (flags & HK_IGEMM_CLAMP) v = v < lo ? lo : v > hi ? hi : v;
  if (flags & HK_IGEMM_AFTER) v += beta * c;
  return v;
}

typedef struct shape {
  int64_t count, segments, channels, vectors, columns;
  uint32_t flags;
  int high;
} shape;

/* ---- igemm: rows at random places of one buffer, in any order */
static bool igemm_agrees(hk_kernel_fn fn, const shape *s, int64_t lanes, bool dot) {
  enum { MOST = 32 };
  const int64_t nr = s->vectors * lanes, row = s->channels, places = s->count * s->segments;
  guarded x = guarded_make((size_t)(places * row), s->high), f = guarded_make((size_t)(s->segments * row * nr), s->high);
  guarded y = guarded_make((size_t)(s->count * s->columns), s->high), c = guarded_make((size_t)(s->count * s->columns), s->high);
  guarded affine = guarded_make((size_t)(2 * nr), s->high), part = guarded_make((size_t)(s->count * nr), s->high);
  const float *rows[MOST * 4], *c_rows[MOST];
  float *y_rows[MOST];
  int64_t seg[4];
  fill(x.at, places * row), fill(f.at, s->segments * row * nr), fill(c.at, s->count * s->columns);
  fill(affine.at, 2 * nr), fill(part.at, s->count * nr);
  for (int64_t i = 0; i < places; i++) rows[i] = x.at + (places - 1 - i) * row;
  for (int64_t t = 0; t < s->segments; t++) seg[t] = (s->segments - 1 - t) * row;
  for (int64_t m = 0; m < s->count; m++) y_rows[m] = y.at + m * s->columns, c_rows[m] = c.at + m * s->columns;
  for (int64_t i = 0; i < s->count * s->columns; i++) y.at[i] = poison;
  float *want = malloc((size_t)(s->count * nr) * sizeof *want);
  for (int64_t m = 0; m < s->count; m++)
    for (int64_t j = 0; j < nr; j++) {
      float sum = s->flags & HK_IGEMM_RESUME ? part.at[m * nr + j] : 0;
      for (int64_t t = 0; t < s->segments; t++)
        for (int64_t i = 0; i < row; i++) sum += rows[t * s->count + m][i] * f.at[dot ? seg[t] * nr + j * row + i : (seg[t] + i) * nr + j];
      want[m * nr + j] = s->flags & HK_IGEMM_SUSPEND || j >= s->columns
                             ? sum : finish(s->flags, sum, affine.at[j], affine.at[nr + j], c_rows[m][j], 2, -9, 11);
    }
  int64_t x_seg[4]; /* the same rows without tables, every other time */
  for (int64_t t = 0; t < s->segments; t++) x_seg[t] = (places - 1 - t * s->count) * row;
  const hk_igemm_line line = {.x = x.at, .c = c.at, .y = y.at, .x_seg = x_seg, .x_step = -row, .y_step = s->columns, .c_step = s->columns};
  const bool even = (dot || !(s->flags & (HK_IGEMM_RESUME | HK_IGEMM_SUSPEND))) && draw(2);
  fn(&(hk_igemm_args){.line = even ? &line : NULL, .rows = even ? NULL : rows, .row_step = s->count, .count = s->count,
                      .segments = s->segments, .channels = row, .seg = seg, .f = f.at, .prefetch = draw(2), .vectors = s->vectors, .columns = s->columns,
                      .flags = s->flags, .beta = 2, .lo = -9, .hi = 11, .scale = affine.at, .bias = affine.at + nr,
                      .c = even ? NULL : c_rows, .y = even ? NULL : y_rows, .partial = part.at});
  bool ok = true;
  const bool raw = s->flags & HK_IGEMM_SUSPEND;
  for (int64_t m = 0; m < s->count; m++)
    for (int64_t j = 0; j < (raw ? nr : s->columns); j++)
      ok &= (raw ? part.at[m * nr + j] : y_rows[m][j]) == want[m * nr + j];
  for (int64_t i = 0; raw && i < s->count * s->columns; i++) ok &= y.at[i] == poison;
  free(want);
  guarded all[] = {x, f, y, c, affine, part};
  for (int i = 0; i < 6; i++) guarded_free(&all[i]);
  return ok;
}

/* ---- pgemm: weights packed by tiles as hk_tile_rows cuts them; two strips where the strips are whole */
static bool pgemm_agrees(hk_kernel_fn fn, const shape *s, int64_t lanes, int64_t mr) {
  const int64_t nr = s->vectors * lanes, depth = s->segments * s->channels;
  const bool raw = s->flags & HK_IGEMM_SUSPEND;
  const int64_t strips = s->columns == nr && !raw && !(s->flags & HK_IGEMM_RESUME) ? 2 : 1;
  const int64_t width = nr * strips, columns = s->columns + nr * (strips - 1), outputs = s->count * columns;
  guarded a = guarded_make((size_t)(s->count * depth), s->high), b = guarded_make((size_t)(depth * width), s->high);
  guarded y = guarded_make((size_t)outputs, s->high), c = guarded_make((size_t)outputs, s->high);
  guarded affine = guarded_make((size_t)(2 * s->count), s->high), part = guarded_make((size_t)(s->count * nr), s->high);
  guarded kept = guarded_make((size_t)(depth * nr), s->high);
  hk_pgemm_segment seg[4];
  fill(a.at, s->count * depth), fill(b.at, depth * width), fill(c.at, outputs);
  fill(affine.at, 2 * s->count), fill(part.at, s->count * nr);
  for (int64_t i = 0; i < outputs; i++) y.at[i] = poison;
  for (int64_t t = 0; t < s->segments; t++)
    seg[t] = (hk_pgemm_segment){b.at + t * s->channels * width, (s->segments - 1 - t) * s->channels, s->channels};
  float *want = malloc((size_t)(s->count * width) * sizeof *want);
  for (int64_t m0 = 0; m0 < s->count;) {
    const int64_t rows = hk_tile_rows(s->count - m0, mr);
    for (int64_t m = m0; m < m0 + rows; m++)
      for (int64_t j = 0; j < width; j++) {
        float sum = s->flags & HK_IGEMM_RESUME ? part.at[m * nr + j] : 0;
        for (int64_t t = 0; t < s->segments; t++)
          for (int64_t i = 0; i < s->channels; i++)
            sum += a.at[m0 * depth + (seg[t].at + i) * rows + m - m0] * seg[t].b[i * width + j];
        want[m * width + j] = raw || j >= columns ? sum : finish(s->flags, sum, affine.at[m], affine.at[s->count + m],
                                                                 c.at[m * columns + j], 2, -9, 11);
      }
    m0 += rows;
  }
  fn(&(hk_pgemm_args){.a = a.at, .depth = depth, .count = s->count, .segments = s->segments, .b_step = width, .seg = seg,
                      .vectors = s->vectors, .columns = s->columns, .strips = strips, .prefetch = draw(2), .flags = s->flags, .beta = 2, .lo = -9,
                      .hi = 11, .scale = affine.at, .bias = affine.at + s->count, .c = c.at, .y = y.at, .c_step = columns,
                      .y_step = columns, .partial = part.at, .kept = draw(2) ? kept.at : NULL});
  bool ok = true;
  for (int64_t m = 0; m < s->count; m++)
    for (int64_t j = 0; j < (raw ? nr : columns); j++)
      ok &= (raw ? part.at[m * nr + j] : y.at[m * columns + j]) == want[m * width + j];
  for (int64_t i = 0; raw && i < outputs; i++) ok &= y.at[i] == poison;
  free(want);
  guarded all[] = {a, b, y, c, affine, part, kept};
  for (int i = 0; i < 7; i++) guarded_free(&all[i]);
  return ok;
}

/* ---- weave: lines of exactly `width` floats, any lanes of them wanted by any output */
static bool weave_agrees(hk_kernel_fn fn, int64_t lanes, uint32_t flags, int high) {
  enum { ROWS = 3 };
  const int64_t rows = draw(ROWS + 1), taps = 1 + draw(4), channels = 1 + draw(6), vectors = 1 + draw(15), y_lanes = 1 + draw((uint32_t)lanes);
  const int64_t outputs = (vectors - 1) * y_lanes + 1 + draw((uint32_t)y_lanes), width = 1 + draw(90), x_step = 1 + draw(20);
  const int64_t start = (int64_t)draw(40) - 30, tap_step = 1 + draw(9), first = draw(2) ? draw((uint32_t)vectors) : 0;
  guarded x[ROWS], f = guarded_make((size_t)(taps * ROWS * channels * lanes), high), y = guarded_make((size_t)outputs, high);
  guarded c = guarded_make((size_t)outputs, high), affine = guarded_make((size_t)(2 * lanes), high);
  const float *lines[ROWS];
  const int64_t f_row[ROWS] = {2, 0, 1};
  int32_t index[6 * 16];
  for (int t = 0; t < ROWS; t++) x[t] = guarded_make((size_t)width, high), lines[t] = x[t].at, fill(x[t].at, width);
  for (int64_t i = 0; i < channels * lanes; i++) index[i] = (int32_t)draw((uint32_t)lanes);
  fill(f.at, taps * ROWS * channels * lanes), fill(c.at, outputs), fill(affine.at, 2 * lanes);
  for (int64_t i = 0; i < outputs; i++) y.at[i] = poison;
  fn(&(hk_weave_args){.x = lines, .f_row = f_row, .f = f.at, .index = index, .rows = rows, .taps = taps, .channels = channels,
                      .f_rows = ROWS, .start = start, .tap_step = tap_step, .x_step = x_step, .width = width, .y_lanes = y_lanes,
                      .outputs = outputs, .first = first, .end = vectors, .flags = flags, .beta = 2, .lo = -9, .hi = 11,
                      .scale = affine.at, .bias = affine.at + lanes, .c = c.at, .y = y.at});
  bool ok = true;
  for (int64_t o = 0; o < outputs; o++) {
    const int64_t j = o / y_lanes, l = o % y_lanes;
    float sum = 0;
    for (int64_t s = 0; s < taps; s++)
      for (int64_t t = 0; t < rows; t++)
        for (int64_t i = 0; i < channels; i++) {
          const int64_t at = start + s * tap_step + j * x_step + index[i * lanes + l];
          if (at >= 0 && at < width) sum += lines[t][at] * f.at[((s * ROWS + f_row[t]) * channels + i) * lanes + l];
        }
    ok &= y.at[o] == (j < first ? poison : finish(flags, sum, affine.at[l], affine.at[lanes + l], c.at[o], 2, -9, 11));
  }
  guarded all[] = {x[0], x[1], x[2], f, y, c, affine};
  for (int i = 0; i < 7; i++) guarded_free(&all[i]);
  return ok;
}

static int visit_weave(const hk_kernel *k) {
  static const uint32_t flags[] = {0, HK_IGEMM_AFFINE, HK_IGEMM_BEFORE | HK_IGEMM_CLAMP, HK_IGEMM_AFFINE | HK_IGEMM_CLAMP | HK_IGEMM_AFTER};
  int bad = 0;
  for (int round = 0; round < 600; round++)
    if (!weave_agrees(k->fn, hk_isa_lanes(k->isa), flags[round % HK_COUNT(flags)], round >> 2 & 1)) bad++;
  if (bad) printf("%s: %d wrong\n", k->name, bad);
  return bad;
}

/* ---- gather: three pieces, the middle one of zeros */
static bool gather_agrees(hk_kernel_fn fn, int64_t step, int32_t n0, int32_t n1, int32_t n2, int high) {
  const int64_t channels = 3, plane = hk_max64((n0 - 1) * step + 1, 0) + hk_max64((n2 - 1) * step + 1, 0), width = n0 + n1 + n2;
  guarded x = guarded_make((size_t)(channels * plane), high), to = guarded_make((size_t)(channels * width), high);
  fill(x.at, channels * plane);
  for (int64_t i = 0; i < channels * width; i++) to.at[i] = poison;
  const int64_t second = hk_max64((n0 - 1) * step + 1, 0);
  const hk_gather_piece piece[] = {{0, 0, n0, false}, {0, n0, n1, true}, {second, n0 + n1, n2, false}};
  fn(&(hk_gather_args){.x = x.at, .channels = channels, .c_step = plane, .step = step, .width = width, .pieces = 3,
                       .piece = piece, .to = to.at});
  bool ok = true;
  for (int64_t c = 0; c < channels; c++)
    for (int64_t j = 0; j < width; j++) {
      const int64_t k = j - n0 - n1;
      const float want = j < n0 ? x.at[c * plane + j * step] : k < 0 ? 0 : x.at[c * plane + second + k * step];
      ok &= to.at[c * width + j] == want;
    }
  guarded_free(&x), guarded_free(&to);
  return ok;
}

/* ---- broken on purpose: each wraps a working kernel and spoils one thing */
static hk_kernel_fn igemm_inner;
static void drops_a_channel(const void *p) {
  hk_igemm_args a = *(const hk_igemm_args *)p;
  if (a.channels > 1) a.channels--;
  igemm_inner(&a);
}
static void forgets_the_bias(const void *p) {
  hk_igemm_args a = *(const hk_igemm_args *)p;
  a.flags &= ~(uint32_t)HK_IGEMM_AFFINE;
  igemm_inner(&a);
}
static void leaves_the_last_row(const void *p) {
  hk_igemm_args a = *(const hk_igemm_args *)p;
  a.count--;
  igemm_inner(&a);
}
static void swaps_segments(const void *p) {
  hk_igemm_args a = *(const hk_igemm_args *)p;
  int64_t seg[4] = {0, 0, 0, 0};
  a.seg = seg;
  igemm_inner(&a);
}

static int broken_are_caught(const hk_kernel *k) {
  static const hk_kernel_fn broken[] = {drops_a_channel, forgets_the_bias, leaves_the_last_row, swaps_segments};
  const shape s = {5, 3, 7, 1, hk_isa_lanes(k->isa), HK_IGEMM_AFFINE, 0};
  int missed = 0;
  igemm_inner = k->fn;
  for (int i = 0; i < HK_COUNT(broken); i++) {
    bool caught = false;
    /* a scale of 0 hides everything; eight draws do not */
    for (int round = 0; round < 8; round++) caught |= !igemm_agrees(broken[i], &s, hk_isa_lanes(k->isa), false);
    if (!caught) missed++, printf("%s: broken kernel %d passed\n", k->name, i);
  }
  return missed;
}

static int visit(const hk_kernel *k) {
  static const uint32_t flags[] = {0, HK_IGEMM_SUSPEND, HK_IGEMM_RESUME, HK_IGEMM_RESUME | HK_IGEMM_SUSPEND, HK_IGEMM_AFFINE,
                                   HK_IGEMM_BEFORE | HK_IGEMM_CLAMP, HK_IGEMM_AFFINE | HK_IGEMM_CLAMP | HK_IGEMM_AFTER,
                                   HK_IGEMM_RESUME | HK_IGEMM_AFFINE | HK_IGEMM_BEFORE | HK_IGEMM_CLAMP};
  const bool dot = k->family == HK_FAMILY_DOT;
  const int64_t lanes = dot ? 1 : hk_isa_lanes(k->isa);
  int bad = 0;
  for (int64_t v = 1; v <= k->nr / lanes; v++)
    for (int64_t count = 1; count <= 27; count += count < 14 ? 1 : 5)
      for (int64_t tail = 1; tail <= lanes; tail += lanes > 4 ? 3 : 1)
        for (int round = 0; round < 4; round++) {
          const shape s = {count, draw(4), 1 + draw(dot ? 40 : 9), v, (v - 1) * lanes + tail, flags[draw(HK_COUNT(flags))], round & 1};
          const bool ok = k->family != HK_FAMILY_PGEMM ? igemm_agrees(k->fn, &s, lanes, dot) : pgemm_agrees(k->fn, &s, lanes, k->mr);
          if (!ok && bad++ < 5)
            printf("%s: count %lld segments %lld channels %lld vectors %lld columns %lld flags %u\n", k->name,
                   (long long)s.count, (long long)s.segments, (long long)s.channels, (long long)v, (long long)s.columns,
                   s.flags);
        }
  return bad;
}

static int visit_gather(const hk_kernel *k) {
  int bad = 0;
  for (int64_t step = 1; step <= 3; step++)
    for (int32_t n = 0; n < 70; n++)
      for (int high = 0; high < 2; high++)
        if (!gather_agrees(k->fn, step, n, (n * 7) % 19, 70 - n, high)) bad++;
  if (bad) printf("%s: %d wrong\n", k->name, bad);
  return bad;
}

static int visit_transpose(const hk_kernel *k) {
  int bad = 0;
  for (int round = 0; round < 1600; round++) {
    const int64_t rows = 1 + draw(round & 8 ? 9 : 40), columns = 1 + draw(round & 4 ? 9 : 40), from_step = columns + draw(2) * draw(5), to_step = rows + draw(2) * draw(5);
    guarded from = guarded_make((size_t)((rows - 1) * from_step + columns), round & 1);
    guarded to = guarded_make((size_t)((columns - 1) * to_step + rows), round & 1);
    for (int64_t i = 0; i < (rows - 1) * from_step + columns; i++) from.at[i] = (float)i;
    for (int64_t i = 0; i < (columns - 1) * to_step + rows; i++) to.at[i] = poison;
    k->fn(&(hk_transpose_args){.from = from.at, .to = to.at, .from_step = from_step, .to_step = to_step, .rows = rows, .columns = columns});
    bool ok = true;
    for (int64_t i = 0; i < (columns - 1) * to_step + rows; i++) {
      const int64_t c = i / to_step, r = i % to_step;
      ok &= to.at[i] == (r < rows ? from.at[r * from_step + c] : poison);
    }
    bad += !ok;
    guarded_free(&from), guarded_free(&to);
  }
  if (bad) printf("%s: %d wrong\n", k->name, bad);
  return bad;
}

int main(void) {
  int bad = 0, rows = 0;
  for (int32_t i = 0; i < hk_kernel_count; i++) {
    const hk_kernel *k = &hk_kernels[i];
    if (!hk_cpu_has(k->isa)) continue;
    if (k->family == HK_FAMILY_GATHER) bad += visit_gather(k);
    else if (k->family == HK_FAMILY_TRANSPOSE) bad += visit_transpose(k);
    else if (k->family == HK_FAMILY_WEAVE) bad += visit_weave(k);
    else if (k->family == HK_FAMILY_IGEMM || k->family == HK_FAMILY_PGEMM || k->family == HK_FAMILY_DOT) bad += visit(k);
    else continue;
    if (k->family == HK_FAMILY_IGEMM) bad += broken_are_caught(k);
    rows++;
  }
  assert(rows >= 3);
  printf("%d rows, %d wrong\n", rows, bad);
  return bad != 0;
}
