/* dwm: depthwise convolution by windows of 3x3 (with 16 registers also 5x5 and 7x7), stride 1 or 2, lanes are channels;
 * see hk_dwm_args.
 *
 * Define MR (most columns of a strip) and HK_NAME, include a vocabulary, then this. With 32 registers the kernel walks
 * down a strip with the accumulators of three rows (dwmarch.tmpl.h). With 16 it takes pairs of rows (dwmpair.tmpl.h)
 * and the remainder row by row (dwmrow.tmpl.h); dwmwide.tmpl.h handles wider windows and partial vectors. Either way x
 * is read from L2 once or twice, where a plane-wise loop would read it three times. Masked lanes are neither read nor
 * written. */
#include "cpu/tmpl/depthwise/dwfuse.tmpl.h"

enum { DWM_WINDOW = 3 };

HK_INLINE bool dwm_inside(const hk_dwm_args *a, int64_t row) { return row >= a->row_first && row < a->row_last; }

#if HK_VREGS >= 32
#include "cpu/tmpl/depthwise/dwmarch.tmpl.h"
#else
#include "cpu/tmpl/depthwise/dwmrow.tmpl.h"
#include "cpu/tmpl/depthwise/dwmwide.tmpl.h"
#include "cpu/tmpl/depthwise/dwmpair.tmpl.h"
#endif
