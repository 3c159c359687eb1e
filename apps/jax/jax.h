/* Inside libhankel-jax: what its files hand to each other. */
#ifndef HK_JAX_H
#define HK_JAX_H
#include <hankel.h>
#include <stdbool.h>

#include "xla_ffi.h"

/* table.c: the plan of a problem's text for so many threads, made when it is first asked for and kept for good. NULL:
 * the sentence is hk_last_error's. Any thread. */
const hk_plan *jax_plan(xla_text problem, int32_t threads);

/* loop.c: an hk_parallel_for on XLA's threads. The plan's pool is not used: the frame of the call in which a thread is
 * executing is set by jax_enter, and NULL again behind it. */
void jax_loop(void *pool, int64_t count, void (*body)(void *context, int64_t i), void *context);
void jax_enter(const xla_frame *frame);
#endif
