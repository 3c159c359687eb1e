/* Makes and destroys an hk_causal: the description checked, the options taken, the way chosen. */
#include "causal/causal.h"

/* Whether the stride of one axis is 1, or never used, in every tensor. */
static bool adjacent(const hk_causal_desc *d, bool channels) {
  const hk_causal_strides *s[5] = {&d->x, &d->y, d->has_pre ? &d->pre : NULL, d->has_post ? &d->post : NULL,
                                   d->has_residual ? &d->residual : NULL};
  const int64_t size = channels ? d->c : d->length;
  for (int i = 0; i < 5; i++)
    if (s[i] && size > 1 && (channels ? s[i]->channel : s[i]->time) != 1) return false;
  return true;
}

/* Sizes pieces: per channel a piece keeps weights, bias and the entries that history and new state need on its stack. A
 * state whose entries do not fit moves by the reference. */
static bool fit(hk_causal *k) {
  const hk_causal_desc *d = &k->d;
  const int64_t most = HK_CAUSAL_ROOM / 16 - d->window - 1, reach = hk_causal_reach(d);
  const int64_t state = d->state_length + hk_min64(d->longest, hk_max64(d->state_length, 16));
  if (reach > most || (k->way == HK_CAUSAL_TOKENS && reach > HK_CAUSALT_REACH)) return false;
  k->entries = d->state_length && state <= most ? state : reach;
  const int64_t room = HK_CAUSAL_ROOM / (d->window + 1 + k->entries) / 16 * 16;
  const double share = (double)d->c * (double)d->n / (4.0 * (double)k->threads); /* a few pieces per thread */
  const int64_t near = hk_max64(HK_CAUSAL_NEAR / (d->window + 1 + k->entries) / 64 * 64, 64); /* stays in L1 */
  int64_t piece = hk_min64(hk_min64(room, near), k->way == HK_CAUSAL_TOKENS ? 64 : HK_CAUSAL_PIECE);
  if (k->threads > 1 && share < (double)piece) piece = hk_min64(piece, hk_round_up((int64_t)share + 1, 64));
  k->piece = hk_max64(hk_min64(piece, hk_round_up(d->c, 16)), 16);
  return true;
}

/* Channels are the lanes where both would do, unless most of a vector would be empty. */
static void choose(hk_causal *k) {
  const hk_causal_desc *d = &k->d;
  k->threads = k->o.threads ? k->o.threads : hk_threads_default();
  k->isa = k->o.isa ? k->o.isa : hk_cpu_best_isa();
  while (!hk_cpu_has(k->isa)) k->isa--;
  k->spread = hk_kernel_best(HK_FAMILY_SPREAD, k->isa);
  const bool channels = adjacent(d, true), tokens = adjacent(d, false);
  k->way = channels && !(tokens && d->c < d->length) ? HK_CAUSAL_CHANNELS : tokens ? HK_CAUSAL_TOKENS : HK_CAUSAL_REF;
  k->kernel = hk_kernel_best(k->way == HK_CAUSAL_CHANNELS ? HK_FAMILY_CAUSALC : HK_FAMILY_CAUSALT, k->isa);
  if (k->way == HK_CAUSAL_REF || !fit(k)) {
    k->way = HK_CAUSAL_REF;
    k->kernel = hk_kernel_best(HK_FAMILY_CAUSALC, k->isa); /* of the gradient, which stages any strides */
    k->piece = hk_max64(hk_min64(d->c, 16), 1);
  }
  int64_t size, count;
  if (d->gradient && hk_causal_back_fits(k, &size, &count)) k->back = hk_kernel_best(HK_FAMILY_CAUSALG, k->isa);
}

hk_status hk_causal_create(hk_causal **causal, const hk_causal_desc *desc, const hk_options *options) {
  hk_causal_desc desc_room;
  hk_options options_room = {.size = sizeof options_room};
  if (!causal) return hk_fail(HK_INVALID, "causal is NULL");
  *causal = NULL;
  if (!(desc = hk_take(desc, &desc_room, sizeof desc_room, "desc"))) return HK_INVALID;
  if (!options) options = &options_room;
  else if (!(options = hk_take(options, &options_room, sizeof options_room, "options"))) return HK_INVALID;
  hk_causal made = {.d = *desc, .o = *options};
  hk_status s;
  if ((s = hk_causal_check_options(options)) || (s = hk_causal_check(&made.d))) return s;
  if (options->device == HK_CUDA) s = hk_cu_causal_make(&made.cuda, &made.d);
  else choose(&made);
  if (s) return s;
  hk_causal *k = hk_alloc(sizeof *k);
  if (!k) return hk_fail(HK_NO_MEMORY, "no memory for an hk_causal of %zu bytes", sizeof *k);
  *k = made;
  *causal = k;
  return HK_OK;
}

void hk_causal_destroy(hk_causal *causal) { hk_free(causal); }

size_t hk_causal_workspace(const hk_causal *causal) {
  return causal && causal->o.device == HK_CUDA ? hk_cu_causal_workspace(&causal->cuda, &causal->d)
                                               : 0; /* the CPU needs none */
}
