/* The operands of a problem in plain memory: allocated for the extents that strides reach, 64-byte aligned, filled with
 * N(0,1) values (int8: the whole range). For timing and demonstration; the checker has its own guarded memory. */
#include <stdlib.h>
#include <string.h>

#include "cli.h"

bool cli_problem_is_int8(const hk_problem *p) { return p->x_type == HK_S8 || p->x_type == HK_U8; }
bool cli_problem_is_double(const hk_problem *p) {
  return !cli_problem_is_int8(p) && (p->x_type == HK_F64 || p->f_type == HK_F64 || p->y_type == HK_F64);
}

static void *block_make(size_t bytes) {
  void *block = aligned_alloc(64, (bytes + 127) / 64 * 64);
  if (block) memset(block, 0, bytes);
  return block;
}

/* Converts values in pieces, so that a large tensor needs no second copy in double. Beyond two million they repeat with
 * a period that no power of two divides: as good for timing, and much faster to make. */
static hk_status fill(void *data, hk_type type, int64_t count, uint64_t *seed, double factor) {
  enum { DISTINCT = 2000003 };
  double piece[256];
  size_t bytes = hk_type_bytes(type);
  int64_t drawn = count < DISTINCT ? count : DISTINCT;
  for (int64_t i = 0; i < drawn; i += 256) {
    int64_t n = drawn - i < 256 ? drawn - i : 256;
    for (int64_t j = 0; j < n; j++) piece[j] = factor * cli_random_normal(seed);
    hk_status status = hk_convert(HK_F64, piece, type, (char *)data + (size_t)i * bytes, n);
    if (status) return status;
  }
  for (int64_t i = drawn; i < count; i += drawn)
    memcpy((char *)data + (size_t)i * bytes, data, (size_t)(count - i < drawn ? count - i : drawn) * bytes);
  return HK_OK;
}

static double factor_of(hk_type type) { return type == HK_S8 || type == HK_U8 || type == HK_S32 ? 40 : 1; }

static hk_status tensor_make(void **block, void **pointer, hk_type type, hk_extent extent, uint64_t *seed) {
  size_t bytes = hk_type_bytes(type);
  *block = block_make((size_t)extent.elements * bytes);
  if (!*block) return HK_NO_MEMORY;
  *pointer = (char *)*block + (size_t)extent.below * bytes;
  return fill(*block, type, extent.elements, seed, factor_of(type));
}

static hk_status vector_make(void **block, void **pointer, hk_type type, int64_t count, uint64_t *seed) {
  return tensor_make(block, pointer, type, (hk_extent){count, 0}, seed);
}

hk_status cli_operands_make(cli_operands *o, const hk_problem *p, const hk_epilogue *e, uint64_t seed) {
  *o = (cli_operands){0};
  hk_extent *x = &o->extent[0], *f = &o->extent[1], *y = &o->extent[2];
  hk_status s = hk_problem_extents(p, x, f, y);
  hk_type wide = cli_problem_is_double(p) ? HK_F64 : HK_F32;
  hk_type bias = cli_problem_is_int8(p) ? HK_S32 : wide;
  if (!s) s = tensor_make(&o->block[0], &o->x, p->x_type, *x, &seed);
  if (!s) s = tensor_make(&o->block[1], &o->f, p->f_type, *f, &seed);
  if (!s) s = tensor_make(&o->block[2], &o->y, p->y_type, *y, &seed);
  if (!s && e && e->residual) s = tensor_make(&o->block[3], &o->c, p->y_type, *y, &seed);
  if (!s && e && e->scale) s = vector_make(&o->block[4], &o->scale, wide, e->scale == 1 ? 1 : p->k, &seed);
  if (!s && e && e->bias) s = vector_make(&o->block[5], &o->bias, bias, p->k, &seed);
  if (!s && e && (e->act == HK_ACT_PRELU || e->act2 == HK_ACT_PRELU))
    s = vector_make(&o->block[6], &o->slopes, wide, p->k, &seed);
  if (s) cli_operands_free(o);
  return s;
}

hk_status cli_operands_workspace(cli_operands *o, const hk_plan *plan) {
  size_t bytes = hk_plan_workspace(plan);
  free(o->block[7]);
  o->workspace = o->block[7] = bytes ? block_make(bytes) : NULL;
  return bytes && !o->workspace ? HK_NO_MEMORY : HK_OK;
}

void cli_operands_free(cli_operands *o) {
  for (int i = 0; i < 8; i++) free(o->block[i]);
  *o = (cli_operands){0};
}

hk_args cli_operands_args(const cli_operands *o, const hk_plan *plan) {
  return (hk_args){.size = sizeof(hk_args),
                   .x = o->x,
                   .f = o->f,
                   .y = o->y,
                   .c = o->c,
                   .scale = o->scale,
                   .bias = o->bias,
                   .workspace = o->workspace,
                   .workspace_bytes = hk_plan_workspace(plan)};
}
