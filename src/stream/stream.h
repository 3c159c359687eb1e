/* Chains and streams: what the passes hand to each other.
 *
 *   check.c   untrusted steps -> graph: channels, rates, what is live, how much history each signal needs
 *   lower.c   graph -> ops over buffers: what is fused, what shares memory, where rings are
 *   pack.c    kernel calls and packed weights of an op
 *   chain.c   memory of a chain, public functions
 *   frame.c   convolutions in the caller's interleaved layout
 *   run.c     one block: ops in order, in pieces of HK_PIECE frames so that everything stays in L1
 *   state.c   memory of a stream, reset, prewarm, save, restore
 *   fir.c     long windows: how they are cut into a head and levels of partitions, their spectra
 *   firrun.c  the slices of a level's work that fall into one piece
 *
 * A signal is a buffer of rows, one per channel, time contiguous; in an interleaved chain it is one row of frames, each
 * of `pitch` channels. Rows that are read with a delay have a history:
 *   short (up to HK_PIECE frames)  it lies before the block, and the newest frames move there after every piece
 *   long                           a ring: frame t is at t mod length, and `guard` frames beyond the end repeat the
 *                                  first ones, so that a piece is contiguous wherever it starts. A block is written
 *                                  at `at` and mirrored into the guard (or from it) right after
 * Either way the cost is at most one more store per sample or a history of one piece; nothing is ever rewound. Kernels
 * may run past the block up to a whole vector: the HK_SLACK frames after it are dead by construction. */
#ifndef HK_STREAM_H
#define HK_STREAM_H
#include "core/core.h"
#include "cpu/longfft.h"
#include "cpu/small.h"

enum { HK_PIECE = 64, HK_SLACK = 16 };

typedef struct hk_net_signal {
  int64_t channels, history, reach; /* history: frames its readers look back; reach: receptive field so far */
  int32_t domain, last_use, share;  /* share: the signal whose buffer it continues, or itself */
  int32_t buffer;
  bool live, whole; /* whole: some reader needs the whole history contiguous */
} hk_net_signal;

typedef struct hk_net_domain {
  int32_t parent;
  int64_t stride; /* one frame per so many of the parent's */
  double rate;    /* frames per input frame */
} hk_net_domain;

typedef struct hk_net_buffer {
  int32_t domain;
  int64_t rows, history, length, guard, stride, offset; /* length 0: no ring; offset in floats into the stream */
  int64_t before; /* short history: frames that lie before the block; they and the block are part of the state */
  int64_t pitch;  /* floats per frame: 1 in rows of one channel */
  bool whole, used, phased; /* phased: written frame by frame, a ring of any length */
  bool closed;              /* while lowering: its last writer is known */
  int32_t next_free;        /* while lowering: below it on the stack of free buffers; -1 none */
} hk_net_buffer;

/* A level of a long window: `parts` partitions of `points` taps each, by overlap-save with negacyclic transforms of
 * 2*points frames. Time is cut into quanta of HK_FIR_QUANTUM frames and periods of `points` frames. When a period ends,
 * its frames are transformed, multiplied by the first partition, added to the sums of the others and transformed back,
 * spread over the first `early` quanta of the next period; the products of the other partitions, whose spectra are
 * known by then, follow over the rest. The results are due `early - 1` quanta into that period, which makes the level's
 * first tap `delay` = points + (early - 1) * HK_FIR_QUANTUM frames old. */
enum { HK_FIR_LEVELS = 4, HK_FIR_QUANTUM = 16, HK_FIR_ZONES = 4, HK_FIR_VECTORS = 4 };
typedef struct hk_fir_level {
  int64_t points, parts, slots, delay, early,
      end; /* taps delay..end-1; slots: spectra of past periods that are kept, per channel */
  /* columns; rows, products of the first partition and rows back; columns back; other products */
  int64_t units[HK_FIR_ZONES], cost[HK_FIR_ZONES];
  int64_t grain;       /* steps of longfft per unit; a unit of other products is HK_FIR_VECTORS complex vectors */
  hk_longfft_args fft; /* sizes and tables */
  int64_t tables, h;   /* floats into the chain's data; spectra h[k][c/groups][parts][2*points] */
  /* floats into the stream's: z[c][slots][2*points], sums[k][2*points], out[k][2*points], a block of columns */
  int64_t z, sums, out, buffer;
} hk_fir_level;
typedef struct hk_net_fir {
  int64_t c, k, groups, window, head, history; /* head: the newest taps, which are summed directly */
  int64_t taps, bias;                          /* floats into the chain's data: [k][c/groups][head], [k] */
  int64_t mark; /* first of its marks in the stream: frames modulo the period of everything, newest slot per level */
  int32_t levels;
  hk_fir_level level[HK_FIR_LEVELS];
} hk_net_fir;

typedef enum hk_op_kind { HK_OP_CONV, HK_OP_MAP, HK_OP_LSTM, HK_OP_SPLIT, HK_OP_FIR, HK_OP_FRAME } hk_op_kind;

typedef struct hk_net_call { /* one kernel over all groups: tiles*mr channels of each group from `first` on */
  hk_kernel_fn fn;
  int64_t mr, mg, tiles, first; /* mg: groups per tile */
  int64_t f;                    /* packed weights, floats into the chain's data */
  int64_t seg;                  /* first segment in the stream's table */
} hk_net_call;

typedef struct hk_net_op {
  hk_op_kind kind;
  const hk_step *step;                     /* while lowering and packing only */
  int32_t domain, x, x2, mix, add, y, sum; /* buffers; -1 none */
  bool ring_y, ring_sum;                   /* the last writer of a ring mirrors it */
  /* conv */
  int64_t c, k, groups, window, dilation, phases, mix_c, mix_groups;
  const float *f, *bias, *mix_f; /* while packing only */
  int64_t bias_at;
  bool taps_inside; /* one input channel per group: taps take the place of channels in one segment */
  int32_t segs, calls, act;
  float lo, hi;
  hk_net_call call[HK_SMALL_PARTS];
  int32_t fir;               /* index of the long window */
  int32_t first_tile, tiles; /* interleaved: of the chain */
  /* map */
  int32_t map;
  int64_t rows, x2_row, x3_row; /* rows of x2 to start at; x3_row < 0: none */
  float beta;
  hk_map_act map_act, map_act2;
  /* lstm: weights at call[0].f as [c + k][row], bias [row], h0 [pad], c0 [pad]; state in the stream: v [c + k], c
   * [k] */
  int64_t state, pad, row; /* k and 4*k, rounded up to lines */
} hk_net_op;

typedef struct hk_graph {
  hk_chain_desc desc;
  hk_step *step; /* [0..desc.count-1] */
  int32_t signals, ops, buffers, domains, output;
  int32_t free_buffer;   /* the buffer without history that was freed last; -1 none */
  hk_net_signal *signal; /* [1..signals] */
  hk_net_op *op;
  hk_net_buffer *buffer;
  hk_net_domain *domain;
  hk_net_fir *fir;
  hk_frame_tile *tile; /* interleaved only */
  double flops;
  bool recurrent, interleaved;
  int32_t firs, tiles;
  int64_t data, segs; /* floats and segments */
  int64_t lstm_floats, ring_floats, scratch_floats, lstm_work, fir_floats, marks;
} hk_graph;

struct hk_chain {
  bool owned;
  hk_isa isa;
  int32_t ops, buffers, domains;
  int32_t in, out, out_domain; /* buffers */
  int64_t x_channels, y_channels, max_block, max_out, reach;
  int64_t x_channel, x_time, y_channel, y_time;
  hk_kernel_fn map, matvec, fir_head, longfft, spectra, frame;
  int64_t width; /* lanes of a vector: blocks are rounded up to it inside */
  bool recurrent, interleaved;
  bool direct; /* interleaved, and the last op writes y itself */
  bool alone;  /* direct, one op, no ring: most of its taps read the caller's x */
  int32_t tiles;
  hk_frame_tile *tile;
  double flops;
  size_t bytes;
  int64_t segs, lstm_floats, ring_floats, scratch_floats, fir_floats, marks;
  uint64_t print; /* of everything that the layout of a state depends on */
  hk_net_op *op;
  hk_net_buffer *buffer;
  hk_net_domain *domain;
  hk_net_fir *fir;
  int32_t firs;
  float *data;
};

struct hk_stream {
  const hk_chain *chain;
  bool owned;
  int64_t *frames; /* [domains]: of this piece */
  hk_small_seg *seg;
  char *state; /* saved as a whole: phases, positions, marks, LSTM state, rings, spectra */
  size_t state_bytes;
  int64_t *phase, *at; /* [domains], [buffers]: where the block starts in its ring */
  int64_t *mark;
  float *lstm, *ring, *fir, *scratch;
  float *y; /* of this piece, where the last op writes it; else NULL */
};

hk_status hk_graph_check(hk_graph *g);                                 /* check.c; arrays are there, desc is set */
hk_status hk_graph_lower(hk_graph *g);                                 /* lower.c */
void hk_graph_place(hk_graph *g);                                      /* lower.c: buffer sizes and offsets */
void hk_op_calls(hk_graph *g, hk_net_op *op, hk_isa isa);              /* pack.c: tiles, and room in data and segs */
void hk_op_pack(const hk_net_op *op, float *data);                     /* pack.c */
hk_net_fir hk_fir_cut(int64_t c, const hk_step *s);                    /* fir.c; c: channels of its input */
void hk_fir_place(hk_graph *g, hk_net_fir *f, hk_isa isa);             /* fir.c: room in data, state and work */
int64_t hk_fir_room(const hk_net_fir *f);                              /* fir.c: floats that packing needs */
void hk_fir_pack(const hk_chain *c, const hk_net_op *op, float *room); /* fir.c: taps, bias, tables and spectra */
bool hk_fir_marks_fit(const hk_net_fir *f, const int64_t *mark);       /* fir.c */
void hk_fir_run(const hk_stream *s, const hk_net_op *op, int64_t n, int64_t wide); /* firrun.c: n frames follow */
void hk_fir_seek(const hk_stream *s, const hk_net_op *op, int64_t frames);         /* firrun.c: the time of the op */
void hk_fir_settle(const hk_stream *s, const hk_net_op *op); /* firrun.c: as if x had always been constant */
bool hk_graph_interleaved(const hk_graph *g, int64_t width); /* frame.c: whether the chain runs interleaved */
hk_frame_tile *hk_frame_tiles(int32_t steps); /* frame.c: room for all tiles of a graph; NULL without memory */
void hk_frame_calls(hk_graph *g, hk_net_op *op, int64_t width); /* frame.c: tiles, and room in data and segs */
void hk_frame_pack(const hk_net_op *op, hk_frame_tile *tile, float *data, int64_t width);              /* frame.c */
void hk_frame_run(const hk_chain *c, const hk_net_op *op, const hk_small_seg *x, float *y, int64_t n); /* frame.c */
void hk_frame_alone(hk_stream *s, const float *x, int64_t n, float *y);     /* frame.c: a block of a lone convolution */
size_t hk_stream_layout(const hk_chain *chain, hk_stream *s, char *memory); /* state.c: bytes; s may be NULL */
void hk_stream_piece(hk_stream *s, bool steady); /* run.c: ops over frames[]; steady: rings become constant */
void hk_stream_advance(hk_stream *s, int64_t n); /* run.c: one piece; its frames lie in the input's rows */
void hk_stream_move(hk_stream *s);               /* run.c: on to the next piece */
void hk_ring_store(const hk_stream *s, int32_t buffer, int64_t n, bool steady);    /* run.c: mirror the block */
const float *hk_stream_delayed(const hk_stream *s, int32_t buffer, int64_t delay); /* run.c: row 0, so long ago */
static inline float *hk_stream_rows(const hk_stream *s, int32_t buffer) { /* row 0 at the block's first frame */
  const hk_net_buffer *b = &s->chain->buffer[buffer];
  if (b->length) return s->ring + b->offset + s->at[buffer] * b->pitch;
  return (b->before ? s->ring : s->scratch) + b->offset + b->before * b->pitch;
}
#endif
