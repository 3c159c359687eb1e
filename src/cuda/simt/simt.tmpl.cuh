/* Implicit GEMM on the scalar units with tiles of 16 TM x 16 TN outputs: any strides, any dilation of either side,
 * both kinds of groups. Rows are output positions of all images, columns the output channels of a group, products the
 * taps and channels of a window. Expects what finish.tmpl.cuh expects, and OPERAND (loads one value), VECTORS (0 or 1:
 * it is f32 in memory), TM, TN, TILE (names) and RESIDENT (blocks per SM); undefines these six.
 *
 * Thread (tx, ty) owns rows ty * 4 + {0..3} (+ 64) and columns tx * 4 + {0..3} (+ 64), fewer where TM or TN is less
 * than 8. A step is HK_SIMT_STEP products: while a block multiplies one step from shared memory, the operands of the
 * next are on their way into registers, and 8 threads decode the products of the one after that. The sum of an output
 * runs through its products in order, so tiles do not change its bits; slices do.
 *
 * The loads of a step are spread over threads in one of three ways: neighbouring threads take neighbouring products of
 * a row or column, or neighbouring rows or columns, or, where VECTORS is 1 and channels are contiguous and aligned,
 * each several neighbouring products by one access. */

#define BM (16 * TM)
#define BN (16 * TN)
#define XP HK_SIMT_PITCH(BM)
#define FP HK_SIMT_PITCH(BN)
#define STAGE (HK_SIMT_STEP * (XP + FP)) /* in values: x[product][row], then f[product][column] */
#define XS ((BM * HK_SIMT_STEP + HK_SIMT_THREADS - 1) / HK_SIMT_THREADS) /* values of x per thread and step */
#define FS ((BN * HK_SIMT_STEP + HK_SIMT_THREADS - 1) / HK_SIMT_THREADS)
#define VM (TM < 4 ? TM : 4) /* neighbouring rows of a thread */
#define VN (TN < 4 ? TN : 4)

typedef struct __align__(VM * sizeof(SUM)) TILE(rows) { SUM v[VM]; } TILE(rows);
typedef struct __align__(VN * sizeof(SUM)) TILE(columns) { SUM v[VN]; } TILE(columns);
typedef struct __align__(XS * sizeof(SUM)) TILE(x_values) { SUM v[XS]; } TILE(x_values);
typedef struct __align__(FS * sizeof(SUM)) TILE(f_values) { SUM v[FS]; } TILE(f_values);

/* What a thread loads in each step: value i of x is product p + i * dp of row i, and goes to slot + i * dslot. */
typedef struct TILE(loads) {
  hk_cu_i64 x[XS], f[FS];
  int at[XS][3], fz[FS];
  int x_p, x_dp, x_slot, x_dslot, f_p, f_dp, f_slot, f_dslot;
  int f_live; /* bit i: value i of f is a channel of the group */
} TILE(loads);

HK_DEV void TILE(prepare_x)(const hk_cu_simt *P, int m0, int group, TILE(loads) *l) {
  const hk_cu_geom *g = &P->d.g;
  const int tid = threadIdx.x, across = P->x_rows, vector = VECTORS && P->x_vector;
  const int row = across ? tid % BM : vector ? tid / (HK_SIMT_STEP / XS) : tid / HK_SIMT_STEP;
  l->x_p = across ? tid / BM : vector ? tid % (HK_SIMT_STEP / XS) * XS : tid % HK_SIMT_STEP;
  l->x_dp = across ? HK_SIMT_THREADS / BM : vector;
  l->x_slot = l->x_p * XP + row;
  l->x_dslot = across || vector ? l->x_dp * XP : HK_SIMT_THREADS / HK_SIMT_STEP;
#pragma unroll
  for (int i = 0; i < XS; ++i) {
    const int m = m0 + row + (across || vector ? 0 : i * (HK_SIMT_THREADS / HK_SIMT_STEP));
    hk_cu_at at;
    simt_position(P, m < P->rows ? m : 0, &at);
    l->x[i] = g->x.group * group + g->x.outer * at.n;
#pragma unroll
    for (int d = 0; d < 3; ++d) {
      l->at[i][d] = at.p[d] * (int)g->stride[d] - (int)g->lo[d];
      if (!P->dilated) l->x[i] += l->at[i][d] * g->x.at[d];
    }
    if (m >= P->rows) l->at[i][2] = -(1 << 30);
  }
}

HK_DEV void TILE(prepare_f)(const hk_cu_simt *P, int n0, int group, TILE(loads) *l) {
  const hk_cu_geom *g = &P->d.g;
  const int tid = threadIdx.x, across = P->f_columns, vector = VECTORS && P->f_vector;
  const int first = across ? tid % BN : vector ? tid / (HK_SIMT_STEP / FS) : tid / HK_SIMT_STEP;
  l->f_p = across ? tid / BN : vector ? tid % (HK_SIMT_STEP / FS) * FS : tid % HK_SIMT_STEP;
  l->f_dp = across ? HK_SIMT_THREADS / BN : vector;
  l->f_slot = HK_SIMT_STEP * XP + l->f_p * FP + first;
  l->f_dslot = across || vector ? l->f_dp * FP : HK_SIMT_THREADS / HK_SIMT_STEP;
  l->f_live = 0;
#pragma unroll
  for (int i = 0; i < FS; ++i) {
    const int column = first + (across || vector ? 0 : i * (HK_SIMT_THREADS / HK_SIMT_STEP));
    const int live = n0 + column < (int)g->kg, k = live ? n0 + column : 0;
    l->f[i] = g->f.group * group + g->f.outer * k;
    l->fz[i] = IS_INT ? (P->d.e.f_zeros ? P->d.e.f_zeros[group * g->kg + k] : g->f_zero) : 0;
    l->f_live |= live << i;
  }
}

/* Where value i of x comes from; returns whether it lies inside x. */
HK_DEV int TILE(locate)(const hk_cu_simt *P, const TILE(loads) *l, int i, const hk_cu_simt_product *q,
                        hk_cu_i64 *from) {
  const hk_cu_geom *g = &P->d.g;
  int at[3] = {l->at[i][0] + q->at[0], l->at[i][1] + q->at[1], l->at[i][2] + q->at[2]}, live = !q->ends;
  *from = l->x[i] + q->x;
  if (P->dilated)
#pragma unroll
    for (int d = 0; d < 3; ++d) {
      const int up = div_by(at[d] < 0 ? 0 : at[d], P->by_in_dil[d]);
      live = live && at[d] == up * (int)P->by_in_dil[d].d;
      *from += up * g->x.at[d];
      at[d] = up;
    }
  return live && (hk_cu_u32)at[0] < (hk_cu_u32)g->in[0] && (hk_cu_u32)at[1] < (hk_cu_u32)g->in[1] &&
         (hk_cu_u32)at[2] < (hk_cu_u32)g->in[2];
}

HK_DEV void TILE(load_x)(const hk_cu_simt *P, const TILE(loads) *l, const hk_cu_simt_product *table, SUM *x) {
  hk_cu_i64 from;
#if VECTORS
  if (P->x_vector) {
    TILE(x_values) v = {};
    if (TILE(locate)(P, l, 0, &table[l->x_p], &from)) v = *(const TILE(x_values) *)((const SUM *)P->d.x + from);
#pragma unroll
    for (int i = 0; i < XS; ++i) x[i] = v.v[i];
    return;
  }
#endif
#pragma unroll
  for (int i = 0; i < XS; ++i) {
    x[i] = 0;
    if (!TILE(locate)(P, l, i, &table[l->x_p + i * l->x_dp], &from)) continue;
    x[i] = OPERAND(P->d.x, from, P->d.g.x_type);
#if IS_INT
    x[i] -= P->d.g.x_zero;
#endif
  }
}

HK_DEV void TILE(load_f)(const hk_cu_simt *P, const TILE(loads) *l, const hk_cu_simt_product *table, SUM *f) {
#pragma unroll
  for (int i = 0; i < FS; ++i) f[i] = 0;
  if ((int)threadIdx.x >= BN * HK_SIMT_STEP) return;
#if VECTORS
  if (P->f_vector) {
    const hk_cu_simt_product *q = &table[l->f_p];
    if (!(l->f_live & 1) || q->ends) return;
    const TILE(f_values) v = *(const TILE(f_values) *)((const SUM *)P->d.f + l->f[0] + q->f);
#pragma unroll
    for (int i = 0; i < FS; ++i) f[i] = v.v[i];
    return;
  }
#endif
#pragma unroll
  for (int i = 0; i < FS; ++i) {
    const hk_cu_simt_product *q = &table[l->f_p + i * l->f_dp];
    if (!(l->f_live >> i & 1) || q->ends) continue;
    f[i] = OPERAND(P->d.f, l->f[i] + q->f, P->d.g.f_type);
#if IS_INT
    f[i] -= l->fz[i];
#endif
  }
}

HK_DEV void TILE(keep)(const TILE(loads) * l, const SUM *x, const SUM *f, SUM *stage) {
#pragma unroll
  for (int i = 0; i < XS; ++i) stage[l->x_slot + i * l->x_dslot] = x[i];
#pragma unroll
  for (int i = 0; i < FS; ++i)
    if ((int)threadIdx.x < BN * HK_SIMT_STEP) stage[l->f_slot + i * l->f_dslot] = f[i];
}

/* Row i and column j of a thread in its tile. */
HK_DEV int TILE(row)(int i) { return i / VM * (16 * VM) + (int)threadIdx.x / 16 * VM + i % VM; }
HK_DEV int TILE(column)(int j) { return j / VN * (16 * VN) + (int)threadIdx.x % 16 * VN + j % VN; }

HK_DEV void TILE(multiply)(const SUM *stage, SUM (*acc)[TN]) {
#pragma unroll
  for (int p = 0; p < HK_SIMT_STEP; ++p) {
    const SUM *x = stage + p * XP + threadIdx.x / 16 * VM,
              *f = stage + HK_SIMT_STEP * XP + p * FP + threadIdx.x % 16 * VN;
    TILE(rows) a[TM / VM];
    TILE(columns) b[TN / VN];
#pragma unroll
    for (int i = 0; i < TM / VM; ++i) a[i] = *(const TILE(rows) *)(x + i * 16 * VM);
#pragma unroll
    for (int j = 0; j < TN / VN; ++j) b[j] = *(const TILE(columns) *)(f + j * 16 * VN);
#pragma unroll
    for (int i = 0; i < TM; ++i)
#pragma unroll
      for (int j = 0; j < TN; ++j) acc[i][j] += a[i / VM].v[i % VM] * b[j / VN].v[j % VN];
  }
}

/* The sums of steps [from, to) of a tile. */
HK_DEV void TILE(sum)(const hk_cu_simt *P, const TILE(loads) * l, int from, int to, SUM *stage,
                      hk_cu_simt_product *table, SUM (*acc)[TN]) {
  const int tid = threadIdx.x;
  SUM x[XS], f[FS];
  if (tid < HK_SIMT_STEP) simt_product(P, from * HK_SIMT_STEP + tid, &table[tid]);
  __syncthreads();
  TILE(load_x)(P, l, table, x);
  TILE(load_f)(P, l, table, f);
  if (tid < HK_SIMT_STEP) simt_product(P, (from + 1) * HK_SIMT_STEP + tid, &table[HK_SIMT_STEP + tid]);
  TILE(keep)(l, x, f, stage);
  __syncthreads();
#pragma unroll 1
  for (int step = from; step < to; ++step) {
    const int now = step - from & 1, next = now ^ 1, more = step + 1 < to;
    if (more) TILE(load_x)(P, l, table + next * HK_SIMT_STEP, x);
    if (more) TILE(load_f)(P, l, table + next * HK_SIMT_STEP, f);
    if (tid < HK_SIMT_STEP) simt_product(P, (step + 2) * HK_SIMT_STEP + tid, &table[now * HK_SIMT_STEP + tid]);
    TILE(multiply)(stage + now * STAGE, acc);
    if (more) TILE(keep)(l, x, f, stage + next * STAGE);
    __syncthreads();
  }
}

HK_DEV void TILE(store_partial)(const hk_cu_simt *P, int m0, int n0, int group, int slice, SUM (*acc)[TN]) {
  const hk_cu_i64 channels = P->d.g.groups * P->d.g.kg;
  SUM *to = (SUM *)P->partial + (hk_cu_i64)slice * P->rows * channels + group * P->d.g.kg;
#pragma unroll
  for (int i = 0; i < TM; ++i) {
    const int m = m0 + TILE(row)(i);
#pragma unroll
    for (int j = 0; j < TN; ++j) {
      const int k = n0 + TILE(column)(j);
      if (m < P->rows && k < (int)P->d.g.kg) to[m * channels + k] = acc[i][j];
    }
  }
}

/* Sums go through shared memory, so that neighbouring threads store neighbouring values of y. */
HK_DEV void TILE(store)(const hk_cu_simt *P, int m0, int n0, int group, SUM *sums, SUM (*acc)[TN]) {
#pragma unroll
  for (int i = 0; i < TM; ++i)
#pragma unroll
    for (int j = 0; j < TN; ++j) sums[TILE(row)(i) * (BN + 1) + TILE(column)(j)] = acc[i][j];
  __syncthreads();
#pragma unroll 1
  for (int e = threadIdx.x; e < BM * BN; e += HK_SIMT_THREADS) {
    const int row = P->d.k_inner ? e / BN : e % BM, column = P->d.k_inner ? e % BN : e / BM, k = n0 + column;
    if (m0 + row >= P->rows || k >= (int)P->d.g.kg) continue;
    hk_cu_at at;
    simt_position(P, m0 + row, &at);
    at.k = group * P->d.g.kg + k;
    NAME(complete)(P, at, group, k, sums[row * (BN + 1) + column]);
  }
}

extern "C" __global__ void __launch_bounds__(HK_SIMT_THREADS, RESIDENT)
    TILE(hk_simt)(const __grid_constant__ hk_cu_simt P) {
  extern __shared__ __align__(16) hk_cu_u8 raw[];
  SUM *stage = (SUM *)raw, acc[TM][TN] = {};
  const int n0 = (int)(blockIdx.x % P.tiles_n) * BN;
  int rest = blockIdx.x / P.tiles_n;
  const int m0 = rest % P.tiles_m * BM;
  rest /= P.tiles_m;
  const int group = rest % (int)P.d.g.groups, slice = rest / (int)P.d.g.groups;
  const int from = (int)((hk_cu_i64)P.steps * slice / P.slices),
            to = (int)((hk_cu_i64)P.steps * (slice + 1) / P.slices);
  TILE(loads) l;
  TILE(prepare_x)(&P, m0, group, &l);
  TILE(prepare_f)(&P, n0, group, &l);
  if (from < to) TILE(sum)(&P, &l, from, to, stage, (hk_cu_simt_product *)(stage + 2 * STAGE), acc);
  if (P.partial) TILE(store_partial)(&P, m0, n0, group, slice, acc);
  else TILE(store)(&P, m0, n0, group, stage, acc);
}

#undef BM
#undef BN
#undef XP
#undef FP
#undef STAGE
#undef XS
#undef FS
#undef VM
#undef VN
#undef OPERAND
#undef VECTORS
#undef TM
#undef TN
#undef TILE
#undef RESIDENT
