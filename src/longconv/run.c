/* Runs a call forward: a slot (a thread's workspace) takes groups of channels one after the other. Rows do not depend
 * on the slot, so neither do the bits. Nothing here allocates. */
#include "causal/causal.h"
#include "longconv/longconv.h"

static float *take(float **room, int64_t floats) {
  float *at = *room;
  if (at) *room += hk_round_up(floats, 16);
  return at;
}

int64_t hk_longconv_lay(const hk_longconv *k, float *workspace, hk_longconv_slot *s) {
  const hk_longconv_desc *d = &k->d;
  const int64_t row = k->group * d->length, z = 2 * k->shape.points, g = d->gradient ? 1 : 0;
  const int64_t part[] = {2 * k->shape.n1 * k->kernel->nr,
                          k->group * k->shape.taps,
                          k->direct_x && !g ? 0 : row,
                          k->direct_y && !g ? 0 : row,
                          g * row,
                          g * row,
                          z,
                          g * z,
                          k->spectra ? 0 : k->kept * z,
                          g * k->kept * z};
  float **to[] = {&s->buffer, &s->filter, &s->u, &s->v, &s->w, &s->o, &s->z, &s->g, &s->h, &s->sum};
  int64_t floats = 0;
  for (int i = 0; i < HK_COUNT(part); i++) {
    *to[i] = workspace ? take(&workspace, part[i]) : NULL;
    floats += hk_round_up(part[i], 16);
  }
  return floats;
}

hk_longfft_args hk_longconv_kernel(const hk_longconv *k, const hk_longconv_slot *slot, int32_t op) {
  hk_longfft_args a = k->fft;
  a.op = op;
  a.buffer = slot->buffer;
  a.z = slot->z;
  return a;
}

void hk_longconv_filters(const hk_longconv_part *p, const void *f, const void *skip, const hk_longconv_slot *slot) {
  const hk_longconv_desc *d = &p->k->d;
  const hk_longconv_part channels = {p->k, 0, p->c, p->count, 0, 1};
  const hk_longconv_view view = {(void *)(uintptr_t)f, d->f_type, {0, d->f_channel, d->f_tap}};
  hk_longconv_load(&channels, &view, NULL, slot->filter, p->k->shape.taps);
  if (!d->has_skip) return;
  for (int64_t i = 0; i < p->count; i++) {
    const hk_longconv_part one = {p->k, 0, p->c + i, 1, 0, 1};
    const hk_longconv_view at = {(void *)(uintptr_t)skip, d->f_type, {0, 1, 0}};
    float value;
    hk_longconv_load(&one, &at, NULL, &value, 1);
    slot->filter[i * p->k->shape.taps] += value;
  }
}

const float *hk_longconv_spectrum(const hk_longconv *k, const hk_longconv_part *p, const hk_longconv_slot *slot,
                                  int64_t i) {
  const int64_t z = 2 * k->shape.points;
  if (k->spectra) return k->spectra + (p->c + i) * z;
  float *h = slot->h + (k->kept > 1 ? i : 0) * z;
  if (p->s == p->first) {
    hk_longfft_args a = hk_longconv_kernel(k, slot, HK_LONGFFT_FORWARD);
    a.z = h;
    a.x = (hk_longfft_row){slot->filter + i * k->shape.taps, 0, 0, k->shape.taps};
    k->kernel->fn(&a);
  }
  return h;
}

void hk_longconv_row(const hk_longconv *k, const hk_longconv_slot *slot, const float *h, float *x, float *y) {
  const hk_longconv_shape *s = &k->shape;
  const int64_t length = k->d.length, before = s->blocks > 1 ? s->taps - 1 : 0;
  hk_longfft_args a = hk_longconv_kernel(k, slot, HK_LONGFFT_CONVOLVE);
  a.h = h;
  for (int64_t i = 0; i < s->blocks; i++) {
    const int64_t shift = i * s->step - before, last = hk_min64(2 * s->points, length - shift);
    a.x = (hk_longfft_row){x, shift, hk_max64(0, -shift), last};
    a.y = (hk_longfft_row){y, shift, before, last};
    k->kernel->fn(&a);
  }
}

typedef struct call {
  const hk_longconv *k;
  const hk_longconv_args *a;
} call;

static float *row_at(const hk_longconv_view *v, const hk_longconv_part *p) {
  return (float *)v->at + p->s * v->strides.outer + p->c * v->strides.channel;
}

static void run_group(const void *context, const hk_longconv_slot *slot, hk_longconv_part p) {
  const call *call = context;
  const hk_longconv *k = call->k;
  const hk_longconv_desc *d = &k->d;
  const hk_longconv_args *a = call->a;
  const hk_longconv_view x = {(void *)(uintptr_t)a->x, d->x_type, d->x}, y = {a->y, d->y_type, d->y};
  const hk_longconv_view pre = {(void *)(uintptr_t)(d->has_pre ? a->pre : NULL), d->x_type, d->pre};
  const hk_longconv_view post = {(void *)(uintptr_t)(d->has_post ? a->post : NULL), d->x_type, d->post};
  if (!k->spectra) hk_longconv_filters(&p, a->f, a->skip, slot);
  for (p.s = p.first; p.s < p.last; p.s++) {
    if (!k->direct_x) hk_longconv_load(&p, &x, &pre, slot->u, d->length);
    for (int64_t i = 0; i < p.count; i++)
      hk_longconv_row(k, slot, hk_longconv_spectrum(k, &p, slot, i),
                      k->direct_x ? row_at(&x, &p) : slot->u + i * d->length,
                      k->direct_y ? row_at(&y, &p) : slot->v + i * d->length);
    if (!k->direct_y) hk_longconv_store(&p, slot->v, &post, &y);
  }
}

typedef struct slots {
  const hk_longconv *k;
  float *workspace;
  int64_t parts;
  hk_longconv_body body;
  const void *context;
} slots;

static void run_slot(void *context, int64_t i) {
  const slots *all = context;
  const hk_longconv *k = all->k;
  const int64_t parts = all->parts, items = hk_ceil_div(k->d.c, k->group) * parts, n = k->d.n;
  hk_longconv_slot slot;
  hk_longconv_lay(k, all->workspace + i * k->slot_floats, &slot);
  for (int64_t j = items * i / k->slots; j < items * (i + 1) / k->slots; j++) {
    const int64_t c = j / parts * k->group, part = j % parts;
    all->body(all->context, &slot,
              (hk_longconv_part){k, 0, c, hk_min64(k->group, k->d.c - c), n * part / parts, n * (part + 1) / parts});
  }
}

void hk_longconv_each(const hk_longconv *k, void *workspace, int64_t parts, hk_longconv_body body,
                      const void *context) {
  slots all = {k, workspace, parts, body, context};
  hk_causal_share(&k->o, k->threads, k->slots, run_slot, &all);
}

hk_status hk_longconv_execute(const hk_longconv *conv, const hk_longconv_args *args) {
  hk_longconv_args room;
  if (!conv) return hk_fail(HK_INVALID, "conv is NULL");
  if (!(args = hk_take(args, &room, sizeof room, "args"))) return HK_INVALID;
  const hk_status s = hk_longconv_check_args(conv, args);
  if (s || !conv->d.n || !conv->d.c || !conv->d.length) return s;
  if (conv->o.device == HK_CUDA) return hk_cu_longconv_run(&conv->cuda, &conv->d, args);
  const call call = {conv, args};
  hk_longconv_each(conv, args->workspace, conv->parts, run_group, &call);
  return HK_OK;
}
