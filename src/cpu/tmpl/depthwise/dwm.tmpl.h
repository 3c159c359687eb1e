/* dwm: depthwise convolution by windows of 3 x 3, with 16 registers also 5 x 5 and 7 x 7, stride 1 or 2, lanes over channels; see
 * hk_dwm_args.
 *
 * Define MR (most columns of a strip) and HK_NAME, include a vocabulary, then this. With 32 registers the kernel marches down
 * a strip with the sums of three rows (dwmarch.tmpl.h); with 16 it goes by pairs of rows (dwmpair.tmpl.h), and what is left of
 * those row by row (dwmrow.tmpl.h); wider windows, and blocks with part of the lanes, by dwmwide.tmpl.h. Either way x comes from
 * L2 once or twice where the rows of a whole plane would fetch it three times. Masked lanes are neither read nor written. */
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
