/* User functions on fragments: a lane owns rows lane/4 and lane/4 + 8 of its warp's 16, so coordinates are decoded
 * once per row. Functions are called for values inside y only. Included by finish_wide.cuh. */
#if defined(HK_USER) || defined(HK_USER2) || defined(HK_USER_STORE)
HK_DEV hk_cu_at user_at(const hk_cu_igemm *P, int m) {
  hk_cu_at at;
#pragma unroll
  for (int d = 2; d >= 0; --d) {
    const int up = div_by(m, P->by_out[d]);
    at.p[d] = m - up * (int)P->by_out[d].d;
    m = up;
  }
  at.n = m;
  at.k = 0;
  return at;
}
#endif

#ifdef HK_USER
/* Calls hk_user on all accumulators; m0 is the consumer's first pixel. Columns are the outer loop, so that what
 * depends on k alone is computed once for all rows of a thread; tiles inside y need no bounds tests. */
HK_DEV void user_rows(const hk_cu_igemm *P, igemm_tile t, igemm_place place, int first, int inside, float (*acc)[128]) {
  const int k0 = place.k0 + threadIdx.x % 4 * 2;
  hk_cu_at at[4];
#pragma unroll
  for (int r = 0; r < 2 * t.mi; ++r) at[r] = user_at(P, first + r / 2 * 64 + r % 2 * 8);
#pragma unroll
  for (int j = 0; j < t.bn / 8 * 2; ++j) {
    const int k = k0 + j / 2 * 8 + j % 2;
#pragma unroll
    for (int r = 0; r < 2 * t.mi; ++r) {
      at[r].k = place.group * (int)P->g.kg + k; /* visibly an int: keeps the conversions short */
      float *v = &acc[r / 2][j / 2 * 4 + r % 2 * 2 + j % 2];
      if (inside || (k < P->g.kg && first + r / 2 * 64 + r % 2 * 8 < P->gm)) *v = hk_user(at[r], *v, P->e.user);
    }
  }
}
HK_DEV void user_act(const hk_cu_igemm *P, igemm_tile t, igemm_place place, int m0, float (*acc)[128]) {
  const int first = m0 + threadIdx.x / 32 % 4 * 16 + threadIdx.x % 32 / 4;
  if (m0 + 64 * t.mi <= P->gm && place.k0 + t.bn <= P->g.kg) user_rows(P, t, place, first, 1, acc);
  else user_rows(P, t, place, first, 0, acc);
}
#endif

#if defined(HK_USER2) || defined(HK_USER_STORE)
/* Calls hk_user2 and hk_user_store on one step of a slab: rows m.. of the warp, `width` columns from col. */
HK_DEV void user_last(const hk_cu_igemm *P, igemm_place place, int width, int rows, int m, int col, int half,
                      float *v) {
  const int lane = threadIdx.x % 32, k0 = place.k0 + col + lane % 4 * 2;
#pragma unroll
  for (int h = 0; h < rows / 8; ++h) {
    if (m + h * 8 + lane / 4 >= P->gm) continue;
    hk_cu_at at = user_at(P, m + h * 8 + lane / 4);
#pragma unroll
    for (int j = 0; j < width / 4; ++j) {
      const int k = k0 + j / 2 * 8 + j % 2;
      at.k = place.group * (int)P->g.kg + k;
      float *p = &v[j / 2 * 4 + (half + h) * 2 + j % 2];
      if (k >= P->g.kg) continue;
#ifdef HK_USER2
      *p = hk_user2(at, *p, P->e.user);
#endif
#ifdef HK_USER_STORE
      hk_user_store(at, *p, P->e.user);
#endif
    }
  }
}
#endif
