/* One register tile of small: MG groups x MR output channels each x NV time vectors, from time t on. Included by
 * small.tmpl.h once per tile shape with NV, TILE and MASKED set; MASKED (NV is 1) reads and writes only the lanes of m.
 *
 * Registers: MG*MR*NV accumulators, NV inputs and one weight. Where that is too many, or with several groups (an input
 * is then used only MR times), MR weights and one input. */
static inline __attribute__((always_inline)) void TILE(const hk_small_args *a, int64_t g, int64_t index, int64_t o,
                                                       int64_t t, v_mask m) {
#if MASKED
#define LOAD(p) v_load_m(p, m)
#define STORE(p, v) v_store_m(p, v, m)
#else
#define LOAD(p) v_load(p)
#define STORE(p, v) v_store(p, v)
  (void)m;
#endif
  /* Read before the first store: a store may alias the arguments, so the compiler would reload them. */
  const int64_t y_stride = a->y_stride;
  float *const y = a->y + o * y_stride + t;
  v_f32 acc[ROWS][NV];
  HK_UNROLL for (int i = 0; i < ROWS; i++) {
    const v_f32 b = v_bcast(a->bias + o + i);
    HK_UNROLL for (int j = 0; j < NV; j++) acc[i][j] = b;
  }
  if (a->add) {
    HK_UNROLL for (int i = 0; i < ROWS; i++) {
      HK_UNROLL for (int j = 0; j < NV; j++) {
        acc[i][j] = v_add(acc[i][j], LOAD(a->add + (o + i) * a->add_stride + t + j * HK_VW));
      }
    }
  }
  for (int32_t s = 0; s < a->segs; s++) {
    const hk_small_seg *q = a->seg + s;
    const float *x = q->x + g * q->group + t;
    const int64_t stride = q->stride;
    const float *w = q->f + index * q->channels * ROWS;
#if MG > 1
    const float *xs[MG];
    HK_UNROLL for (int n = 0; n < MG; n++) xs[n] = x + n * q->group;
#endif
    for (int64_t c = q->channels; c > 0; c--, x += stride, w += ROWS) {
#if MG > 1
      HK_UNROLL for (int n = 0; n < MG; n++) {
        v_f32 f[MR];
        HK_UNROLL for (int i = 0; i < MR; i++) f[i] = v_bcast(w + n * MR + i);
        HK_UNROLL for (int j = 0; j < NV; j++) {
          v_f32 u = LOAD(xs[n] + j * HK_VW);
#if MR > 1
          HK_PIN(u);
#endif
          HK_UNROLL for (int i = 0; i < MR; i++) acc[n * MR + i][j] = v_fma(u, f[i], acc[n * MR + i][j]);
        }
        xs[n] += stride;
      }
#elif MR < NV && MR * NV + NV + 1 > HK_VREGS
      v_f32 f[MR];
      HK_UNROLL for (int i = 0; i < MR; i++) f[i] = v_bcast(w + i);
      HK_UNROLL for (int j = 0; j < NV; j++) {
        v_f32 u = LOAD(x + j * HK_VW);
        HK_PIN(u);
        HK_UNROLL for (int i = 0; i < MR; i++) acc[i][j] = v_fma(u, f[i], acc[i][j]);
      }
#else
      v_f32 u[NV];
      HK_UNROLL for (int j = 0; j < NV; j++) {
        u[j] = LOAD(x + j * HK_VW);
#if MR > 1
        HK_PIN(u[j]);
#endif
      }
      HK_UNROLL for (int i = 0; i < MR; i++) {
        const v_f32 f = v_bcast(w + i);
        HK_UNROLL for (int j = 0; j < NV; j++) acc[i][j] = v_fma(u[j], f, acc[i][j]);
      }
#endif
    }
  }
  if (a->act == HK_SMALL_CLIP) {
    const v_f32 lo = v_set1(a->lo), hi = v_set1(a->hi);
    HK_UNROLL for (int i = 0; i < ROWS; i++) {
      HK_UNROLL for (int j = 0; j < NV; j++) acc[i][j] = v_min(hi, v_max(lo, acc[i][j]));
    }
  } else if (a->act == HK_SMALL_LEAKY) {
    const v_f32 slope = v_set1(a->lo);
    HK_UNROLL for (int i = 0; i < ROWS; i++) {
      HK_UNROLL for (int j = 0; j < NV; j++) {
        acc[i][j] = v_select(v_lt(acc[i][j], v_zero()), v_mul(acc[i][j], slope), acc[i][j]);
      }
    }
  }
  HK_UNROLL for (int i = 0; i < ROWS; i++) {
    HK_UNROLL for (int j = 0; j < NV; j++) STORE(y + i * y_stride + j * HK_VW, acc[i][j]);
  }
  if (a->sum) {
    const int64_t sum_stride = a->sum_stride;
    float *const sum = a->sum + o * sum_stride + t;
    HK_UNROLL for (int i = 0; i < ROWS; i++) {
      HK_UNROLL for (int j = 0; j < NV; j++) {
        float *p = sum + i * sum_stride + j * HK_VW;
        STORE(p, v_add(LOAD(p), acc[i][j]));
      }
    }
  }
#undef LOAD
#undef STORE
}
#undef NV
#undef TILE
#undef MASKED
