/* What convert, slice and integers share: f16, bf16 and f8 tensors to f32 and back. */
#ifndef HK_PLAN_WIDEN_H
#define HK_PLAN_WIDEN_H
#include "plan/rewrite/rewrite.h"

static inline bool hk_widen_narrow(hk_type t) { return t == HK_F16 || t == HK_BF16 || t == HK_F8E4M3; }

/* The channels of x over all feature groups as one axis where their stride is constant, else [outer][count]. */
typedef struct hk_channels {
  int64_t count, step, outer, outer_step;
} hk_channels;
hk_channels hk_widen_channels(const hk_geom *g);
/* True when x is read channel by channel, and not column by column. */
bool hk_widen_last(const hk_geom *g);

/* Strides of a dense tensor: [n][at..][group][channel] with last, else [n][group][channel][at..]. */
hk_strides hk_widen_dense(bool last, int64_t groups, int64_t channels, const int64_t at[3]);

/* count elements of any float type from a strided place to adjacent f32; k: the kernel for adjacent ones, or NULL. */
void hk_widen_run(const hk_kernel *k, hk_type t, const char *src, int64_t step, float *dst, int64_t count);

/* f keeps its strides; the f32 copy covers its extent. */
hk_extent hk_widen_filter_extent(const hk_geom *g);
/* Of weights that come at execute; else 0. */
size_t hk_widen_filter_bytes(const hk_task *t);
/* hk_rewrite.filter: the f32 copy of weights known at creation. */
hk_status hk_widen_filter(const hk_plan *plan, const void **f, void **made);
/* Writes the f32 copy of the weights at f to `to`, and returns where its f[0] lies. */
const char *hk_widen_filter_to(const hk_plan *plan, const char *f, float *to);
#endif
