/* Makes and destroys an hk_longconv: the description checked, the options taken, sizes chosen, tables made, and the
 * spectra of filters that are given here. */
#include "causal/causal.h"
#include "longconv/longconv.h"

static hk_status check_options(const hk_options *o) {
  const hk_status s = hk_causal_check_options(o);
  if (s || o->math & HK_MATH_FAST_ALGORITHMS) return s;
  return hk_fail(HK_UNSUPPORTED, "a long convolution is computed by FFT, whose error is that of a whole row: "
                                 "options.math must hold HK_MATH_FAST_ALGORITHMS");
}

static bool by_channel(const hk_causal_strides *s) { return s->channel == 1 && s->time != 1; }
static bool by_token(hk_type type, const hk_causal_strides *s, int64_t length) {
  return type == HK_F32 && (s->time == 1 || length == 1);
}

static void choose(hk_longconv *k) {
  const hk_longconv_desc *d = &k->d;
  hk_isa isa = k->o.isa ? k->o.isa : hk_cpu_best_isa();
  while (!hk_cpu_has(isa)) isa--;
  k->threads = k->o.threads ? k->o.threads : hk_threads_default();
  k->kernel = hk_kernel_best(HK_FAMILY_LONGFFT, isa);
  k->spread = hk_kernel_best(HK_FAMILY_SPREAD, isa);
  k->transpose = hk_kernel_best(HK_FAMILY_TRANSPOSE, isa);
  k->shape = hk_longconv_cut(d->length, d->window, k->kernel->nr);
  const bool channels = d->c > 1 && d->length > 1 && (by_channel(&d->x) || by_channel(&d->y));
  k->group = channels ? hk_min64(HK_LONGCONV_GROUP, d->c) : 1;
  k->kept = d->n > 1 ? k->group : 1;
  k->direct_x = !channels && !d->has_pre && by_token(d->x_type, &d->x, d->length);
  k->direct_y = !channels && !d->has_post && by_token(d->y_type, &d->y, d->length);
  const int64_t groups = hk_max64(1, hk_ceil_div(d->c, k->group));
  k->parts = hk_max64(1, hk_min64(d->n, k->threads / groups));
  k->slots = hk_min64(k->threads, groups * k->parts);
}

/* Transforms filters that never change, one after the other. */
static hk_status keep(hk_longconv *k, const void *f, const void *skip) {
  const int64_t z = 2 * k->shape.points, taps = hk_round_up(k->shape.taps, 16);
  float *spectra = hk_alloc((size_t)(k->d.c * z) * sizeof *spectra);
  float *room = hk_alloc((size_t)(2 * k->shape.n1 * k->kernel->nr + taps) * sizeof *room);
  const hk_longconv_slot slot = {.filter = room, .buffer = room ? room + taps : NULL};
  if (spectra && room)
    for (int64_t c = 0; c < k->d.c; c++) {
      const hk_longconv_part p = {k, 0, c, 1, 0, 1};
      hk_longconv_slot at = slot;
      at.h = spectra + c * z;
      hk_longconv_filters(&p, f, skip, &at);
      hk_longconv_spectrum(k, &p, &at, 0);
    }
  hk_free(room);
  k->spectra = spectra;
  if (spectra && room) return HK_OK;
  return hk_fail(HK_NO_MEMORY, "no memory for the spectra of %lld filters of %lld points", (long long)k->d.c,
                 (long long)k->shape.points);
}

static hk_status build(hk_longconv *k, const void *f, const void *skip) {
  const hk_longconv_desc *d = &k->d;
  hk_longconv_slot slot;
  if (k->o.device == HK_CUDA && f)
    return hk_fail(HK_UNSUPPORTED, "filters at creation are not supported on CUDA: give args.f");
  if (k->o.device == HK_CUDA) return hk_cu_longconv_make(&k->cuda, d);
  if (f && d->has_skip && !skip) return hk_fail(HK_INVALID, "skip (desc.has_skip) is NULL, f is given");
  choose(k);
  k->fft = (hk_longfft_args){.n1 = k->shape.n1, .n2 = k->shape.n2};
  k->tables = hk_alloc((size_t)hk_longfft_floats(k->fft.n1, k->fft.n2, k->kernel->nr) * sizeof *k->tables);
  if (!k->tables) return hk_fail(HK_NO_MEMORY, "no memory for the twiddles of a transform");
  hk_longfft_tables(&k->fft, k->kernel->nr, k->tables);
  if (f && d->c && d->length) {
    const hk_status s = keep(k, f, skip);
    if (s) return s;
  }
  k->slot_floats = hk_longconv_lay(k, NULL, &slot);
  return HK_OK;
}

hk_status hk_longconv_create(hk_longconv **conv, const hk_longconv_desc *desc, const void *f, const void *skip,
                             const hk_options *options) {
  hk_longconv_desc desc_room;
  hk_options options_room = {.size = sizeof options_room};
  if (!conv) return hk_fail(HK_INVALID, "conv is NULL");
  *conv = NULL;
  if (!(desc = hk_take(desc, &desc_room, sizeof desc_room, "desc"))) return HK_INVALID;
  if (!options) options = &options_room;
  else if (!(options = hk_take(options, &options_room, sizeof options_room, "options"))) return HK_INVALID;
  hk_longconv made = {.d = *desc, .o = *options};
  hk_status s;
  if ((s = check_options(options)) || (s = hk_longconv_check(&made.d, &made.like))) return s;
  hk_longconv *k = hk_alloc(sizeof *k);
  if (!k) return hk_fail(HK_NO_MEMORY, "no memory for an hk_longconv of %zu bytes", sizeof *k);
  *k = made;
  if ((s = build(k, f, skip))) hk_longconv_destroy(k);
  else *conv = k;
  return s;
}

void hk_longconv_destroy(hk_longconv *conv) {
  if (!conv) return;
  hk_free(conv->tables);
  hk_free(conv->spectra);
  hk_free(conv);
}

size_t hk_longconv_workspace(const hk_longconv *conv) {
  if (!conv) return 0;
  if (conv->o.device == HK_CUDA) return hk_cu_longconv_workspace(&conv->cuda);
  return (size_t)(conv->slots * conv->slot_floats) * sizeof(float);
}

hk_status hk_longconv_print(const hk_longconv *conv, char *buffer, size_t size, size_t *length) {
  if (!conv) return hk_fail(HK_INVALID, "conv is NULL");
  if (!buffer && size) return hk_fail(HK_INVALID, "buffer is NULL, size is %zu", size);
  const hk_longconv_desc *d = &conv->d;
  const hk_longconv_shape *s = &conv->shape;
  hk_text t = {buffer, size, 0};
  hk_text_add(&t, "longconv n%lld c%lld l%lld w%lld %s/%s/%s%s%s%s: ", (long long)d->n, (long long)d->c,
              (long long)d->length, (long long)d->window, hk_type_name(d->x_type), hk_type_name(d->f_type),
              hk_type_name(d->y_type), d->has_skip ? " skip" : "", d->has_pre ? " pre" : "",
              d->has_post ? " post" : "");
  if (conv->o.device == HK_CUDA) {
    char chosen[96];
    hk_cu_longconv_print(&conv->cuda, chosen, sizeof chosen);
    hk_text_add(&t, "%s", chosen);
  } else {
    hk_text_add(&t, "%s, %lldx%lld points, blocks=%lld, group=%lld, %d threads", conv->kernel->name, (long long)s->n1,
                (long long)s->n2, (long long)s->blocks, (long long)conv->group, conv->threads);
  }
  if (length) *length = t.length;
  return HK_OK;
}
