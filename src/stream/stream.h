/* Chains and streams: what the passes hand to each other.
 *
 *   check.c   untrusted steps -> graph: channels, rates, what is live, how much history each signal needs
 *   lower.c   graph -> ops over buffers: what is fused, what shares memory, where rings are
 *   pack.c    kernel calls and packed weights of an op
 *   chain.c   memory of a chain, public functions
 *   run.c     one block: ops in order, in pieces of HK_PIECE frames so that everything stays in L1
 *   state.c   memory of a stream, reset, prewarm, save, restore
 *
 * A signal is a buffer of rows, one per channel, time contiguous. Rows that are read with a delay have a history:
 *   short (up to HK_PIECE frames)  it lies before the block, and the newest frames move there after every piece
 *   long                           a ring: frame t is at t mod length, and `guard` frames beyond the end repeat the
 *                                  first ones, so that a piece is contiguous wherever it starts. A block is written
 *                                  at `at` and mirrored into the guard (or from it) right after
 * Either way the cost is at most one more store per sample or a history of one piece; nothing is ever rewound. Kernels
 * may run past the block up to a whole vector: the HK_SLACK frames after it are dead by construction. */
#ifndef HK_STREAM_H
#define HK_STREAM_H
#include "core/core.h"
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
  bool whole, used, phased; /* phased: written frame by frame, a ring of any length */
  bool closed;              /* while lowering: its last writer is known */
  int32_t next_free;        /* while lowering: below it on the stack of free buffers; -1 none */
} hk_net_buffer;

typedef enum hk_op_kind { HK_OP_CONV, HK_OP_MAP, HK_OP_LSTM, HK_OP_SPLIT } hk_op_kind;

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
  int64_t f_row;    /* taps of a row of f, of which the last `window` are this op's */
  bool taps_inside; /* one segment per input channel of a group: taps take the place of channels in it */
  int32_t segs, calls, act;
  float lo, hi;
  hk_net_call call[HK_SMALL_PARTS];
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
  double flops;
  bool recurrent;
  int64_t data, segs; /* floats and segments */
  int64_t lstm_floats, ring_floats, scratch_floats, lstm_work;
} hk_graph;

struct hk_chain {
  bool owned;
  hk_isa isa;
  int32_t ops, buffers, domains;
  int32_t in, out, out_domain; /* buffers */
  int64_t x_channels, y_channels, max_block, max_out, reach;
  int64_t x_channel, x_time, y_channel, y_time;
  hk_kernel_fn map, matvec;
  int64_t width; /* lanes of a vector: blocks are rounded up to it inside */
  bool recurrent;
  double flops;
  size_t bytes;
  int64_t segs, lstm_floats, ring_floats, scratch_floats;
  uint64_t print; /* of everything that the layout of a state depends on */
  hk_net_op *op;
  hk_net_buffer *buffer;
  hk_net_domain *domain;
  float *data;
};

struct hk_stream {
  const hk_chain *chain;
  bool owned;
  int64_t *frames; /* [domains]: of this piece */
  hk_small_seg *seg;
  char *state; /* saved as a whole: phases, positions, LSTM state, rings */
  size_t state_bytes;
  int64_t *phase, *at; /* [domains], [buffers]: where the block starts in its ring */
  float *lstm, *ring, *scratch;
};

hk_status hk_graph_check(hk_graph *g);                    /* check.c; arrays are there, desc is set */
hk_status hk_graph_lower(hk_graph *g);                    /* lower.c */
void hk_graph_place(hk_graph *g);                         /* lower.c: buffer sizes and offsets */
void hk_op_calls(hk_graph *g, hk_net_op *op, hk_isa isa); /* pack.c: tiles, and room in data and segs */
void hk_op_pack(const hk_net_op *op, float *data);        /* pack.c */
size_t hk_stream_layout(const hk_chain *chain, hk_stream *s, char *memory); /* state.c: bytes; s may be NULL */
void hk_stream_piece(hk_stream *s, bool steady); /* run.c: ops over frames[]; steady: rings become constant */
void hk_stream_advance(hk_stream *s, int64_t n); /* run.c: one piece; its frames lie in the input's rows */
void hk_stream_move(hk_stream *s);               /* run.c: on to the next piece */
void hk_ring_store(const hk_stream *s, int32_t buffer, int64_t n, bool steady); /* run.c: mirror the block */
static inline float *hk_stream_rows(const hk_stream *s, int32_t buffer) {       /* row 0 at the block's first frame */
  const hk_net_buffer *b = &s->chain->buffer[buffer];
  if (b->length) return s->ring + b->offset + s->at[buffer];
  return (b->before ? s->ring : s->scratch) + b->offset + b->before;
}
#endif
