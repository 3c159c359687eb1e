/* The data of a case, from its seed. Integers: magnitudes (and for narrow results sparsity) such that every sum, with
 * bias and residual, is exact in the result's type. Floats: N(0,1). Elements that the strides skip are NaN (int8:
 * junk), so that whoever reads them is seen. A quarter of the integer cases with a residual or user function have a
 * zero filter and a position-coded residual: random data hides wrong coordinates. With WITH_NONFINITE a few weights
 * (and in a quarter of such cases a few elements of x) are Inf or NaN. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "check/check.h"

/* ---- types, decoded here on purpose without the library */
static double half_decode(unsigned h) {
  int e = h >> 10 & 31, m = h & 1023;
  double v = e == 31 ? (m ? NAN : INFINITY) : e ? ldexp(1024 + m, e - 25) : ldexp(m, -24);
  return h & 0x8000 ? -v : v;
}

static double f8_decode(unsigned b) {
  int e = b >> 3 & 15, m = b & 7;
  double v = e == 15 && m == 7 ? NAN : e ? ldexp(8 + m, e - 10) : ldexp(m, -9);
  return b & 0x80 ? -v : v;
}

double check_decode(hk_type type, const void *bytes, int64_t i) {
  uint16_t h;
  uint32_t w;
  float f;
  switch (type) {
  case HK_F32: return ((const float *)bytes)[i];
  case HK_F64: return ((const double *)bytes)[i];
  case HK_F16: memcpy(&h, (const char *)bytes + 2 * i, 2); return half_decode(h);
  case HK_BF16:
    memcpy(&h, (const char *)bytes + 2 * i, 2);
    w = (uint32_t)h << 16;
    memcpy(&f, &w, 4);
    return f;
  case HK_S8: return ((const int8_t *)bytes)[i];
  case HK_U8: return ((const uint8_t *)bytes)[i];
  case HK_S32: return ((const int32_t *)bytes)[i];
  default: return f8_decode(((const uint8_t *)bytes)[i]);
  }
}

/* ---- magnitudes */
static bool is_int8(hk_type t) { return t == HK_S8 || t == HK_U8; }

static int64_t exact_limit(hk_type y) {
  switch (y) {
  case HK_F16: return 1 << 11;
  case HK_BF16: return 1 << 8;
  case HK_F8E4M3: return 1 << 4;
  case HK_S8:
  case HK_U8: return 1 << 7;
  default: return 1 << 24;
  }
}

typedef struct plan_of_values {
  int64_t most;       /* |x|, |f| */
  int64_t every;      /* one of so many taps is not zero */
  int64_t most_other; /* bias and residual */
  bool coded;         /* zero filter, position-coded residual */
} plan_of_values;

/* scale is at most 2, so products may use a quarter of the limit; bias and residual (beta up to 2) an eighth each. */
static plan_of_values integers_plan(const check_case *t, const check_shape *s) {
  int64_t limit = exact_limit(t->p.y_type), room = limit / 4;
  plan_of_values v = {.most = 4, .every = 1};
  while (v.most > 1 && s->gk * v.most * v.most > room) v.most /= 2;
  if (s->gk * v.most * v.most > room) v.every = (s->gk + room - 1) / room;
  v.most_other = limit / 16 < 8 ? limit / 16 : 8;
  v.coded = (t->e.residual || t->with & (WITH_USER | WITH_USER2 | WITH_STORE)) && t->seed % 4 == 0;
  return v;
}

static double uniform(uint64_t *r, int64_t most) { return (double)(cli_random_below(r, 2 * most + 1) - most); }

/* ---- filling */
static double clamp_to(hk_type type, double v) {
  if (type == HK_S8) return v < -128 ? -128 : v > 127 ? 127 : v;
  if (type == HK_U8) return v < 0 ? 0 : v > 255 ? 255 : v;
  return v;
}

/* Converts doubles to the type (as the library does) and back: what counts is what the type holds. */
static bool settle(check_vector *v) {
  size_t bytes = hk_type_bytes(v->type);
  v->bytes = malloc((size_t)v->elements * bytes + 1);
  if (!v->bytes || hk_convert(HK_F64, v->value, v->type, v->bytes, v->elements)) return false;
  for (int64_t i = 0; i < v->elements; i++) v->value[i] = check_decode(v->type, v->bytes, i);
  return true;
}

static bool start(check_vector *v, hk_type type, int64_t elements) {
  v->type = type;
  v->elements = elements;
  v->value = malloc(sizeof *v->value * (size_t)(elements + 1));
  if (!v->value) return false;
  bool integer = is_int8(type) || type == HK_S32;
  for (int64_t i = 0; i < elements; i++) v->value[i] = integer ? (double)(i * 37 % 101) : NAN;
  return true;
}

typedef double (*value_fn)(void *context, const int64_t index[6]);

/* Visits every element that the axes reach, in order; the last to write a shared element wins. */
static void fill(check_vector *v, const check_axes *a, value_fn value, void *context) {
  int64_t i[6] = {0};
  if (!a->elements) return;
  for (;;) {
    int64_t at[3] = {i[3], i[4], i[5]};
    v->value[check_offset(a, i[0], i[1], i[2], at) + a->below] = value(context, i);
    int d = 5;
    while (d >= 0 && ++i[d] == a->size[d]) i[d--] = 0;
    if (d < 0) return;
  }
}

enum { NORMALS = 4096 };
typedef struct source {
  const check_case *t;
  const check_shape *s;
  plan_of_values plan;
  check_kind kind;
  uint64_t random;
  const double *f_zero;
  int64_t nonfinite;    /* one of so many elements is Inf or NaN; 0: none */
  const double *normal; /* of a large tensor: NORMALS values to choose from */
} source;

/* Each tensor has its own random stream, so that the weights do not depend on the size of x: see check/like.c. */
static void stream_start(source *c, int which) { c->random = cli_random_mix(c->t->seed, 77 + 16 * c->kind + which); }

static double real_value(source *c) {
  static const double strange[] = {INFINITY, -INFINITY, NAN};
  if (c->nonfinite && cli_random_below(&c->random, c->nonfinite) == 0) return strange[cli_random_below(&c->random, 3)];
  return c->normal ? c->normal[cli_random(&c->random) % NORMALS] : cli_random_normal(&c->random);
}

static double x_value(void *context, const int64_t i[6]) {
  source *c = context;
  (void)i;
  hk_type type = c->t->p.x_type;
  if (c->kind == KIND_INTEGERS) return clamp_to(type, c->t->p.x_zero + uniform(&c->random, c->plan.most));
  if (is_int8(type)) return (double)cli_random_below(&c->random, 256) - (type == HK_S8 ? 128 : 0);
  return real_value(c);
}

static double f_value(void *context, const int64_t i[6]) {
  source *c = context;
  const check_shape *s = c->s;
  hk_type type = c->t->p.f_type;
  int64_t k = i[0] * s->k + i[1];
  double zero = c->f_zero ? c->f_zero[k] : c->t->p.f_zero;
  if (c->kind == KIND_FLOATS) {
    if (is_int8(type)) return (double)cli_random_below(&c->random, 256) - (type == HK_S8 ? 128 : 0);
    return real_value(c);
  }
  int64_t tap = ((i[2] * s->window[0] + i[3]) * s->window[1] + i[4]) * s->window[2] + i[5];
  double v = uniform(&c->random, c->plan.most);
  bool off = c->plan.coded || (tap + k * 7 + (int64_t)(c->t->seed % 64)) % c->plan.every;
  return clamp_to(type, zero + (off ? 0 : v));
}

static double c_value(void *context, const int64_t i[6]) {
  source *c = context;
  int64_t most = c->plan.most_other;
  if (c->kind == KIND_FLOATS) return is_int8(c->t->p.y_type) ? uniform(&c->random, 60) : cli_random_normal(&c->random);
  if (!c->plan.coded) return uniform(&c->random, most);
  return (double)((i[0] * 31 + i[1] * 17 + i[2] * 5 + i[3] * 7 + i[4] * 11 + i[5] * 3) % (2 * most + 1) - most);
}

/* Every fifth state is omitted by the caller, which means zeros. */
static double state_value(void *context, const int64_t i[6]) {
  return ((source *)context)->t->seed % 5 ? x_value(context, i) : 0;
}

static bool vector_make(check_data *d, int which, hk_type type, int64_t count, source *c) {
  check_vector *v = &d->v[which];
  static const double pieces[] = {0.5, 0.25, 2, 1};
  if (!start(v, type, count)) return false;
  stream_start(c, which);
  bool int8 = cli_problem_is_int8(&c->t->p);
  for (int64_t i = 0; i < count; i++) {
    double z;
    if (which == V_F_ZERO) z = clamp_to(c->t->p.f_type, c->t->p.f_zero + uniform(&c->random, 3));
    else if (which == V_SLOPES) z = pieces[cli_random_below(&c->random, 4)];
    else if (c->kind == KIND_INTEGERS)
      z = which == V_SCALE ? (double[]){1, 2, -1}[cli_random_below(&c->random, 3)]
                           : uniform(&c->random, c->plan.most_other);
    else if (which == V_SCALE) {
      z = (0.5 + (double)cli_random_below(&c->random, 1000) / 1000) * (cli_random(&c->random) & 1 ? 1 : -1);
      if (int8) z *= 40 / (70.0 * 70.0 * sqrt((double)(c->s->gk + 1)));
    } else z = int8 ? uniform(&c->random, 1000) : cli_random_normal(&c->random);
    v->value[i] = z;
  }
  return settle(v);
}

static bool owned_make(check_data *d, const check_axes *a) {
  d->owned = calloc((size_t)a->elements + 1, 1);
  if (!d->owned || !a->elements) return d->owned != NULL;
  int64_t i[6] = {0};
  for (;;) {
    d->owned[check_offset(a, i[0], i[1], i[2], (int64_t[3]){i[3], i[4], i[5]}) + a->below] = 1;
    int k = 5;
    while (k >= 0 && ++i[k] == a->size[k]) i[k--] = 0;
    if (k < 0) return true;
  }
}

static bool tensor_make(check_data *d, int which, hk_type type, const check_axes *a, value_fn value, source *c) {
  static double normals[NORMALS];
  if (!start(&d->v[which], type, a->elements)) return false;
  stream_start(c, which);
  if (a->elements > 4 * NORMALS && c->kind == KIND_FLOATS)
    for (int i = 0; i < NORMALS; i++) normals[i] = cli_random_normal(&c->random);
  c->normal = a->elements > 4 * NORMALS ? normals : NULL;
  fill(&d->v[which], a, value, c);
  c->normal = NULL;
  return settle(&d->v[which]);
}

static bool tensors_make(check_data *d, source *c) {
  const hk_problem *p = &c->t->p;
  const check_shape *s = c->s;
  const bool nonfinite = c->t->with & WITH_NONFINITE && c->kind == KIND_FLOATS;
  d->x_has_nonfinite = nonfinite && c->t->seed % 4 == 0;
  c->nonfinite = d->x_has_nonfinite ? s->x.elements / 2 + 1 : 0;
  bool ok = tensor_make(d, V_X, p->x_type, &s->x, x_value, c);
  c->nonfinite = nonfinite ? (s->f.elements < 40 ? 8 : s->f.elements / 3) : 0;
  ok = ok && tensor_make(d, V_F, p->f_type, &s->f, f_value, c);
  c->nonfinite = 0;
  if (ok && c->t->e.residual) ok = tensor_make(d, V_C, p->y_type, &s->residual, c_value, c);
  if (ok && c->t->with & WITH_STATE) {
    check_axes a = {.size = {1, s->n, p->c, 1, 1, s->past}, .stride = {0, p->c * s->past, s->past, 0, 0, 1}};
    a.elements = s->n * p->c * s->past;
    ok = tensor_make(d, V_STATE, p->x_type, &a, state_value, c);
  }
  return ok;
}

bool check_data_make(check_data *d, const check_case *t, const check_shape *s, check_kind kind) {
  memset(d, 0, sizeof *d);
  d->kind = kind;
  source c = {.t = t, .s = s, .kind = kind};
  if (kind == KIND_INTEGERS) c.plan = integers_plan(t, s);
  const hk_epilogue *e = &t->e;
  hk_type wide = cli_problem_is_double(&t->p) ? HK_F64 : HK_F32, bias = cli_problem_is_int8(&t->p) ? HK_S32 : wide;
  bool ok = owned_make(d, &s->y);
  if (ok && t->with & WITH_F_ZEROS) ok = vector_make(d, V_F_ZERO, HK_S32, t->p.k, &c);
  c.f_zero = d->v[V_F_ZERO].value;
  if (ok && e->scale) ok = vector_make(d, V_SCALE, wide, e->scale == 1 ? 1 : t->p.k, &c);
  if (ok && e->bias) ok = vector_make(d, V_BIAS, bias, t->p.k, &c);
  if (ok && (e->act == HK_ACT_PRELU || e->act2 == HK_ACT_PRELU)) ok = vector_make(d, V_SLOPES, wide, t->p.k, &c);
  return ok && tensors_make(d, &c);
}

void check_data_free(check_data *d) {
  for (int i = 0; i < V_COUNT; i++) {
    free(d->v[i].bytes);
    free(d->v[i].value);
  }
  free(d->owned);
  memset(d, 0, sizeof *d);
}
