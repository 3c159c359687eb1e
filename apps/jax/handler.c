/* The handler `hk_jax_run`: y = convolution of x with f, on the CPU. Arguments x, f; results y and scratch, a byte
 * array of hk_jax_scratch bytes that XLA allocates; attributes "problem" (its text, with the strides of every tensor)
 * and "threads". Gradients are problems too. Refuses a call that lacks one of these, and passes the library's sentences
 * on. */
#include <string.h>

#include "jax.h"

enum { ALIGNMENT = 64 };

static xla_error *fail(const xla_frame *f, int code, const char *message) {
  xla_error_args a = {.struct_size = sizeof a, .message = message, .code = code};
  return f->api->error_create(&a);
}

static const void *attribute(const xla_frame *f, const char *name, int kind) {
  const xla_attributes *a = &f->attributes;
  for (int64_t i = 0; i < a->count; i++) {
    const xla_text *t = a->names[i];
    if (t->length == strlen(name) && !memcmp(t->at, name, t->length)) return a->kinds[i] == kind ? a->at[i] : NULL;
  }
  return NULL;
}

/* XLA asks a handler once for the version that it was written for; older ones do so without their table. The structs
 * read here are the same in all of major version 0, so the answer is XLA's own version, else the first. */
static void say_version(const xla_frame *f, xla_metadata_extension *e) {
  e->metadata->version.major = 0;
  e->metadata->version.minor = f->api ? f->api->version.minor : 1;
}

static xla_error *run(const xla_frame *f) {
  const xla_text *problem = attribute(f, "problem", XLA_ATTR_STRING);
  const xla_scalar *threads = attribute(f, "threads", XLA_ATTR_SCALAR);
  if (!problem || !threads || f->arguments.count != 2 || f->results.count != 2)
    return fail(f, XLA_INVALID_ARGUMENT,
                "hk_jax_run takes x and f, gives y and scratch, and needs the attributes problem and threads");
  int64_t count;
  memcpy(&count, threads->value, sizeof count);
  const hk_plan *plan = jax_plan(*problem, (int32_t)count);
  if (!plan) return fail(f, XLA_INVALID_ARGUMENT, hk_last_error());
  const xla_buffer *scratch = f->results.at[1];
  char *start = scratch->data;
  if (start) start += -(uintptr_t)start % ALIGNMENT;
  hk_args a = {.size = sizeof a, .x = ((const xla_buffer *)f->arguments.at[0])->data};
  a.f = ((const xla_buffer *)f->arguments.at[1])->data;
  a.y = ((const xla_buffer *)f->results.at[0])->data;
  a.workspace_bytes = hk_plan_workspace(plan);
  if (a.workspace_bytes) a.workspace = start;
  if (a.workspace_bytes && (!start || scratch->dims[0] < (int64_t)a.workspace_bytes + ALIGNMENT))
    return fail(f, XLA_INVALID_ARGUMENT, "scratch is shorter than hk_jax_scratch says; compile the program again");
  jax_enter(f);
  const hk_status status = hk_plan_execute(plan, &a);
  jax_enter(NULL);
  return status ? fail(f, XLA_INVALID_ARGUMENT, hk_last_error()) : NULL;
}

HK_API xla_error *hk_jax_run(xla_frame *f);
HK_API xla_error *hk_jax_run(xla_frame *f) {
  for (xla_extension *e = f->extension_start; e; e = e->next) {
    if (e->type != XLA_METADATA) continue;
    say_version(f, (xla_metadata_extension *)(void *)e);
    return NULL;
  }
  return f->stage == XLA_EXECUTE ? run(f) : NULL;
}

/* Bytes of scratch that hk_jax_run needs; -1: the problem is refused, see hk_last_error. */
HK_API int64_t hk_jax_scratch(const char *problem, int32_t threads);
HK_API int64_t hk_jax_scratch(const char *problem, int32_t threads) {
  const hk_plan *plan = jax_plan((xla_text){problem, strlen(problem)}, threads);
  if (!plan) return -1;
  const size_t bytes = hk_plan_workspace(plan);
  return bytes ? (int64_t)bytes + ALIGNMENT : 0;
}
