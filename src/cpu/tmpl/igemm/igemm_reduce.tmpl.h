      /* One segment of an igemm tile: rows that end at x[m], starting c bytes before the end, against the weights at f.
       * open: the first product starts the sums. The pointers are held in registers; otherwise the compiler derives all
       * of them from one, and again for every tile. */
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
