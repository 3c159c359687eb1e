/* hk_tapsum_band_<type>_<rt>: depthwise, channels-last, on the tensor cores. A row of dy is cut into runs of 8
 * positions 8*j + b, and so is what a row of x offers them, 8*j + u with u < 16: the sum over runs j of dy[b] x[u] is
 * a matrix product of 8 by 16 whose diagonals u - b = s are the taps of a row. Eight runs, of one image or several,
 * are the inner dimension; a warp walks down their rows with the last RT rows of dy in registers, so that each row of
 * x meets all of them, and has two channels. A block has 16: it copies bands of rows, pixel by pixel, and transposes
 * them in shared memory, where a run of a channel is a row of a matrix. */
#ifndef HK_TAPSUM_BAND
#define HK_TAPSUM_BAND
enum { BAND_CHANNELS = 16, BAND_PIXEL = 32, BAND_RUNS = 8 };

typedef struct band_walk {
  int run, spot;        /* the first run of dy, over all images; the first of x */
  int row, last, first; /* rows of dy from..to; the first that meets a row of x of this walk */
} band_walk;

/* Where things lie in shared memory, and 16-byte units from channel to channel. */
typedef struct band_room {
  hk_cu_u32 raw_f, raw_x, f, x;
  int f_pitch, x_pitch;
} band_room;

/* One 16-byte piece of a pixel: 8 channels; zeros where it is outside. The pieces of later pixels change places. */
HK_DEV void band_copy(hk_cu_u32 to, int pixel, int piece, const hk_cu_u16 *from, hk_cu_i64 at, int in) {
  copy_16(to + pixel * BAND_PIXEL + ((piece ^ pixel / 4) & 1) * 16, in ? from + at + piece * 8 : from, in);
}

/* Starts the copies of rows row.. of dy and of the rows of x that they meet first. */
HK_DEV void band_load(const hk_cu_tapsum *P, band_walk w, int row, int channel, const band_room *room) {
  const hk_cu_geom *g = &P->d.g;
  const int rows = min(P->band, w.last - row), live = ((int)g->groups - channel) / 8;
  const hk_cu_u16 *f = (const hk_cu_u16 *)P->d.f + channel, *x = (const hk_cu_u16 *)P->d.x + channel;
  for (int i = threadIdx.x; i < rows * BAND_RUNS * 16; i += blockDim.x) {
    const int piece = i % 2, pixel = i / 2, r = pixel / (BAND_RUNS * 8), at = pixel % (BAND_RUNS * 8);
    const int run = w.run + at / 8, image = div_by(run, P->by_segments), h = row + r;
    const int q = (run - image * P->segments) * 8 + at % 8;
    const int in = piece < live && image < (int)g->cg && (unsigned)h < (unsigned)g->win[1] && q < (int)g->win[2];
    band_copy(room->raw_f, pixel, piece, f, image * g->f.channel + h * g->f.at[1] + q * g->f.at[2], in);
  }
  for (int i = threadIdx.x; i < rows * P->spots * 16; i += blockDim.x) {
    const int piece = i % 2, pixel = i / 2, spot = pixel / 8, r = spot / P->spots;
    const int from = w.spot + spot - r * P->spots, image = div_by(from, P->by_spots), h = row + r - (int)g->lo[1];
    const int q = (from - image * (P->segments + 1)) * 8 + pixel % 8 - (int)g->lo[2];
    const int in = piece < live && image < (int)g->cg && row + r >= w.first && (unsigned)h < (unsigned)g->in[1] &&
                   (unsigned)q < (unsigned)g->in[2];
    band_copy(room->raw_x, pixel, piece, x, image * g->x.channel + h * g->x.at[1] + q * g->x.at[2], in);
  }
}

/* rows x spots runs of 8 pixels x 16 channels become rows x spots runs per channel. */
HK_DEV void band_turn(hk_cu_u32 from, hk_cu_u32 to, int runs, int pitch) {
  const int lane = threadIdx.x % 32, octet = lane / 8 % 2, second = lane / 16, at = lane % 8;
  for (int i = threadIdx.x / 32 * 2; i < runs; i += blockDim.x / 32 * 2) {
    const int run = i + second;
    hk_cu_u32 v[4];
    matrices_4(from + (run * 8 + at) * BAND_PIXEL + ((octet ^ at / 4) & 1) * 16, v);
    matrices_put_4(to + ((octet * 8 + at) * pitch + run) * 16, v);
  }
}
#endif

/* Adds rows row..row+rows-1; window: the last RT rows of dy of both channels. */
HK_DEV void BAND(add)(const hk_cu_tapsum *P, band_walk w, int row, int rows, const band_room *room, int slot,
                      hk_cu_u32 (*window)[RT], float (*acc)[RT][4]) {
  const int lane = threadIdx.x % 32, i = lane / 8, at = lane % 8, c = threadIdx.x / 32 * 2;
  const hk_cu_u32 lo = room->x + (c * room->x_pitch + slot) * 16, lo2 = lo + room->x_pitch * 16;
  const hk_cu_u32 dy = room->f + ((c + (i == 3)) * room->f_pitch + at) * 16;
  hk_cu_u32 at4 = i == 1 ? lo : i == 2 ? lo + 16 : dy, at2 = i % 2 ? lo2 + 16 : lo2;
  const int step = i == 1 || i == 2 ? P->spots * 16 : BAND_RUNS * 16;
#pragma unroll 1
  for (int r = 0; r < rows; ++r) {
    hk_cu_u32 v[4], a[2];
    matrices_4(at4, v);
    matrices_2(at2, a);
    at4 += step, at2 += P->spots * 16;
#pragma unroll
    for (int t = RT - 1; t > 0; --t) window[0][t] = window[0][t - 1], window[1][t] = window[1][t - 1];
    window[0][0] = v[0], window[1][0] = v[3];
    if (row + r < w.first) continue;
#pragma unroll
    for (int t = 0; t < RT; ++t) mma_add_8(acc[0][t], v + 1, window[0][t]), mma_add_8(acc[1][t], a, window[1][t]);
  }
}

/* Rows first..last-1 of x under a group of runs. */
HK_DEV void BAND(walk)(const hk_cu_tapsum *P, int unit, int first, int last, int channel, const band_room *room,
                       float (*acc)[RT][4]) {
  const hk_cu_geom *g = &P->d.g;
  const int run = unit * BAND_RUNS, image = div_by(run, P->by_segments), mine = run + (int)threadIdx.x % 8;
  band_walk w;
  w.run = run, w.spot = run + image; /* an image has one run more of x */
  w.first = first + (int)g->lo[1], w.last = last + (int)g->lo[1], w.row = w.first - (RT - 1);
  const int slot = mine + div_by(mine, P->by_segments) - w.spot;
  hk_cu_u32 window[2][RT] = {};
  band_load(P, w, w.row, channel, room);
#pragma unroll 1
  for (int row = w.row; row < w.last; row += P->band) {
    const int rows = min(P->band, w.last - row);
    copy_wait();
    __syncthreads();
    band_turn(room->raw_f, room->f, rows * BAND_RUNS, room->f_pitch);
    band_turn(room->raw_x, room->x, rows * P->spots, room->x_pitch);
    __syncthreads();
    if (row + P->band < w.last) band_load(P, w, row + P->band, channel, room);
    BAND(add)(P, w, row, rows, room, slot, window, acc);
  }
}

/* The sums along diagonals, through shared memory: [t][u][b] of one channel of each warp at a time. */
HK_DEV void BAND(emit)(const hk_cu_tapsum *P, int slice, int channel, float *part, float (*acc)[RT][4]) {
  const hk_cu_geom *g = &P->d.g;
  const int lane = threadIdx.x % 32, taps = P->taps, s_count = (int)g->out[2];
#pragma unroll
  for (int c = 0; c < 2; ++c) {
#pragma unroll
    for (int t = 0; t < RT; ++t)
#pragma unroll
      for (int i = 0; i < 4; ++i) part[t * 128 + (lane / 4 + i / 2 * 8) * 8 + lane % 4 * 2 + i % 2] = acc[c][t][i];
    __syncwarp();
    for (int tap = lane; tap < taps && channel + c < (int)g->groups; tap += 32) {
      const int t = tap / s_count, s = tap - t * s_count;
      float v = 0;
#pragma unroll
      for (int b = 0; b < 8; ++b) v += part[t * 128 + (b + s) * 8 + b];
      tapsum_emit(P, slice, (channel + c) * taps + tap, v);
    }
    __syncwarp();
  }
}

extern "C" __global__ void __launch_bounds__(256, 2) BAND(hk_tapsum_band)(const __grid_constant__ hk_cu_tapsum P) {
  extern __shared__ __align__(16) unsigned char shared[];
  const int rows_x = (int)P.d.g.in[1], channel = blockIdx.x % P.chunks * BAND_CHANNELS, slice = blockIdx.x / P.chunks;
  band_room room;
  room.raw_f = shared_address(shared), room.raw_x = room.raw_f + P.f_bytes;
  room.f_pitch = P.band * BAND_RUNS | 1, room.x_pitch = P.band * P.spots | 1;
  room.f = room.raw_x + P.x_bytes, room.x = room.f + BAND_CHANNELS * room.f_pitch * 16;
  float acc[2][RT][4] = {};
  const int end = tapsum_first(&P, slice + 1);
#pragma unroll 1
  for (int at = tapsum_first(&P, slice); at < end;) {
    const int unit = div_by(at, P.by_rows), first = at - unit * rows_x, last = min(rows_x, first + end - at);
    BAND(walk)(&P, unit, first, last, channel, &room, acc);
    at += last - first;
  }
  __syncthreads();
  BAND(emit)(&P, slice, channel + threadIdx.x / 32 * 2, (float *)shared + threadIdx.x / 32 * RT * 128, acc);
}
#undef RT
#undef BAND
