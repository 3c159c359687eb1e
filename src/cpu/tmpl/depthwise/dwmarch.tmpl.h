/* dwm with 32 registers: walks down a strip of columns. An input row is loaded once and added to the accumulators of
 * every output row that reads it; the accumulators move up as rows are finished. Registers at stride 1: 3*MR
 * accumulators, 9 weights, one input. Included by dwm.tmpl.h. */

#define DWM_ROW(w, r) ((w) + (r) * DWM_WINDOW)

/* One strip of one block. */
typedef struct dwm_strip {
  const float *x;
  float *y;
  const float *c;
  v_f32 scale, bias;
  v_mask mask;
  int32_t lanes, first, last; /* first..last-1: columns of the strip's window that lie inside x */
} dwm_strip;

/* A row of accumulators and the row of weights for it. */
typedef struct dwm_use {
  v_f32 *acc;
  const v_f32 *w;
} dwm_use;

/* Adds an input row to the first `uses` of three rows of accumulators. inside: all columns lie inside x, and so do all
 * lanes on ISAs without free masks. */
HK_INLINE void dwm_row(const int columns, const int stride, const bool inside, const int uses, const hk_dwm_args *a,
                       const dwm_strip *s, const float *x, const dwm_use u[3]) {
  HK_UNROLL for (int m = 0; m < (columns - 1) * stride + DWM_WINDOW; m++, x += a->x_col) {
    if (!inside && (m < s->first || m >= s->last)) continue;
    v_f32 v = !HK_MASKS_FREE && inside ? v_load(x) : v_load_m(x, s->mask);
    HK_HOLD(v);
    HK_UNROLL for (int t = 0; t < DWM_WINDOW; t++) {
      const int j = (m - t) / stride;
      if (m < t || (m - t) % stride || j >= columns) continue;
      u[0].acc[j] = v_fma(v, u[0].w[t], u[0].acc[j]);
      if (uses > 1) u[1].acc[j] = v_fma(v, u[1].w[t], u[1].acc[j]);
      if (uses > 2) u[2].acc[j] = v_fma(v, u[2].w[t], u[2].acc[j]);
    }
  }
}

HK_INLINE void dwm_store(const int columns, const hk_dwm_args *a, const dwm_strip *s, float *y, const float *c,
                         v_f32 *acc) {
  if (a->fuse.flags) {
    HK_UNROLL for (int j = 0; j < columns; j++) {
      v_f32 r = v_zero();
      if (a->fuse.flags & (HK_DW_BEFORE | HK_DW_AFTER)) r = v_load_m(c + j * a->c_col, s->mask);
      acc[j] = fuse_vector(&a->fuse, acc[j], s->scale, s->bias, r);
    }
  }
  if (s->lanes == HK_VW) {
    HK_UNROLL for (int j = 0; j < columns; j++) v_store(y + j * a->y_col, acc[j]);
  } else {
    HK_UNROLL for (int j = 0; j < columns; j++) v_store_n(y + j * a->y_col, acc[j], s->lanes);
  }
}

HK_INLINE void dwm_clear(const int columns, v_f32 *acc) {
  HK_UNROLL for (int j = 0; j < columns; j++) acc[j] = v_zero();
}
HK_INLINE void dwm_slide(const int columns, v_f32 *to, const v_f32 *from) {
  HK_UNROLL for (int j = 0; j < columns; j++) to[j] = from[j];
}

/* Rows of x count from the first that the first output row reads. */
HK_INLINE void dwm_down_1(const int columns, const bool inside, const hk_dwm_args *a, const dwm_strip *s,
                          const v_f32 *w) {
  v_f32 top[MR], mid[MR], low[MR];
  const float *x = s->x, *c = s->c;
  float *y = s->y;
  dwm_clear(columns, top);
  dwm_clear(columns, mid);
  for (int64_t h = 0; h < a->rows + DWM_WINDOW - 1; h++, x += a->x_row) {
    dwm_clear(columns, low);
    const dwm_use u[3] = {{top, DWM_ROW(w, 2)}, {mid, DWM_ROW(w, 1)}, {low, w}};
    if (dwm_inside(a, h)) dwm_row(columns, 1, inside, 3, a, s, x, u);
    if (h >= DWM_WINDOW - 1) {
      dwm_store(columns, a, s, y, c, top);
      y += a->y_row;
      if (c) c += a->c_row;
    }
    dwm_slide(columns, top, mid);
    dwm_slide(columns, mid, low);
  }
}

HK_INLINE void dwm_down_2(const int columns, const bool inside, const hk_dwm_args *a, const dwm_strip *s,
                          const v_f32 *w) {
  v_f32 top[MR], low[MR];
  const float *x = s->x, *c = s->c;
  float *y = s->y;
  dwm_clear(columns, top);
  const dwm_use first[3] = {{top, w}}, odds[3] = {{top, DWM_ROW(w, 1)}}, evens[3] = {{top, DWM_ROW(w, 2)}, {low, w}};
  if (dwm_inside(a, 0)) dwm_row(columns, 2, inside, 1, a, s, x, first);
  for (int64_t p = 0; p < a->rows; p++) {
    const float *odd = x + a->x_row;
    x = odd + a->x_row;
    dwm_clear(columns, low);
    if (dwm_inside(a, 2 * p + 1)) dwm_row(columns, 2, inside, 1, a, s, odd, odds);
    if (dwm_inside(a, 2 * p + 2)) dwm_row(columns, 2, inside, 2, a, s, x, evens);
    dwm_store(columns, a, s, y, c, top);
    y += a->y_row;
    if (c) c += a->c_row;
    dwm_slide(columns, top, low);
  }
}

HK_INLINE void dwm_blocks(const int columns, const int stride, const hk_dwm_args *a) {
  for (int64_t b = 0; b < a->blocks; b++) {
    const int64_t at = b * HK_VW;
    const float *f = a->f + at * DWM_WINDOW * DWM_WINDOW;
    dwm_strip s = {
        .x = a->x + at, .y = a->y + at, .c = a->c ? a->c + at : a->c, .first = a->col_first, .last = a->col_last};
    s.lanes = b == a->blocks - 1 ? a->last_lanes : HK_VW;
    s.mask = v_tail(s.lanes);
    s.scale = !a->scale ? v_set1(1.0f) : a->scale_one ? v_bcast(a->scale) : v_load_m(a->scale + at, s.mask);
    s.bias = a->bias ? v_load_m(a->bias + at, s.mask) : v_zero();
    v_f32 w[DWM_WINDOW * DWM_WINDOW];
    HK_UNROLL for (int t = 0; t < DWM_WINDOW * DWM_WINDOW; t++) w[t] = v_load(f + t * HK_VW);
    const bool inside =
        s.first == 0 && s.last == (columns - 1) * stride + DWM_WINDOW && (HK_MASKS_FREE || s.lanes == HK_VW);
    if (stride == 1 && inside) dwm_down_1(columns, true, a, &s, w);
    else if (stride == 1) dwm_down_1(columns, false, a, &s, w);
    else if (inside) dwm_down_2(columns, true, a, &s, w);
    else dwm_down_2(columns, false, a, &s, w);
  }
}

#define DWM_BLOCKS(n)                                                           \
  static __attribute__((noinline)) void dwm_blocks_##n(const hk_dwm_args *a) {  \
    if (a->stride == 1) dwm_blocks(n, 1, a);                                    \
    else dwm_blocks(n, 2, a);                                                   \
  }
DWM_BLOCKS(1) DWM_BLOCKS(2) DWM_BLOCKS(3)
DWM_BLOCKS(4) DWM_BLOCKS(5) DWM_BLOCKS(6) DWM_BLOCKS(7)

void HK_NAME(const void *args) {
  const hk_dwm_args *a = args;
  switch (a->columns) {
    case 1: dwm_blocks_1(a); return;
    case 2: dwm_blocks_2(a); return;
    case 3: dwm_blocks_3(a); return;
    case 4: dwm_blocks_4(a); return;
    case 5: dwm_blocks_5(a); return;
    case 6: dwm_blocks_6(a); return;
    case 7: dwm_blocks_7(a); return;
  }
}
