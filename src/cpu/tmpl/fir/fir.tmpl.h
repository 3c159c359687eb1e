/* fir: a long window summed directly, lanes are points in time; see hk_fir_args.
 *
 * Define NVM (vectors of the main tile) and HK_NAME, include a vocabulary, then this. Output vector i with tap
 * j + u*VW reads x[t + j + (i + u)*VW ...], which other pairs of the same i + u read too: for each j a tile of NV
 * vectors and four taps loads NV + 3 vectors and four weights for 4*NV FMAs. Two sums per output, of even and of odd u,
 * hide the latency of the FMA and halve the rounding; those of an input are complete before they join y. Every tile
 * adds in the same order, so the result does not depend on how n is cut. Registers: 2*NV sums, 4 weights, 1 input. */
#include "cpu/ukernel.h"
#include "cpu/tmpl/common/unroll.tmpl.h"

#define TAPS 4

/* nv vectors from time t on, of one input; y gains their sums. */
static inline __attribute__((always_inline)) void tile(const hk_fir_args *a, const float *x, const float *f, float *y,
                                                       const int nv) {
  v_f32 even[NVM], odd[NVM];
  HK_UNROLL for (int i = 0; i < nv; i++) even[i] = odd[i] = v_zero();
  int64_t j = 0;
  for (; j + TAPS * HK_VW <= a->taps; j += TAPS * HK_VW, x += (TAPS - 1) * HK_VW, f += (TAPS - 1) * HK_VW) {
    HK_ROLLED for (int l = 0; l < HK_VW; l++, x++, f++) {
      v_f32 w[TAPS];
      HK_UNROLL for (int u = 0; u < TAPS; u++) w[u] = v_bcast(f + u * HK_VW);
      HK_UNROLL for (int m = 0; m < nv + TAPS - 1; m++) {
        v_f32 v = v_load(x + m * HK_VW);
        HK_PIN(v);
        HK_UNROLL for (int u = 0; u < TAPS; u++) {
          if (m - u < 0 || m - u >= nv) continue;
          if (u % 2) odd[m - u] = v_fma(v, w[u], odd[m - u]);
          else even[m - u] = v_fma(v, w[u], even[m - u]);
        }
      }
    }
  }
  for (; j < a->taps; j++, x++, f++) {
    const v_f32 w = v_bcast(f);
    HK_UNROLL for (int i = 0; i < nv; i++) even[i] = v_fma(v_load(x + i * HK_VW), w, even[i]);
  }
  HK_UNROLL for (int i = 0; i < nv; i++) v_store(y + i * HK_VW, v_add(v_load(y + i * HK_VW), v_add(even[i], odd[i])));
}

void HK_NAME(const void *args) {
  const hk_fir_args *a = args;
  for (int64_t c = 0; c < a->channels; c++) {
    const float *x = a->x + c * a->x_stride, *f = a->f + c * a->taps;
    int64_t t = 0;
    for (; t + NVM * HK_VW <= a->n; t += NVM * HK_VW) tile(a, x + t, f, a->y + t, NVM);
    for (; t < a->n; t += HK_VW) tile(a, x + t, f, a->y + t, 1);
  }
}
