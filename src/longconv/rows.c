/* Between tensors of any type and stride and rows of f32, with a gate multiplied on the way. A group of adjacent
 * channels passes through a tile of tokens x channels that is transposed. */
#include "longconv/longconv.h"

static char *element(const hk_longconv_view *v, const hk_longconv_part *p, int64_t t) {
  const int64_t at = p->s * v->strides.outer + p->c * v->strides.channel + t * v->strides.time;
  return (char *)v->at + at * (int64_t)hk_type_bytes(v->type);
}

/* Tokens t..t+count-1 of v into tile, or back: [token][channel] for a group, else [token]. */
static void move(const hk_longconv_part *p, const hk_longconv_view *v, int64_t t, int64_t count, float *tile,
                 bool back) {
  hk_spread_args s = {element(v, p, t), tile, 1, count, 0, v->strides.time, count, v->type, back};
  if (p->count > 1) {
    s.height = count, s.row = v->strides.time, s.step = p->count;
    s.width = p->count, s.column = v->strides.channel;
  }
  if (s.width == 1) s.column = 1;
  p->k->spread->fn(&s);
}

static void multiply(float *a, const float *b, int64_t n) {
  for (int64_t i = 0; i < n; i++) a[i] *= b[i];
}

static void transpose(const hk_longconv_part *p, const float *from, int64_t from_step, float *to, int64_t to_step,
                      int64_t rows, int64_t columns) {
  const hk_transpose_args a = {
      .from = from, .to = to, .from_step = from_step, .to_step = to_step, .rows = rows, .columns = columns};
  p->k->transpose->fn(&a);
}

void hk_longconv_load(const hk_longconv_part *p, const hk_longconv_view *a, const hk_longconv_view *b, float *rows,
                      int64_t length) {
  _Alignas(HK_ALIGN) float tile[HK_LONGCONV_CHUNK], gate[HK_LONGCONV_CHUNK];
  const int64_t most = HK_LONGCONV_CHUNK / p->count;
  for (int64_t t = 0; t < length; t += most) {
    const int64_t count = hk_min64(most, length - t);
    float *to = p->count > 1 ? tile : rows + t;
    move(p, a, t, count, to, false);
    if (b && b->at) {
      move(p, b, t, count, gate, false);
      multiply(to, gate, count * p->count);
    }
    if (p->count > 1) transpose(p, tile, p->count, rows + t, length, count, p->count);
  }
}

void hk_longconv_store(const hk_longconv_part *p, const float *rows, const hk_longconv_view *b,
                       const hk_longconv_view *out) {
  _Alignas(HK_ALIGN) float tile[HK_LONGCONV_CHUNK], gate[HK_LONGCONV_CHUNK];
  const int64_t length = p->k->d.length, most = HK_LONGCONV_CHUNK / p->count;
  for (int64_t t = 0; t < length; t += most) {
    const int64_t count = hk_min64(most, length - t);
    if (p->count > 1) transpose(p, rows + t, length, tile, p->count, p->count, count);
    else
      for (int64_t i = 0; i < count; i++) tile[i] = rows[t + i];
    if (b && b->at) {
      move(p, b, t, count, gate, false);
      multiply(tile, gate, count * p->count);
    }
    move(p, out, t, count, tile, true);
  }
}
