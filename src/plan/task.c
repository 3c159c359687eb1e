/* The task: problem, epilogue and options made canonical; everything a decision may depend on. */
#include <math.h>
#include <string.h>

#include "plan/plan.h"

static hk_status check_options(const hk_options *o) {
  if (o->threads < 0 || o->threads > 4096) return hk_fail(HK_INVALID, "threads = %d must be 0..4096", o->threads);
  if ((unsigned)o->isa > HK_ISA_AMX) return hk_fail(HK_INVALID, "isa = %d must be an hk_isa value", (int)o->isa);
  if ((unsigned)o->device > HK_CUDA)
    return hk_fail(HK_INVALID, "device = %d must be an hk_device value", (int)o->device);
  if ((unsigned)o->rigor > HK_PATIENT)
    return hk_fail(HK_INVALID, "rigor = %d must be an hk_rigor value", (int)o->rigor);
  if ((unsigned)o->denormals > HK_DENORMALS_EXACT)
    return hk_fail(HK_INVALID, "denormals = %d must be an hk_denormals value", (int)o->denormals);
  if (o->math & ~7u) return hk_fail(HK_INVALID, "math = %u holds unknown bits", o->math);
  if (!(o->time_limit_s >= 0)) return hk_fail(HK_INVALID, "time_limit_s = %g must be >= 0", o->time_limit_s);
  return HK_OK;
}

static double larger(double a, double b) { return a > b ? a : b; }

/* Beyond any memory and any patience, but legal. Products of three sizes and a vector's lanes stay below 2^63
 * otherwise. */
static bool is_vast(const hk_geom *g) {
  const double groups = (double)g->groups, most = 0x1p50;
  double x = groups * (double)g->n * (double)g->c, f = groups * (double)g->k * (double)g->gk,
         y = groups * (double)g->k * (double)g->gm;
  for (int d = 0; d < 3; d++) {
    x *= (double)g->in[d];
    const double reach =
        (double)g->out[d] * (double)g->stride[d] + (double)g->win[d] * (double)g->dil[d] + fabs((double)g->lo[d]);
    const double far = reach + (double)g->in_span[d] + (double)g->in_dil[d];
    const double step = larger(fabs((double)g->x.at[d]), larger(fabs((double)g->y.at[d]), fabs((double)g->f.at[d])));
    if (far > 0x1p40 || far * step > 0x1p56) return true;
  }
  /* packed weights are not repeated by strides: what fits a page would fill the memory */
  if (f > 0x1p24 && f > 16.0 * (double)hk_extent_of(&g->f, g->groups, g->k, g->c, g->win).elements) return true;
  return g->flops > 0x1p57 || x > most || f > most || y > most || (double)g->gm * groups > most ||
         (double)g->gk * groups > most;
}

static hk_status check_state(const hk_task *t, const hk_problem *p) {
  const hk_geom *g = &t->geom;
  if (!t->options.stateful) return HK_OK;
  if (g->rank != 1 || p->stride[0] != 1 || p->in_dilation[0] != 1 || g->batch_grouped || g->hi[2] != 0 ||
      g->lo[2] != g->dil[2] * (g->win[2] - 1))
    return hk_fail(HK_INVALID,
                   "stateful needs rank 1, stride 1, no input dilation, no batch groups, pad_lo = "
                   "dilation*(window-1) = %lld and pad_hi = 0",
                   (long long)(g->dil[2] * (g->win[2] - 1)));
  return HK_OK;
}

static bool leaves_x(const hk_geom *g) { return hk_geom_leaves(g, 0) || hk_geom_leaves(g, 1) || hk_geom_leaves(g, 2); }

/* An exponent of ones in any of count values whose bits are words of so many bytes. */
#define ANY_ONES(word, mask)                                                                                           \
  for (int64_t i = 0; i < count; i++) {                                                                                \
    word v;                                                                                                            \
    memcpy(&v, (const char *)f + (size_t)i * sizeof v, sizeof v);                                                      \
    bad |= (v & (mask)) == (mask);                                                                                     \
  }

static bool run_finite(hk_type type, const void *f, int64_t count) {
  uint32_t bad = 0;
  switch (type) {
  case HK_F32: ANY_ONES(uint32_t, 0x7f800000u) break;
  case HK_F64: ANY_ONES(uint64_t, 0x7ff0000000000000u) break;
  case HK_F16: ANY_ONES(uint16_t, 0x7c00u) break;
  case HK_BF16: ANY_ONES(uint16_t, 0x7f80u) break;
  case HK_F8E4M3: ANY_ONES(uint8_t, 0x7fu) break; /* NaN alone; there is no Inf */
  default: break;
  }
  return !bad;
}

/* The sizes of f without those along which it does not move. */
typedef struct places {
  int64_t groups, k, c, win[3];
} places;

static places places_of(const hk_geom *g) {
  places p = {.groups = g->f.group ? g->groups : 1, .k = g->f.outer ? g->k : 1, .c = g->f.channel ? g->c : 1};
  for (int d = 0; d < 3; d++) p.win[d] = g->f.at[d] ? g->win[d] : 1;
  return p;
}

static bool each_finite(const hk_geom *g, const void *f, const places *p) {
  const int64_t bytes = (int64_t)hk_type_bytes(g->f_type), taps = p->win[0] * p->win[1] * p->win[2];
  for (int64_t i = 0; i < p->groups * p->k * taps; i++) {
    const int64_t tap = i % taps, k = i / taps % p->k, group = i / taps / p->k;
    const int64_t s2 = tap % p->win[2], s1 = tap / p->win[2] % p->win[1], s0 = tap / p->win[2] / p->win[1];
    const int64_t at =
        g->f.offset + group * g->f.group + k * g->f.outer + s0 * g->f.at[0] + s1 * g->f.at[1] + s2 * g->f.at[2];
    for (int64_t c = 0; c < p->c; c++)
      if (!run_finite(g->f_type, (const char *)f + (at + c * g->f.channel) * bytes, 1)) return false;
  }
  return true;
}

/* Dense weights are read as they lie. Of strides that meet in the same places many times, such as those of a large
 * Toeplitz matrix, all that lies between the ends of f is read once: Inf in a gap is then taken for a weight's, which
 * costs speed and nothing else. */
static bool all_finite(const hk_geom *g, const void *f) {
  const hk_extent e = hk_extent_of(&g->f, g->groups, g->k, g->c, g->win);
  const places p = places_of(g);
  const double reads =
      (double)p.groups * (double)p.k * (double)p.c * (double)p.win[0] * (double)p.win[1] * (double)p.win[2];
  if (e.elements && reads != (double)e.elements && reads < fmax(2.0 * (double)e.elements, 0x1p20))
    return each_finite(g, f, &p);
  return run_finite(g->f_type, (const char *)f - e.below * (int64_t)hk_type_bytes(g->f_type), e.elements);
}

void hk_task_set_nonfinite(hk_task *t, bool nonfinite) {
  t->nonfinite = nonfinite;
  t->padded_nonfinite = nonfinite && t->geom.gm && leaves_x(&t->geom);
}

void hk_task_read_weights(hk_task *t, const void *f) {
  hk_task_set_nonfinite(t, t->f_now && t->options.device == HK_CPU && !all_finite(&t->geom, f));
}

/* Zero points per channel have the range of the one in the problem. On a device they may lie where nothing here can
 * read. */
static hk_status check_f_zeros(const hk_geom *g, const int32_t *zero) {
  const int32_t lo = g->f_type == HK_U8 ? 0 : -128, hi = g->f_type == HK_U8 ? 255 : 127;
  for (int64_t k = 0; k < g->k * g->groups; k++)
    if (zero[k] < lo || zero[k] > hi)
      return hk_fail(HK_INVALID, "weights.f_zero[%lld] = %d must be in %d..%d for %s", (long long)k, zero[k], lo, hi,
                     hk_type_name(g->f_type));
  return HK_OK;
}

/* Offsets that take a 16-byte aligned pointer off its boundary: known here, so no plan may count on the boundary. */
static bool offsets_unalign(const hk_task *t) {
  const hk_geom *g = &t->geom;
  const int64_t xb = (int64_t)hk_type_bytes(g->x_type), yb = (int64_t)hk_type_bytes(g->y_type);
  return g->x.offset * xb % 16 || g->y.offset * yb % 16 || (t->epi.e.residual && t->epi.c.offset * yb % 16);
}

hk_status hk_task_shape(hk_task *t, const hk_problem *p, const hk_epilogue *e) {
  hk_status s;
  if ((s = hk_geom_make(&t->geom, p, e && e->gate)) || (s = hk_epi_make(&t->epi, e, p))) return s;
  const hk_geom *g = &t->geom;
  const bool gated = g->y_channels != g->k * g->groups;
  hk_strides_settle(&t->epi.c, gated ? 1 : g->groups, g->n, gated ? g->y_channels : g->k, g->out);
  t->problem = *p;
  return HK_OK;
}

hk_status hk_task_make(hk_task *t, const hk_problem *p, const hk_epilogue *e, const hk_options *o,
                       const hk_weights *w) {
  hk_status s;
  memset(t, 0, sizeof *t);
  if (!p) return hk_fail(HK_INVALID, "problem is NULL");
  t->options.size = sizeof t->options;
  if (o) {
    if ((s = check_options(o))) return s;
    t->options = *o;
    t->options.decision = NULL;
  }
  if ((s = hk_task_shape(t, p, e)) || (s = check_state(t, p))) return s;
  if (w && (s = hk_weights_check(&t->geom, w))) return s;
  if (t->options.device == HK_CUDA && offsets_unalign(t)) t->options.unaligned = 1;
  t->vast = is_vast(&t->geom);
  t->threads = t->options.threads ? t->options.threads : hk_threads_default();
  t->isa = t->options.isa ? t->options.isa : hk_cpu_best_isa();
  while (!hk_cpu_has(t->isa)) t->isa--; /* a cap above the machine's ISA: what can run is printed and keys the wisdom */
  t->f_now = w && w->f;
  t->f_zero_per_k = w && w->f_zero;
  if (t->f_zero_per_k && t->geom.acc_type != HK_S32) return hk_fail(HK_INVALID, "weights.f_zero needs int8 types");
  if (t->f_zero_per_k && t->options.device == HK_CPU && (s = check_f_zeros(&t->geom, w->f_zero))) return s;
  if (t->epi.e.act == HK_ACT_PRELU || t->epi.e.act2 == HK_ACT_PRELU)
    if (!w || !w->slopes) return hk_fail(HK_INVALID, "act = prelu needs weights.slopes at creation");
  return HK_OK;
}
