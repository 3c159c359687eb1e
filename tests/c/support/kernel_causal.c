/* Checkers of causalc, causalt, causalg and spread. */
#include <stdlib.h>
#include <string.h>

#include "core/core.h"
#include "support/kernel.h"

/* count elements of a type, which end at the guard when buffers do; small values. */
static void *typed(kernel_trial *t, hk_type type, int64_t count) {
  const int64_t bytes = (int64_t)hk_type_bytes(type), floats = (count * bytes + 3) / 4;
  char *p = (char *)trial_output(t, floats) + (t->high ? floats * 4 - count * bytes : 0);
  for (int64_t i = 0; i < count; i++)
    hk_store_element(type, p, i, (double)trial_between(t, -2, 2) * (t->integers ? 1 : 0.37));
  return p;
}

static hk_type draw_type(kernel_trial *t) {
  static const hk_type types[] = {HK_F32, HK_F16, HK_BF16};
  return types[trial_between(t, 0, 2)];
}

/* A call of either family: element (c, t) of a tensor is at lane*1 + other*step. */
typedef struct causal_call {
  hk_causal_tile a;
  bool channels;
} causal_call;

static int64_t at(const causal_call *k, int64_t step, int64_t c, int64_t i) {
  return k->channels ? c + i * step : c * step + i;
}

/* `more` tokens lie before token 0. */
static void *tensor(kernel_trial *t, const causal_call *k, hk_type type, int64_t *step, int64_t more) {
  const int64_t tokens = k->a.tokens + more, rows = k->channels ? tokens : k->a.channels;
  const int64_t width = k->channels ? k->a.channels : tokens;
  *step = width + (trial_chance(t, 30) ? trial_between(t, 0, 5) : 0);
  char *p = typed(t, type, rows ? (rows - 1) * *step + width : 0);
  return p + at(k, *step, 0, more) * (int64_t)hk_type_bytes(type);
}

static float *parameters(kernel_trial *t, const causal_call *k, int64_t *step, int64_t entries) {
  const int64_t rows = k->channels ? entries : k->a.channels, width = k->channels ? k->a.channels : entries;
  *step = width + trial_between(t, 0, 2);
  return typed(t, HK_F32, rows && width ? (rows - 1) * *step + width : 0);
}

static double input(const causal_call *k, int64_t c, int64_t i) {
  const hk_causal_tile *a = &k->a;
  const int64_t reach = a->dilation * (a->window - 1);
  if (i < 0 && a->history) return a->history[at(k, a->history_step, c, reach + i)];
  const double x = hk_load_element(a->x_type, a->x, at(k, a->x_step, c, i));
  return a->pre ? (float)(x * hk_load_element(a->x_type, a->pre, at(k, a->pre_step, c, i))) : x;
}

static double output(const causal_call *k, int64_t c, int64_t i) {
  const hk_causal_tile *a = &k->a;
  double v = a->bias ? (double)a->bias[c] : 0;
  for (int64_t j = 0; j < a->window; j++)
    v += (double)a->f[at(k, a->f_step, c, j)] * input(k, c, i - a->dilation * (a->window - 1 - j));
  v = trial_act(a->act, a->a, a->b, 0, v);
  if (a->post) v *= hk_load_element(a->x_type, a->post, at(k, a->post_step, c, i));
  if (a->residual) v += hk_load_element(a->x_type, a->residual, at(k, a->residual_step, c, i));
  return v;
}

static void draw(kernel_trial *t, causal_call *k) {
  static const int64_t windows[] = {1, 2, 3, 4, 4, 5, 9};
  hk_causal_tile *a = &k->a;
  a->channels = trial_between(t, 1, k->channels ? 50 : 3);
  a->tokens = trial_between(t, 1, k->channels ? 20 : 150);
  a->window = windows[trial_between(t, 0, HK_COUNT(windows) - 1)];
  a->dilation = trial_chance(t, 70) ? 1 : trial_between(t, 2, 4);
  a->x_type = draw_type(t), a->y_type = trial_chance(t, 60) ? a->x_type : draw_type(t);
  if (t->integers) a->act = trial_chance(t, 50) ? HK_ACT_NONE : HK_ACT_RELU;
  else a->act = trial_chance(t, 50) ? HK_ACT_SILU : (hk_act)trial_between(t, HK_ACT_NONE, HK_ACT_LEAKY);
  if (a->act == HK_ACT_CLIP) a->a = -0.5f, a->b = 1;
  const int64_t reach = a->dilation * (a->window - 1), more = trial_chance(t, 50) ? reach : 0;
  a->x = tensor(t, k, a->x_type, &a->x_step, more);
  if (trial_chance(t, 30)) a->pre = tensor(t, k, a->x_type, &a->pre_step, more);
  if (trial_chance(t, 30)) a->post = tensor(t, k, a->x_type, &a->post_step, 0);
  if (trial_chance(t, 30)) a->residual = tensor(t, k, a->x_type, &a->residual_step, 0);
  a->f = parameters(t, k, &a->f_step, a->window);
  if (!more) a->history = parameters(t, k, &a->history_step, reach);
  if (trial_chance(t, 70)) a->bias = typed(t, HK_F32, a->channels);
}

static void check_causal(kernel_trial *t, bool channels) {
  causal_call k = {.channels = channels};
  hk_causal_tile *a = &k.a;
  draw(t, &k);
  const bool in_place = a->x_type == a->y_type && trial_chance(t, 30);
  a->y = in_place ? (void *)(uintptr_t)a->x : tensor(t, &k, a->y_type, &a->y_step, 0);
  if (in_place) a->y_step = a->x_step;
  double *want = malloc((size_t)(a->channels * a->tokens) * sizeof *want);
  if (!want) abort();
  for (int64_t i = 0; i < a->channels * a->tokens; i++) want[i] = output(&k, i / a->tokens, i % a->tokens);
  t->fn(a);
  for (int64_t i = 0; i < a->channels * a->tokens; i++) {
    const double got = hk_load_element(a->y_type, a->y, at(&k, a->y_step, i / a->tokens, i % a->tokens));
    const double size = want[i] < 0 ? -want[i] : want[i];
    const double room = 2e-5 + size * (a->y_type == HK_F32 ? 0 : a->y_type == HK_F16 ? 0x1p-10 : 0x1p-7);
    t->failed |= !(t->integers ? got == want[i] : got - want[i] <= room && want[i] - got <= room);
  }
  free(want);
}
void check_causalc(kernel_trial *t) { check_causal(t, true); }
void check_causalt(kernel_trial *t) { check_causal(t, false); }

/* Rows that lie densely, 1 to 5 that alternate, and odd strides; gaps keep their bytes. */
void check_spread(kernel_trial *t) {
  hk_spread_args a = {.height = trial_between(t, 1, 5), .width = trial_between(t, 1, 70), .type = draw_type(t)};
  const int way = (int)trial_between(t, 0, 2);
  a.back = trial_chance(t, 50);
  a.row = way == 0 ? a.width + trial_between(t, 0, 3) : way == 1 ? 1 : a.width * 3;
  a.column = way == 0 ? 1 : way == 1 ? a.height + (trial_chance(t, 20) ? 1 : 0) : trial_between(t, 2, 3);
  a.step = a.width + trial_between(t, 0, 3);
  const int64_t count = (a.height - 1) * a.row + (a.width - 1) * a.column + 1;
  const int64_t floats = (a.height - 1) * a.step + a.width, bytes = (int64_t)hk_type_bytes(a.type);
  a.matrix = typed(t, a.type, count);
  a.rows = typed(t, HK_F32, floats);
  char *matrix = malloc((size_t)(count * bytes));
  float *rows = malloc((size_t)floats * sizeof *rows);
  if (!matrix || !rows) abort();
  memcpy(matrix, a.matrix, (size_t)(count * bytes));
  memcpy(rows, a.rows, (size_t)floats * sizeof *rows);
  for (int64_t i = 0; i < a.height * a.width; i++) {
    const int64_t r = i / a.width, c = i % a.width, from = r * a.row + c * a.column, to = r * a.step + c;
    if (a.back) hk_store_element(a.type, matrix, from, (double)rows[to]);
    else rows[to] = (float)hk_load_element(a.type, matrix, from);
  }
  t->fn(&a);
  t->failed |= memcmp(matrix, a.matrix, (size_t)(count * bytes)) != 0;
  t->failed |= memcmp(rows, a.rows, (size_t)floats * sizeof *rows) != 0;
  free(matrix);
  free(rows);
}

static double slope(hk_act act, double z) {
  const double s = trial_act(HK_ACT_SIGMOID, 0, 0, 0, z);
  return act == HK_ACT_RELU ? z > 0 : act == HK_ACT_SILU ? s * (1 + z * (1 - s)) : 1;
}

/* z, dy and u as one call has them; z and the sums are compared. */
void check_causalg(kernel_trial *t) {
  hk_causal_back a = {.channels = trial_between(t, 1, 40), .tokens = trial_between(t, 1, 40)};
  a.window = trial_between(t, 1, 9), a.dilation = trial_between(t, 1, 3), a.along_tokens = trial_chance(t, 50);
  a.act = trial_chance(t, 50) ? HK_ACT_NONE : HK_ACT_RELU;
  if (!t->integers && trial_chance(t, 70)) a.act = HK_ACT_SILU;
  const int64_t reach = a.dilation * (a.window - 1);
  causal_call k = {.a = {.channels = a.channels, .tokens = a.tokens}, .channels = !a.along_tokens};
  a.z = tensor(t, &k, HK_F32, &a.z_step, 0);
  a.dy = tensor(t, &k, HK_F32, &a.dy_step, 0);
  a.u = parameters(t, &k, &a.u_step, a.tokens + reach);
  a.df = parameters(t, &k, &a.df_step, a.window);
  a.dbias = typed(t, HK_F32, a.channels);
  double *dz = malloc((size_t)(a.channels * a.tokens) * sizeof *dz);
  if (!dz) abort();
  for (int64_t i = 0; i < a.channels * a.tokens; i++) {
    const int64_t c = i / a.tokens, n = i % a.tokens;
    dz[i] = (double)a.dy[at(&k, a.dy_step, c, n)] * slope(a.act, (double)a.z[at(&k, a.z_step, c, n)]);
  }
  t->fn(&a);
  const double room = t->integers ? 0 : 1e-4;
  for (int64_t c = 0; c < a.channels; c++) {
    double bias = 0;
    for (int64_t n = 0; n < a.tokens; n++) {
      bias += dz[c * a.tokens + n];
      const double wrong = (double)a.z[at(&k, a.z_step, c, n)] - dz[c * a.tokens + n];
      t->failed |= !(wrong <= room && -wrong <= room);
    }
    t->failed |= !((double)a.dbias[c] - bias <= room && bias - (double)a.dbias[c] <= room);
    for (int64_t j = 0; j < a.window; j++) {
      double df = -(double)a.df[at(&k, a.df_step, c, j)];
      for (int64_t n = 0; n < a.tokens; n++)
        df += dz[c * a.tokens + n] * (double)a.u[at(&k, a.u_step, c, n + j * a.dilation)];
      t->failed |= !(df <= room && -df <= room);
    }
  }
  free(dz);
}
