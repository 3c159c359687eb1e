/* Helpers of hankel 0.1 that hk_conv_desc replaced: exported for programs built against its header, declared in none.
 */
#include "core/core.h"

HK_API hk_status hk_problem_conv1d(hk_problem *p, hk_layout layout, int64_t n, int64_t c, int64_t w, int64_t k,
                                   int64_t s, int64_t stride, int64_t pad, int64_t dilation, int64_t groups);
HK_API hk_status hk_problem_conv2d(hk_problem *p, hk_layout layout, int64_t n, int64_t c, int64_t h, int64_t w,
                                   int64_t k, int64_t r, int64_t s, int64_t stride, int64_t pad, int64_t dilation,
                                   int64_t groups);
HK_API hk_status hk_problem_conv3d(hk_problem *p, hk_layout layout, int64_t n, int64_t c, int64_t d, int64_t h,
                                   int64_t w, int64_t k, int64_t q, int64_t r, int64_t s, int64_t stride, int64_t pad,
                                   int64_t dilation, int64_t groups);
HK_API hk_status hk_problem_depthwise(hk_problem *p, hk_layout layout, int32_t rank, int64_t n, int64_t c,
                                      const int64_t *in, const int64_t *window, int64_t multiplier, int64_t stride,
                                      hk_padding padding, int64_t dilation);

/* Completes d with one stride, padding and dilation for all dimensions. */
static hk_status square(hk_problem *p, hk_conv_desc d, int64_t stride, int64_t pad, int64_t dilation) {
  if (!p) return hk_fail(HK_INVALID, "problem is NULL");
  if (stride < 1 || dilation < 1 || d.groups < 1)
    return hk_fail(HK_INVALID, "stride = %lld, dilation = %lld, groups = %lld must be >= 1", (long long)stride,
                   (long long)dilation, (long long)d.groups);
  d.size = sizeof d;
  for (int i = 0; i < d.rank; i++) {
    d.stride[i] = stride, d.dilation[i] = dilation;
    d.pad_lo[i] = d.pad_hi[i] = pad;
  }
  return hk_problem_conv(p, &d);
}

hk_status hk_problem_conv1d(hk_problem *p, hk_layout layout, int64_t n, int64_t c, int64_t w, int64_t k, int64_t s,
                            int64_t stride, int64_t pad, int64_t dilation, int64_t groups) {
  const hk_conv_desc desc = {
      .rank = 1, .layout = layout, .n = n, .c = c, .k = k, .groups = groups, .in = {w}, .window = {s}};
  return square(p, desc, stride, pad, dilation);
}

hk_status hk_problem_conv2d(hk_problem *p, hk_layout layout, int64_t n, int64_t c, int64_t h, int64_t w, int64_t k,
                            int64_t r, int64_t s, int64_t stride, int64_t pad, int64_t dilation, int64_t groups) {
  const hk_conv_desc desc = {
      .rank = 2, .layout = layout, .n = n, .c = c, .k = k, .groups = groups, .in = {h, w}, .window = {r, s}};
  return square(p, desc, stride, pad, dilation);
}

hk_status hk_problem_conv3d(hk_problem *p, hk_layout layout, int64_t n, int64_t c, int64_t d, int64_t h, int64_t w,
                            int64_t k, int64_t q, int64_t r, int64_t s, int64_t stride, int64_t pad, int64_t dilation,
                            int64_t groups) {
  const hk_conv_desc desc = {
      .rank = 3, .layout = layout, .n = n, .c = c, .k = k, .groups = groups, .in = {d, h, w}, .window = {q, r, s}};
  return square(p, desc, stride, pad, dilation);
}

hk_status hk_problem_depthwise(hk_problem *p, hk_layout layout, int32_t rank, int64_t n, int64_t c, const int64_t *in,
                               const int64_t *window, int64_t multiplier, int64_t stride, hk_padding padding,
                               int64_t dilation) {
  if (!in || !window) return hk_fail(HK_INVALID, "in and window must not be NULL");
  if (rank < 1 || rank > 3) return hk_fail(HK_INVALID, "rank = %d must be 1, 2 or 3", rank);
  if (stride < 1 || dilation < 1 || multiplier < 1 || c < 1)
    return hk_fail(HK_INVALID, "c = %lld, multiplier = %lld, stride = %lld, dilation = %lld must be >= 1", (long long)c,
                   (long long)multiplier, (long long)stride, (long long)dilation);
  hk_conv_desc d = {.size = sizeof d, .rank = rank, .layout = layout, .n = n, .c = c, .groups = c, .padding = padding};
  if (!hk_mul_checked(c, multiplier, &d.k)) return hk_fail(HK_INVALID, "c*multiplier overflows 63 bits");
  for (int i = 0; i < rank; i++)
    d.in[i] = in[i], d.window[i] = window[i], d.stride[i] = stride, d.dilation[i] = dilation;
  return hk_problem_conv(p, &d);
}
