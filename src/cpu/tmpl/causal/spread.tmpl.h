/* spread: a strided matrix of f32, f16 or bf16 to rows of f32, or back. Rows that lie densely are converted a vector at
 * a time. So are 2 to 4 rows whose elements alternate in memory (states as [c][3], weights as [c][4]): VW*m elements
 * are loaded and their lanes sorted, or sorted and stored. Everything else goes element by element. Define HK_NAME,
 * include a vocabulary, then this. */
#include "cpu/tmpl/causal/typed.tmpl.h"
#include "cpu/tmpl/common/unroll.tmpl.h"

INLINE void convert_rows(const hk_spread_args *r, hk_type type) {
  for (int64_t i = 0; i < r->height; i++) {
    float *rows = r->rows + i * r->step;
    const int64_t whole = r->width / HK_VW * HK_VW, at = i * r->row, n = r->width - whole;
    if (r->back) {
      for (int64_t j = 0; j < whole; j += HK_VW) put(type, r->matrix, at + j, v_load(rows + j));
      if (n) put_part(type, r->matrix, at + whole, get_part(HK_F32, rows, whole, n), n);
    } else {
      for (int64_t j = 0; j < whole; j += HK_VW) v_store(rows + j, get(type, r->matrix, at + j));
      if (n) put_part(HK_F32, rows, whole, get_part(type, r->matrix, at + whole, n), n);
    }
  }
}

static __attribute__((noinline)) void convert_each(const hk_spread_args a, int64_t first) {
  const hk_spread_args *r = &a;
  for (int64_t i = 0; i < r->height; i++)
    for (int64_t j = first; j < r->width; j++) {
      const int64_t at = i * r->row + j * r->column;
      if (r->back) put_one(r->type, r->matrix, at, r->rows[i * r->step + j]);
      else r->rows[i * r->step + j] = get_one(r->type, r->matrix, at);
    }
}

#if HK_VW == 16
/* Lane l of the result is lane s[l] of the m vectors one after the other. */
INLINE v_f32 pick(const v_f32 *v, const int m, __m512i s) {
  v_f32 p = _mm512_permutex2var_ps(v[0], s, v[1]);
  const __mmask16 beyond = _mm512_cmpge_epi32_mask(s, _mm512_set1_epi32(32));
  if (m == 3) p = _mm512_mask_permutexvar_ps(p, beyond, s, v[2]);
  if (m == 4) p = _mm512_mask_blend_ps(beyond, p, _mm512_permutex2var_ps(v[2], s, v[3]));
  return p;
}
/* Memory holds lane l of row e at l*m + e. Back, element g of it comes from row g%m, lane g/m. */
INLINE int64_t sort_lanes(const hk_spread_args *r, hk_type type, const int m, const bool back) {
  const __m512i iota = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
  const __m512i many = _mm512_set1_epi32(m), part = _mm512_set1_epi32(m == 3 ? 21846 : 65536 / m); /* g/m: g*part>>16 */
  __m512i s[4];
  HK_UNROLL for (int e = 0; e < m; e++) {
    const __m512i g = _mm512_add_epi32(iota, _mm512_set1_epi32(16 * e));
    const __m512i lane = _mm512_srli_epi32(_mm512_mullo_epi32(g, part), 16);
    const __m512i row = _mm512_sub_epi32(g, _mm512_mullo_epi32(lane, many));
    if (back) s[e] = _mm512_add_epi32(_mm512_slli_epi32(row, 4), lane);
    else s[e] = _mm512_add_epi32(_mm512_mullo_epi32(iota, many), _mm512_set1_epi32(e));
  }
  int64_t j = 0;
  for (; j + 16 <= r->width; j += 16) {
    v_f32 v[4];
    HK_UNROLL for (int e = 0; e < m; e++)
      v[e] = back ? v_load(r->rows + e * r->step + j) : get(type, r->matrix, j * m + e * 16);
    HK_UNROLL for (int e = 0; e < m; e++) {
      const v_f32 p = pick(v, m, s[e]);
      if (back) put(type, r->matrix, j * m + e * 16, p);
      else v_store(r->rows + e * r->step + j, p);
    }
  }
  return j;
}
#elif HK_VW > 1
INLINE int64_t sort_lanes(const hk_spread_args *r, hk_type type, const int m, const bool back) {
  int64_t j = 0;
  for (; j + HK_VW <= r->width; j += HK_VW) {
    float lane[4 * HK_VW];
    v_f32 v[4], p[4];
    if (back) {
      for (int e = 0; e < m; e++)
        for (int l = 0; l < HK_VW; l++) lane[l * m + e] = r->rows[e * r->step + j + l];
      HK_UNROLL for (int e = 0; e < m; e++) put(type, r->matrix, j * m + e * HK_VW, v_load(lane + e * HK_VW));
      continue;
    }
    HK_UNROLL for (int e = 0; e < m; e++) v[e] = get(type, r->matrix, j * m + e * HK_VW);
    if (m == 3) {
      HK_UNROLL for (int e = 0; e < m; e++) v_store(lane + e * HK_VW, v[e]);
      v_deinterleave3(lane, p);
    } else if (m == 2) {
      p[0] = v_even(v[0], v[1]), p[1] = v_odd(v[0], v[1]);
    } else {
      const v_f32 a = v_even(v[0], v[1]), b = v_even(v[2], v[3]), c = v_odd(v[0], v[1]), d = v_odd(v[2], v[3]);
      p[0] = v_even(a, b), p[1] = v_even(c, d), p[2] = v_odd(a, b), p[3] = v_odd(c, d);
    }
    HK_UNROLL for (int e = 0; e < m; e++) v_store(r->rows + e * r->step + j, p[e]);
  }
  return j;
}
#else
INLINE int64_t sort_lanes(const hk_spread_args *r, hk_type type, const int m, const bool back) {
  (void)r, (void)type, (void)m, (void)back;
  return 0;
}
#endif

INLINE int64_t sort_rows(const hk_spread_args *r, hk_type type, const int m) {
  return r->back ? sort_lanes(r, type, m, true) : sort_lanes(r, type, m, false);
}

INLINE void run(const hk_spread_args *r, hk_type type) {
  int64_t done = 0;
  if (r->column == 1) {
    convert_rows(r, type);
    return;
  }
  if (r->row == 1 && r->column == r->height) {
    if (r->height == 2) done = sort_rows(r, type, 2);
    if (r->height == 3) done = sort_rows(r, type, 3);
    if (r->height == 4) done = sort_rows(r, type, 4);
  }
  if (done < r->width) convert_each(*r, done);
}

/* args is copied, so that stores cannot change it and its fields stay in registers. */
static void run_f32(hk_spread_args a) { run(&a, HK_F32); }
static void run_f16(hk_spread_args a) { run(&a, HK_F16); }
static void run_bf16(hk_spread_args a) { run(&a, HK_BF16); }

void HK_NAME(const void *args) {
  const hk_spread_args *r = args;
  if (r->type == HK_F32) run_f32(*r);
  else if (r->type == HK_F16) run_f16(*r);
  else run_bf16(*r);
}
