/* What the general kernels do with a sum, for one accumulator type: scale, bias, activation, gate, residual, store,
 * for any y. Expects REAL, SUM, PARAM (of scale and slopes), LOAD_REAL, STORE, NAME, IS_INT as direct.tmpl.cuh does,
 * and leaves them defined. With STAGED scale and bias have been applied already. */

#ifndef STAGED
/* acc * scale + bias; for s32 sums (acc + bias) * scale. */
HK_DEV REAL NAME(affine)(const hk_cu_epi *e, SUM acc, hk_cu_i64 k) {
  const REAL s = e->scale ? ((const PARAM *)e->scale)[e->scale_one ? 0 : k] : (REAL)1;
#if IS_INT
  const REAL v = (REAL)((hk_cu_i64)acc + (e->bias ? ((const int *)e->bias)[k] : 0));
  return e->scale ? v * s : v;
#else
  const REAL v = e->scale ? acc * s : acc;
  return e->bias ? v + ((const PARAM *)e->bias)[k] : v;
#endif
}
#endif

HK_DEV REAL NAME(act)(const hk_cu_epi *e, int act, float a, float b, hk_cu_at at, REAL v) {
  const REAL slope = e->slopes ? ((const PARAM *)e->slopes)[at.k] : (REAL)0;
#ifdef HK_USER
  if (act == HK_CU_USER) return (REAL)hk_user(at, (float)v, e->user);
#endif
  (void)at;
  return (REAL)act_f64(act, a, b, slope, v);
}

HK_DEV void NAME(finish)(const hk_cu_direct *P, hk_cu_at at, hk_cu_i64 group, hk_cu_i64 k, REAL v, REAL partner) {
  const hk_cu_geom *g = &P->g;
  const hk_cu_epi *e = &P->e;
  const hk_cu_i64 co = g->c.offset + channel_offset(g, &g->c, e->gate, group, k) + pixel_offset(&g->c, at.n, at.p);
  const REAL c = e->residual ? (REAL)e->beta * LOAD_REAL(e->c, co, g->y_type) : (REAL)0;
  if (e->residual == 2) v += c;
  REAL r = NAME(act)(e, e->act, e->a, e->b, at, v);
  if (e->gate) {
    hk_cu_at bt = at;
    bt.k += g->groups * g->kg / 2;
    const REAL b = NAME(act)(e, e->act2, e->a2, e->b2, bt, partner);
    r = e->gate == 1 ? r * b : b * r + (1 - b) * v;
  }
  if (e->residual == 1) r += c;
#ifdef HK_USER2
  r = (REAL)hk_user2(at, (float)r, e->user);
#endif
#ifdef HK_USER_STORE
  hk_user_store(at, (float)r, e->user);
#else
  const hk_cu_i64 yo = g->y.offset + channel_offset(g, &g->y, e->gate, group, k) + pixel_offset(&g->y, at.n, at.p);
  if (g->y_zero) r += g->y_zero; /* of an int8 y, whatever the sums are */
  STORE(e->y, yo, g->y_type, r);
#endif
}

/* Decodes output i: its position, its channel over all groups in at->k; returns the group of that channel. */
HK_DEV hk_cu_i64 NAME(place)(const hk_cu_direct *P, hk_cu_i64 i, hk_cu_at *at) {
  const hk_cu_geom *g = &P->g;
  if (P->few) {
    int rest = (int)i, up;
    if (P->k_inner) up = div_by(rest, P->by_k), at->k = rest - up * (int)P->by_k.d, rest = up;
#pragma unroll
    for (int d = 2; d >= 0; --d) up = div_by(rest, P->by_out[d]), at->p[d] = rest - up * (int)P->by_out[d].d, rest = up;
    if (!P->k_inner) up = div_by(rest, P->by_k), at->k = rest - up * (int)P->by_k.d, rest = up;
    at->n = rest;
    return div_by((int)at->k, P->by_kg);
  }
  const hk_cu_i64 ks = g->groups * g->kg / (P->e.gate ? 2 : 1);
  hk_cu_i64 rest = i;
  if (P->k_inner) { at->k = rest % ks; rest /= ks; }
#pragma unroll
  for (int d = 2; d >= 0; --d) { at->p[d] = (int)(rest % g->out[d]); rest /= g->out[d]; }
  if (!P->k_inner) { at->k = rest % ks; rest /= ks; }
  at->n = rest;
  return at->k / g->kg;
}
