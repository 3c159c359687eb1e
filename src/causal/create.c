/* Makes and destroys an hk_causal: the description checked, the options taken, the way chosen. */
#include "causal/causal.h"

static hk_status check_options(const hk_options *o) {
  if (o->threads < 0 || o->threads > 4096)
    return hk_fail(HK_INVALID, "options.threads = %d must be 0 to 4096", o->threads);
  if ((unsigned)o->isa > HK_ISA_AMX)
    return hk_fail(HK_INVALID, "options.isa = %d must be an hk_isa value", (int)o->isa);
  if ((unsigned)o->device > HK_CUDA)
    return hk_fail(HK_INVALID, "options.device = %d must be an hk_device value", (int)o->device);
  if ((unsigned)o->denormals > HK_DENORMALS_FLUSH)
    return hk_fail(HK_INVALID, "options.denormals = %d must be an hk_denormals value", (int)o->denormals);
  return HK_OK;
}

static void choose(hk_causal *k) {
  k->threads = k->o.threads ? k->o.threads : hk_threads_default();
  k->isa = k->o.isa ? k->o.isa : hk_cpu_best_isa();
  while (!hk_cpu_has(k->isa)) k->isa--;
  k->way = HK_CAUSAL_REF;
  k->piece = hk_max64(hk_min64(k->d.c, 16), 1);
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
  if ((s = check_options(options)) || (s = hk_causal_check(&made.d))) return s;
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
  return causal && causal->o.device == HK_CUDA ? hk_cu_causal_workspace(&causal->cuda) : 0; /* the CPU needs none */
}
