/* Checkers of dots, finish, requant, and the passes over narrow elements. */
#include <math.h>
#include <string.h>

#include "core/core.h"
#include "support/kernel.h"

/* Bytes between guard pages: as many as asked, at the side of the guard. */
static uint8_t *bytes_of(kernel_trial *t, int64_t count) {
  const int64_t whole = (count + 3) / 4;
  uint8_t *p = (uint8_t *)trial_output(t, whole);
  return t->high ? p + 4 * whole - count : p;
}

typedef struct shape {
  int64_t count, segments, channels, each, nr, groups; /* each: channels of a group; groups: of a segment in f */
} shape;

static void check_bf16(kernel_trial *t, const shape *s, const int64_t *seg, const char *const *rows, const uint16_t *f,
                       bool resume) {
  float *sums = trial_operand(t, s->count * s->nr), *want = trial_copy(t, sums, s->count * s->nr);
  for (int64_t m = 0; m < s->count; m++)
    for (int64_t j = 0; j < s->nr; j++) {
      double v = resume ? (double)want[m * s->nr + j] : 0;
      for (int64_t i = 0; i < s->segments; i++)
        for (int64_t c = 0; c < s->channels; c++) {
          uint16_t x;
          memcpy(&x, rows[i * s->count + m] + 2 * c, sizeof x);
          const uint16_t w = f[((seg[i] + c / 2) * s->nr + j) * 2 + c % 2];
          v += (double)hk_bf16_to_f32(x) * (double)hk_bf16_to_f32(w);
        }
      want[m * s->nr + j] = (float)v;
    }
  hk_dots_args a = {.rows = rows, .row_step = s->count, .count = s->count, .segments = s->segments};
  a.channels = s->channels, a.seg = seg, a.f = f, a.sums = sums, a.vectors = s->nr / t->vw, a.resume = resume;
  t->fn(&a);
  trial_compare(t, sums, want, s->count * s->nr);
}

static void check_8(kernel_trial *t, const shape *s, const int64_t *seg, const char *const *rows, const int8_t *f,
                    bool resume) {
  int32_t *sums = (int32_t *)trial_operand(t, s->count * s->nr);
  int32_t *want = (int32_t *)trial_copy(t, (float *)sums, s->count * s->nr);
  const bool is_signed = trial_chance(t, 50);
  const int32_t offset = t->k->isa == HK_ISA_AMX ? 0 : 128;
  for (int64_t m = 0; m < s->count; m++)
    for (int64_t j = 0; j < s->nr; j++) {
      uint32_t v = resume ? (uint32_t)want[m * s->nr + j] : 0;
      for (int64_t i = 0; i < s->segments; i++)
        for (int64_t c = 0; c < s->channels; c++) {
          const char x = rows[i * s->count + m][c];
          const int32_t u = is_signed ? (int8_t)x + offset : (uint8_t)x;
          v += (uint32_t)(u * f[((seg[i] + c / 4) * s->nr + j) * 4 + c % 4]);
        }
      want[m * s->nr + j] = (int32_t)v;
    }
  hk_dots_args a = {
      .rows = rows, .row_step = s->count, .count = s->count, .segments = s->segments, .x_signed = is_signed};
  a.channels = s->channels, a.seg = seg, a.f = f, a.sums = sums, a.vectors = s->nr / t->vw, a.resume = resume;
  t->fn(&a);
  t->failed |= memcmp(sums, want, (size_t)(s->count * s->nr) * sizeof *sums) != 0;
}

static uint16_t draw_bf16(kernel_trial *t) {
  return hk_f32_to_bf16(t->integers ? (float)trial_between(t, -3, 3) : (float)trial_between(t, -256, 256) / 256);
}

/* Rows in reverse order without a gap: what lies behind a row's last channel is another row, or the guard. Some of them
 * are another's, as rows of padding are. */
void check_dots(kernel_trial *t) {
  shape s = {.count = trial_between(t, 1, 40), .segments = trial_between(t, 0, 3)};
  s.channels = trial_chance(t, 80) ? trial_between(t, 1, 21) : trial_between(t, 60, 150);
  const bool halves = t->k->x_type == HK_BF16;
  const int64_t bytes = halves ? 2 : 1, row = s.channels * bytes;
  s.each = 4 / bytes;
  s.nr = t->vw * trial_between(t, 1, t->k->nr / t->vw);
  s.groups = hk_dots_groups(t->k->isa, hk_ceil_div(s.channels, s.each));
  const int64_t places = s.count * s.segments;
  uint8_t *x = bytes_of(t, places * row), *f = bytes_of(t, s.segments * s.groups * s.nr * 4);
  const char *rows[4 * 40];
  int64_t seg[4];
  for (int64_t i = 0; i < places; i++) rows[i] = (const char *)x + (places - 1 - i) * row;
  for (int64_t i = trial_between(t, 0, 2 * places); i < places; i += trial_between(t, 1, 9)) rows[i] = (const char *)x;
  for (int64_t i = 0; i < s.segments; i++) seg[i] = (s.segments - 1 - i) * s.groups;
  for (int64_t i = 0; i < places * s.channels; i++) {
    if (halves) ((uint16_t *)(void *)x)[i] = draw_bf16(t);
    else x[i] = (uint8_t)trial_between(t, 0, 255);
  }
  for (int64_t i = 0; i < s.segments * s.groups * s.nr * s.each; i++) {
    const bool real = i / (s.nr * s.each) % s.groups * s.each + i % s.each < s.channels;
    if (halves) ((uint16_t *)(void *)f)[i] = real ? draw_bf16(t) : 0;
    else f[i] = real ? (uint8_t)trial_between(t, 0, 255) : 0;
  }
  const bool resume = trial_chance(t, 30);
  if (halves) check_bf16(t, &s, seg, rows, (const uint16_t *)(const void *)f, resume);
  else check_8(t, &s, seg, rows, (const int8_t *)f, resume);
}

/* In double and rounded once; the kernel rounds to f32 in between. */
void check_finish(kernel_trial *t) {
  static const hk_type types[] = {HK_F32, HK_BF16, HK_F16};
  const hk_type type = types[trial_between(t, 0, 2)];
  const int64_t bytes = (int64_t)hk_type_bytes(type), count = trial_between(t, 1, 9), columns = trial_between(t, 1, 64);
  const int64_t width = hk_round_up(columns, t->vw);
  const float *sums = trial_operand(t, count * width), *affine = trial_operand(t, 2 * width);
  uint8_t *c = bytes_of(t, count * columns * bytes), *y = bytes_of(t, count * columns * bytes);
  const char *c_rows[9];
  char *y_rows[9];
  for (int64_t i = 0; i < count * columns; i++) hk_store_element(type, c, i, trial_between(t, -5, 5));
  for (int64_t m = 0; m < count; m++) {
    c_rows[m] = (const char *)c + m * columns * bytes;
    y_rows[m] = (char *)y + (count - 1 - m) * columns * bytes;
  }
  const trial_epilogue e = trial_draw_igemm_epilogue(t);
  hk_finish_args a = {.sums = sums, .width = width, .count = count, .columns = columns, .flags = e.flags};
  a.y_type = type, a.beta = e.beta, a.lo = e.lo, a.hi = e.hi, a.scale = affine, a.bias = affine + width;
  a.c = c_rows, a.y = y_rows;
  t->fn(&a);
  const double step = type == HK_BF16 ? 0x1p-8 : type == HK_F16 ? 0x1p-11 : 0x1p-23;
  for (int64_t m = 0; m < count; m++)
    for (int64_t j = 0; j < columns; j++) {
      const double want = trial_igemm_epilogue(&e, sums[m * width + j], affine[j], affine[width + j],
                                               hk_load_element(type, c_rows[m], j));
      const double off = fabs(hk_load_element(type, y_rows[m], j) - want);
      t->failed |= !(off <= (t->integers ? 0 : 2e-6 + step * fabs(want)));
    }
}

void check_requant(kernel_trial *t) {
  const int64_t count = trial_between(t, 1, 9), columns = trial_between(t, 1, 64), width = hk_round_up(columns, t->vw);
  const hk_type type = trial_chance(t, 50) ? HK_S8 : HK_U8;
  int32_t *sums = (int32_t *)trial_output(t, count * width), *bias = (int32_t *)trial_output(t, columns);
  float *scale = trial_operand(t, columns);
  uint8_t *y = bytes_of(t, count * columns), *y_rows[9];
  for (int64_t i = 0; i < count * width; i++) sums[i] = (int32_t)trial_between(t, -900, 900);
  for (int64_t i = 0; i < columns; i++) {
    bias[i] = (int32_t)trial_between(t, -90, 90);
    scale[i] = trial_chance(t, 5) ? NAN : trial_chance(t, 50) ? 0.5f : (float)trial_between(t, 1, 99) / 64;
  }
  if (trial_chance(t, 20)) sums[0] = INT32_MAX;
  for (int64_t m = 0; m < count; m++) y_rows[m] = y + (count - 1 - m) * columns;
  hk_requant_args a = {.sums = sums, .bias = bias, .scale = scale, .width = width, .count = count, .columns = columns};
  a.y_type = type, a.zero = trial_between(t, -9, 9), a.lo = trial_chance(t, 50) ? -INFINITY : -20, a.hi = 100,
  a.y = y_rows;
  t->fn(&a);
  for (int64_t m = 0; m < count; m++)
    for (int64_t j = 0; j < columns; j++) {
      double v = (int32_t)((uint32_t)sums[m * width + j] + (uint32_t)bias[j]) * (double)scale[j];
      if (isnan(v)) v = -a.zero;
      v = (v < a.lo ? a.lo : v > a.hi ? a.hi : v) + a.zero;
      v = nearbyint(fmin(fmax(v, type == HK_S8 ? -128 : 0), type == HK_S8 ? 127 : 255));
      t->failed |= y_rows[m][j] != (uint8_t)(int)v;
    }
}

void check_transpose_narrow(kernel_trial *t) {
  const int64_t bytes = t->k->family == HK_FAMILY_TRANSPOSE8 ? 1 : 2;
  const int64_t rows = trial_between(t, 1, 40), columns = trial_between(t, 1, 40);
  const int64_t from_step = columns + trial_between(t, 0, 9), to_step = rows + trial_between(t, 0, 9);
  const int64_t read = ((rows - 1) * from_step + columns) * bytes, written = ((columns - 1) * to_step + rows) * bytes;
  uint8_t *from = bytes_of(t, read), *to = bytes_of(t, written), *want = bytes_of(t, written);
  for (int64_t i = 0; i < read; i++) from[i] = (uint8_t)trial_between(t, 0, 255);
  for (int64_t i = 0; i < written; i++) to[i] = want[i] = 0xA5;
  for (int64_t r = 0; r < rows; r++)
    for (int64_t c = 0; c < columns; c++)
      memcpy(want + (c * to_step + r) * bytes, from + (r * from_step + c) * bytes, (size_t)bytes);
  t->fn(&(hk_transpose_narrow_args){from, to, from_step, to_step, rows, columns});
  t->failed |= memcmp(to, want, (size_t)written) != 0;
}

void check_unpack8(kernel_trial *t) {
  const int64_t count = trial_between(t, 1, 90);
  const bool is_signed = trial_chance(t, 50);
  const int32_t zero = (int32_t)trial_between(t, -128, 255);
  uint8_t *from = bytes_of(t, count);
  for (int64_t i = 0; i < count; i++) from[i] = (uint8_t)trial_between(t, 0, 255);
  float *to = trial_output(t, count), *want = trial_copy(t, to, count);
  for (int64_t i = 0; i < count; i++) want[i] = (float)((is_signed ? (int8_t)from[i] : from[i]) - zero);
  t->fn(&(hk_unpack8_args){from, to, count, zero, is_signed});
  trial_compare(t, to, want, count);
}
