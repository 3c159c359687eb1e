      /* One segment of an igemm tile: rows that end where x point, from c bytes before on, against the weights at f. open: the sums begin with it.
       * The pointers are kept apart, else the compiler computes them all from one, and again between two tiles. */
      HK_UNROLL for (int m = 0; m < HK_MR; m++) HK_HOLD_POINTER(x[m]);
#if HK_MUL_FIRST
      if (open) {
#define HK_FIRST
#include "cpu/tmpl/igemm/igemm_step.tmpl.h"
#undef HK_FIRST
        open = false, c += (int64_t)sizeof(float), f += NR;
      }
#endif
#ifdef HK_PREFETCH
      if (__builtin_expect(prefetch, 0)) {
        HK_ROLLED for (; c; c += (int64_t)sizeof(float), f += NR) {
#define HK_NEXT (8 * NR)
#include "cpu/tmpl/igemm/igemm_step.tmpl.h"
#undef HK_NEXT
        }
      } else
#endif
      {
        HK_ROLLED for (; c; c += (int64_t)sizeof(float), f += NR) {
#include "cpu/tmpl/igemm/igemm_step.tmpl.h"
        }
      }
