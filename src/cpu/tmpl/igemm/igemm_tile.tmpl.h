/* Register tiles of igemm by pointer tables, from row m0 on: HK_MR rows of pixels x HK_NV vectors of output channels.
 * Registers: HK_MR*HK_NV accumulators, HK_NV of f, one broadcast of x. Packed f: f[(seg[t] + c)*NR + j], NR =
 * HK_NV*HK_VW. */
static void HK_PASTE4(tile_, HK_MR, x, HK_NV)(const hk_igemm_args *r, int64_t m0, int64_t tiles) {
  enum { NR = HK_NV * HK_VW };
  const uint32_t flags = r->flags;
  const int64_t first = -r->channels * (int64_t)sizeof(float), end = (r->x_at + r->channels) * (int64_t)sizeof(float),
                row_step = r->row_step;
#ifdef HK_PREFETCH
  const bool prefetch = r->prefetch;
#endif
  for (; tiles > 0; tiles--, m0 += HK_MR) {
    v_f32 acc[HK_MR][HK_NV], whole[HK_MR][HK_NV];
    HK_UNROLL for (int m = 0; m < HK_MR; m++) {
      HK_UNROLL for (int v = 0; v < HK_NV; v++) acc[m][v] = v_zero();
    }
#if HK_MUL_FIRST
    bool open = true;
#endif
    const float *const *rows = r->rows + m0;
    const int64_t *seg = r->seg;
    int64_t chunks = 0;
    uint64_t chunk = (uint64_t)*seg / HK_CHUNK; /* unsigned: a shift */
    for (int64_t n = r->segments; n > 0; n--, rows += row_step, seg++) {
      const char *x[HK_MR];
      const uintptr_t zeros = (uintptr_t)r->zeros;
      uintptr_t live = 0;
      HK_UNROLL for (int m = 0; m < HK_MR; m++) {
        live |= (uintptr_t)rows[m] ^ zeros;
        x[m] = (const char *)rows[m] + end;
      }
      if (__builtin_expect(!live, 0)) continue;
      if (__builtin_expect((uint64_t)*seg / HK_CHUNK != chunk, 0)) {
        chunk = (uint64_t)*seg / HK_CHUNK;
#define HK_CHUNK_SUMS HK_NV
#include "cpu/tmpl/common/chunk.tmpl.h"
#undef HK_CHUNK_SUMS
      }
      const float *f = r->f + *seg * NR;
      int64_t c = first;
#include "cpu/tmpl/igemm/igemm_reduce.tmpl.h"
    }
    if (__builtin_expect(chunks > 0, 0)) {
      HK_UNROLL for (int m = 0; m < HK_MR; m++) {
        HK_UNROLL for (int v = 0; v < HK_NV; v++) acc[m][v] = v_add(whole[m][v], acc[m][v]);
      }
    }
    if (__builtin_expect(flags & HK_IGEMM_RESUME, 0)) {
      const float *from = r->partial + m0 * NR;
      HK_UNROLL for (int m = 0; m < HK_MR; m++) {
        HK_UNROLL for (int v = 0; v < HK_NV; v++) acc[m][v] = v_add(v_load(from + m * NR + v * HK_VW), acc[m][v]);
      }
    }
    if (__builtin_expect(flags & HK_IGEMM_SUSPEND, 0)) {
      float *to = r->partial + m0 * NR;
      HK_UNROLL for (int m = 0; m < HK_MR; m++) {
        HK_UNROLL for (int v = 0; v < HK_NV; v++) v_store(to + m * NR + v * HK_VW, acc[m][v]);
      }
      continue;
    }
    if (__builtin_expect(flags & ~(uint32_t)HK_IGEMM_RESUME, 0)) {
#define HK_C(m) (r->c[m0 + (m)] + r->y_at)
#include "cpu/tmpl/igemm/igemm_finish.tmpl.h"
#undef HK_C
    }
    /* Read every pointer before the first store: a store may alias the arguments, so the compiler would reload them. */
    float *y[HK_MR];
    HK_UNROLL for (int m = 0; m < HK_MR; m++) y[m] = r->y[m0 + m] + r->y_at;
    const int64_t short_of = r->columns - NR;
    if (__builtin_expect(short_of == 0, 1)) {
      HK_UNROLL for (int m = 0; m < HK_MR; m++) {
        HK_UNROLL for (int v = 0; v < HK_NV; v++) v_store(y[m] + v * HK_VW, acc[m][v]);
      }
      continue;
    }
    HK_UNROLL for (int m = 0; m < HK_MR; m++) {
      HK_UNROLL for (int v = 0; v < HK_NV - 1; v++) v_store(y[m] + v * HK_VW, acc[m][v]);
      v_store_n(y[m] + (HK_NV - 1) * HK_VW, acc[m][HK_NV - 1], HK_VW + short_of);
    }
  }
}
#define HK_KIND line_
#include "cpu/tmpl/igemm/igemm_line.tmpl.h"
#undef HK_KIND
#define HK_KIND one_
#define HK_ONE
#include "cpu/tmpl/igemm/igemm_line.tmpl.h"
#undef HK_ONE
#undef HK_KIND
