/* dwd: a few outputs of one channel as dot products along the window; see hk_dwd_args.
 *
 * Define HK_NAME and, for f16 or bf16 x and f, HK_ELEMENT as their type; they are widened as they are loaded. Include a
 * vocabulary, then this. Lanes are neighbouring taps, so few outputs leave no lane idle. A vector of weights serves all
 * outputs; the loop is unrolled until the independent sums hide the FMA latency.
 * Registers: at least 8 accumulators, one weight, one input. */
#include "cpu/tmpl/depthwise/dwfuse.tmpl.h"
#ifdef HK_ELEMENT
#include "cpu/tmpl/causal/typed.tmpl.h"
typedef uint16_t dwd_element;
HK_INLINE v_f32 dwd_load(const dwd_element *p) { return get(HK_ELEMENT, p, 0); }
HK_INLINE v_f32 dwd_load_n(const dwd_element *p, int64_t n) { return get_n(HK_ELEMENT, p, 0, n); }
#else
typedef float dwd_element;
HK_INLINE v_f32 dwd_load(const dwd_element *p) { return v_load(p); }
HK_INLINE v_f32 dwd_load_n(const dwd_element *p, int64_t n) { return v_load_m(p, v_tail(n)); }
#endif

HK_INLINE void dwd_dots(const int outputs, const int unroll, const hk_dwd_args *a) {
  v_f32 acc[8];
  const dwd_element *f = (const dwd_element *)(const void *)a->f, *x = (const dwd_element *)(const void *)a->x;
  const dwd_element *const first = f, *const end = f + a->count / (unroll * HK_VW) * (unroll * HK_VW);
  HK_UNROLL for (int i = 0; i < outputs * unroll; i++) acc[i] = v_zero();
  for (; f < end; f += unroll * HK_VW, x += unroll * HK_VW) {
    HK_UNROLL for (int u = 0; u < unroll; u++) {
      v_f32 w = dwd_load(f + u * HK_VW);
      HK_HOLD(w);
      HK_UNROLL for (int j = 0; j < outputs; j++)
        acc[u * outputs + j] = v_fma(w, dwd_load(x + j * a->x_step + u * HK_VW), acc[u * outputs + j]);
    }
  }
  for (int64_t left = first + a->count - f; left > 0; left -= HK_VW, f += HK_VW, x += HK_VW) {
    const v_f32 w = dwd_load_n(f, left);
    HK_UNROLL for (int j = 0; j < outputs; j++) acc[j] = v_fma(w, dwd_load_n(x + j * a->x_step, left), acc[j]);
  }
  HK_UNROLL for (int j = 0; j < outputs; j++) {
    v_f32 sum = acc[j];
    HK_UNROLL for (int u = 1; u < unroll; u++) sum = v_add(sum, acc[u * outputs + j]);
    a->sum[j] = (a->add ? a->sum[j] : 0.0f) + v_sum(sum);
  }
}

void HK_NAME(const void *args) {
  const hk_dwd_args *a = args;
  switch (a->outputs) {
    case 1: dwd_dots(1, 8, a); return;
    case 2: dwd_dots(2, 4, a); return;
    case 3: dwd_dots(3, 2, a); return;
    case 4: dwd_dots(4, 2, a); return;
    case 5: dwd_dots(5, 1, a); return;
    case 6: dwd_dots(6, 1, a); return;
    case 7: dwd_dots(7, 1, a); return;
    default: dwd_dots(8, 1, a); return;
  }
}
