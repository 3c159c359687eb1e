/* The vocabulary of src/cpu/x86/tiles_amx.h in plain C, so that the loops around AMX tiles are tested on any machine. A
 * tile is as the instructions have it: rows and bytes by its configuration, zeros beyond; shapes that do not fit each
 * other abort, as they would fault. */
#ifndef TEST_TILES_EMULATED_H
#define TEST_TILES_EMULATED_H
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "core/core.h"

typedef struct emulated_tile {
  int rows, bytes;
  uint8_t at[16][64];
} emulated_tile;
static _Thread_local emulated_tile emulated[8]; /* as the registers of a thread */
static _Thread_local bool emulated_on;

static inline void t_fence(void) {}
static inline void t_configure(const void *config) {
  const uint8_t *c = config;
  if (c[0] != 1 || c[1] != 0) abort();
  memset(emulated, 0, sizeof emulated);
  for (int t = 0; t < 8; t++) {
    uint16_t bytes;
    memcpy(&bytes, c + 16 + 2 * t, sizeof bytes);
    emulated[t].rows = c[48 + t];
    emulated[t].bytes = bytes;
    if (emulated[t].rows > 16 || bytes > 64 || !bytes != !c[48 + t]) abort();
  }
  emulated_on = true;
}
static inline void t_release(void) {
  memset(emulated, 0, sizeof emulated);
  emulated_on = false;
}

static inline emulated_tile *emulated_used(int t) {
  if (!emulated_on || !emulated[t].rows) abort();
  return &emulated[t];
}

static inline void emulated_load(int t, const void *from, int64_t step) {
  emulated_tile *e = emulated_used(t);
  memset(e->at, 0, sizeof e->at);
  for (int r = 0; r < e->rows; r++) memcpy(e->at[r], (const char *)from + r * step, (size_t)e->bytes);
}

static inline void emulated_store(int t, void *to, int64_t step) {
  const emulated_tile *e = emulated_used(t);
  for (int r = 0; r < e->rows; r++) memcpy((char *)to + r * step, e->at[r], (size_t)e->bytes);
}

typedef enum emulated_kind { EMULATED_BF16, EMULATED_S8S8, EMULATED_U8S8 } emulated_kind;

/* Adds the products of one group of 32 bits to the sum at acc. */
static inline void emulated_group(emulated_kind kind, uint8_t *acc, const uint8_t *a, const uint8_t *b) {
  if (kind == EMULATED_BF16) {
    uint16_t x[2], f[2];
    float sum;
    memcpy(x, a, 4), memcpy(f, b, 4), memcpy(&sum, acc, 4);
    for (int i = 0; i < 2; i++) sum += hk_bf16_to_f32(x[i]) * hk_bf16_to_f32(f[i]);
    memcpy(acc, &sum, 4);
    return;
  }
  uint32_t sum;
  memcpy(&sum, acc, 4);
  for (int i = 0; i < 4; i++) sum += (uint32_t)((kind == EMULATED_S8S8 ? (int8_t)a[i] : a[i]) * (int8_t)b[i]);
  memcpy(acc, &sum, 4);
}

static inline void emulated_dot(emulated_kind kind, int acc, int a, int b) {
  emulated_tile *c = emulated_used(acc), *x = emulated_used(a), *f = emulated_used(b);
  if (c->rows != x->rows || c->bytes != f->bytes || x->bytes != 4 * f->rows) abort();
  for (int m = 0; m < c->rows; m++)
    for (int k = 0; k < f->rows; k++)
      for (int n = 0; n < c->bytes; n += 4) emulated_group(kind, &c->at[m][n], &x->at[m][4 * k], &f->at[k][n]);
}

static inline bool t_even(const char *const *rows, int64_t count, int64_t step) {
  for (int64_t i = 1; i < count; i++)
    if (rows[i] - rows[i - 1] != step) return false;
  return true;
}

#define T_ZERO(t) memset(emulated_used(t)->at, 0, sizeof emulated[t].at)
#define T_LOAD(t, from, step) emulated_load(t, from, step)
#define T_STORE(t, to, step) emulated_store(t, to, step)
#define T_DOT_BF16(acc, a, b) emulated_dot(EMULATED_BF16, acc, a, b)
#define T_DOT_S8S8(acc, a, b) emulated_dot(EMULATED_S8S8, acc, a, b)
#define T_DOT_U8S8(acc, a, b) emulated_dot(EMULATED_U8S8, acc, a, b)
#endif
