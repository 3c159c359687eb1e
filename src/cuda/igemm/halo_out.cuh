/* Epilogue for a channels-first 16-bit y: acc[i][..] of halo.cuh holds channels as rows and pixels, including the
 * gaps between rows, as columns. A warp finishes 8 channels of all its pixels at a time: scale and bias, activation
 * and residual on the fragments; then the values cross shared memory and are stored in units of 4, 2 or 1 pixels
 * without the gaps. One loop serves both halves of its 16 channels: code that runs once per tile misses the
 * instruction cache, so it must be short. Included by halo.cuh. */

/* 8 channels from channel k on, of pixels [from, to) of the image, counted as in y, without gaps. q: the tile's
 * first position, with gaps. */
typedef struct halo_run {
  int n, group, k, q, from, to;
} halo_run;

/* Number of output pixels before position q. */
HK_DEV int halo_count(const hk_cu_halo *P, int q) {
  const int h = div_by(q, P->p.by_width), w = q - h * P->p.width, out = (int)P->p.m.g.out[2];
  return h * out + (w < out ? w : out);
}

/* Moves values between shared memory and y (out) or the residual (in), `unit` pixels at a time. */
HK_DEV void halo_transfer(const hk_cu_halo *P, int unit, int out, int line, halo_run s, hk_cu_u32 staging) {
  const hk_cu_view *view = out ? &P->p.m.g.y : &P->p.m.g.c;
  hk_cu_u16 *base = (out ? (hk_cu_u16 *)P->p.m.e.y : (hk_cu_u16 *)(size_t)P->p.m.e.c) + s.n * view->outer +
                    s.group * view->group + s.k * view->channel;
  const int live = (int)P->p.m.g.kg - s.k, wide = (int)P->p.m.g.out[2];
#pragma unroll 1
  for (int p = (s.from & -unit) + (int)threadIdx.x % 32 * unit; p < s.to; p += 32 * unit) {
    const int first = p < s.from ? s.from : p;
    int h = div_by(first, P->p.m.by_out[2]), w = first - h * wide;
    hk_cu_u16 *at = base + (unit == 1 ? h * view->at[1] + w * view->at[2] : p);
    hk_cu_u32 slot[4];
#pragma unroll
    for (int i = 0; i < unit; ++i) {
      slot[i] = staging + (h * P->p.width + w - s.q) * 2;
      /* pixels outside the run repeat the first and the last */
      if (p + i >= s.from && p + i + 1 < s.to && ++w == wide) w = 0, ++h;
    }
    hk_cu_u16 v[8][4]; /* all loads are issued before the first is used */
#pragma unroll
    for (int row = 0; row < 8; ++row)
#pragma unroll
      for (int i = 0; i < unit; ++i)
        if (out) asm volatile("ld.shared.u16 %0, [%1];" : "=h"(v[row][i]) : "r"(slot[i] + row * line));
        else v[row][i] = row < live && p + i >= s.from && p + i < s.to ? at[row * view->channel + i] : (hk_cu_u16)0;
    if (out && unit > 1 && p >= s.from && p + unit <= s.to && live >= 8) {
#pragma unroll
      for (int row = 0; row < 8; ++row, at += view->channel)
        if (unit == 4)
          *(uint2 *)at = make_uint2(v[row][0] | (hk_cu_u32)v[row][1] << 16, v[row][2] | (hk_cu_u32)v[row][3] << 16);
        else *(hk_cu_u32 *)at = v[row][0] | (hk_cu_u32)v[row][1] << 16;
      continue;
    }
#pragma unroll
    for (int row = 0; row < 8; ++row, at += view->channel)
#pragma unroll
      for (int i = 0; i < unit; ++i) {
        if (p + i < s.from || p + i >= s.to) continue;
        if (!out) asm volatile("st.shared.u16 [%0], %1;" ::"r"(slot[i] + row * line), "h"(v[row][i]) : "memory");
        else if (row < live) at[i] = v[row][i];
      }
  }
}
HK_DEV void halo_transfer_any(const hk_cu_halo *P, int out, int line, halo_run s, hk_cu_u32 staging) {
  if (P->unit == 4) halo_transfer(P, 4, out, line, s, staging);
  else if (P->unit == 2) halo_transfer(P, 2, out, line, s, staging);
  else halo_transfer(P, 1, out, line, s, staging);
}

/* Address of this lane's row in a group of `n` matrices, from column block j on. */
HK_DEV hk_cu_u32 halo_at(int line, int n, hk_cu_u32 staging, int j) {
  const int lane = threadIdx.x % 32;
  return staging + lane % 8 * line + (j + lane / 8 % n) * 16;
}

/* v[0..bn/4): a lane's values of 8 channels. Writes them to shared memory, or adds beta times the residual there. */
HK_DEV void halo_put(int type, int bn, hk_cu_u32 staging, const float *v) {
#pragma unroll
  for (int j = 0; j < bn / 8; j += 4) {
    const int n = bn / 8 - j < 4 ? bn / 8 - j : 4;
    hk_cu_u32 w[4];
#pragma unroll
    for (int i = 0; i < n; ++i) w[i] = pack_pair(type, v[(j + i) * 2], v[(j + i) * 2 + 1]);
    if (n == 3)
      matrix_put(2, halo_at(HK_HALO_LINE(bn), 2, staging, j), w),
          matrix_put(1, halo_at(HK_HALO_LINE(bn), 1, staging, j + 2), w + 2);
    else matrix_put(n, halo_at(HK_HALO_LINE(bn), n, staging, j), w);
  }
}
HK_DEV void halo_add(int type, int bn, float beta, hk_cu_u32 staging, float *v) {
#pragma unroll
  for (int j = 0; j < bn / 8; j += 4) {
    const int n = bn / 8 - j < 4 ? bn / 8 - j : 4;
    hk_cu_u32 w[4];
    if (n == 3)
      matrix_get(2, halo_at(HK_HALO_LINE(bn), 2, staging, j), w),
          matrix_get(1, halo_at(HK_HALO_LINE(bn), 1, staging, j + 2), w + 2);
    else matrix_get(n, halo_at(HK_HALO_LINE(bn), n, staging, j), w);
#pragma unroll
    for (int i = 0; i < n; ++i) {
      float *p = v + (j + i) * 2;
      p[0] = fmaf(beta, type == HK_CU_BF16 ? __uint_as_float(w[i] << 16) : f32_from_f16((hk_cu_u16)w[i]), p[0]);
      p[1] = fmaf(
          beta, type == HK_CU_BF16 ? __uint_as_float(w[i] & 0xffff0000u) : f32_from_f16((hk_cu_u16)(w[i] >> 16)), p[1]);
    }
  }
}

/* Finishes all channels of a consumer; type is y's; staging: the warp's own buffer. */
HK_DEV void halo_finish(const hk_cu_halo *P, int type, planes_tile t, int first, planes_place place, hk_cu_u32 staging,
                        const planes_pair *affine, float (*acc)[128]) {
  const hk_cu_epi *e = &P->p.m.e;
  const int warp = threadIdx.x / 32 % 4, line = HK_HALO_LINE(t.bn);
  halo_run s = {place.n, place.at.group, 0, place.at.m0, halo_count(P, place.at.m0), halo_count(P, place.end)};
#pragma unroll
  for (int i = 0; i < t.mi; ++i)
#pragma unroll 1
    for (int half = 0; half < 2; ++half) {
      const float scale = half ? affine[i].scale[1] : affine[i].scale[0],
                  bias = half ? affine[i].bias[1] : affine[i].bias[0];
      float v[64];
      s.k = place.at.k0 + first + i * 64 + warp * 16 + half * 8;
      if (s.k >= P->p.m.g.kg) break;
#pragma unroll
      for (int j = 0; j < t.bn / 4; ++j) v[j] = acc[i][j / 2 * 4 + j % 2];
      if (e->scale || e->bias)
#pragma unroll
        for (int j = 0; j < t.bn / 4; ++j) v[j] = fmaf(v[j], scale, bias);
      if (e->residual) {
        __syncwarp();
        halo_transfer_any(P, 0, line, s, staging);
        __syncwarp();
      }
      if (e->residual == 2) halo_add(type, t.bn, e->beta, staging, v);
      if (e->act == HK_CU_PRELU) {
        const int k = s.k + (int)threadIdx.x % 32 / 4;
        const float slope = k < P->p.m.g.kg ? ((const float *)e->slopes)[s.group * P->p.m.g.kg + k] : 0.0f;
#pragma unroll
        for (int j = 0; j < t.bn / 4; ++j) v[j] = v[j] < 0.0f ? slope * v[j] : v[j];
      } else if (e->act) wide_act(e, t.bn / 4, v);
      if (e->residual == 1) halo_add(type, t.bn, e->beta, staging, v);
      __syncwarp();
      halo_put(type, t.bn, staging, v);
      __syncwarp();
      halo_transfer_any(P, 1, line, s, staging);
#pragma unroll
      /* moves the other half into the same registers */
      for (int j = 0; j < t.bn / 4; ++j) acc[i][j / 2 * 4 + j % 2] = acc[i][j / 2 * 4 + 2 + j % 2];
    }
}
