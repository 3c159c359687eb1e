/* The caller's functions on fragments: a lane owns rows lane/4 and lane/4 + 8 of its warp's 16, so coordinates are
 * decoded once a row, and a function is called for values inside y alone. Included by finish_wide.cuh. */
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
/* hk_user on all accumulators; m0 is the consumer's first pixel. */
HK_DEV void user_act(const hk_cu_igemm *P, igemm_tile t, igemm_place place, int m0, float (*acc)[128]) {
  const int lane = threadIdx.x % 32, first = m0 + threadIdx.x / 32 % 4 * 16 + lane / 4, k0 = place.k0 + lane % 4 * 2;
#pragma unroll
  for (int i = 0; i < t.mi; ++i)
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int m = first + i * 64 + half * 8;
      if (m >= P->gm) continue;
      hk_cu_at at = user_at(P, m);
#pragma unroll
      for (int j = 0; j < t.bn / 8 * 2; ++j) {
        const int k = k0 + j / 2 * 8 + j % 2;
        at.k = place.group * (int)P->g.kg + k; /* an int, as the compiler sees: conversions stay short */
        float *v = &acc[i][j / 2 * 4 + half * 2 + j % 2];
        if (k < P->g.kg) *v = hk_user(at, *v, P->e.user);
      }
    }
}
#endif

#if defined(HK_USER2) || defined(HK_USER_STORE)
/* hk_user2 and hk_user_store on one step of a slab: rows m.. of the warp, `width` columns from col. */
HK_DEV void user_last(const hk_cu_igemm *P, igemm_place place, int width, int rows, int m, int col, int half, float *v) {
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
