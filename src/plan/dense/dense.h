/* What the dense algorithms share: panels of packed weights, blocks of output pixels, row tables, epilogue flags. */
#ifndef HK_DENSE_H
#define HK_DENSE_H
#include "plan/plan.h"

/* ---- dense/pack.c: output channels of a group cut into panels of whole vectors, nearly equal.
 * Packed f: [group][panel][block of bk channels][tap][channel in block][lanes*vectors], zeros beyond the last channel;
 * for dot kernels lanes = 1 and the two last axes change places. */
typedef struct hk_panels {
  int64_t lanes, vectors, count; /* vectors of a group; panels */
  int64_t k, taps, c, bk;
  int64_t group_size; /* packed elements of a group */
  bool dot;           /* channels innermost */
  int64_t tail;       /* output channels left over for a last panel of dot's kind; 0: none */
} hk_panels;
typedef struct hk_panel {
  int64_t first, columns; /* output channels, in the group */
  int64_t vectors, lanes; /* of the panel; dot: one lane a channel */
  bool dot;
} hk_panel;
hk_panels hk_panels_make(const hk_geom *g, const hk_kernel *kernel, int64_t bk);
/* Few channels that would take a vector of their own may become a panel whose vectors lie along the inputs instead:
 * how many there are (0: none, or too many), whether that pays, and the panels with them cut off. */
int64_t hk_panels_tail(const hk_geom *g, const hk_kernel *kernel);
bool hk_panels_tail_pays(const hk_geom *g, const hk_kernel *kernel);
void hk_panels_cut_tail(hk_panels *s, const hk_kernel *kernel, int64_t tail);
hk_panel hk_panels_get(const hk_panels *s, int64_t index);
/* Where panel p of group g begins in packed f. */
static inline int64_t hk_panels_at(const hk_panels *s, int64_t group, const hk_panel *p) {
  return group * s->group_size + p->first * s->taps * s->c;
}
/* Taps t0..t1-1, channels c0..c0+cl-1 of one panel: to[(t - t0)*cl + c][NR]. f: of the panel's group. */
typedef struct hk_panel_piece {
  int64_t t0, t1, c0, cl;
} hk_panel_piece;
void hk_panel_pack(const hk_geom *g, const hk_panel *p, const float *f, const hk_panel_piece *piece, float *to);
/* All of it; the groups and panels are spread over the plan's threads. */
void hk_panels_pack(const hk_plan *plan, const hk_panels *s, const float *f, float *to);

/* ---- dense/rows.c: output pixels in the order they are computed. With input dilation the outputs fall into
 * sub-grids, one a phase, within which every pixel uses the same taps; else there is one. */
typedef struct hk_grid {
  int64_t first[3], step[3], count[3];
  int64_t pixels; /* over the batch */
} hk_grid;
int64_t hk_grid_count(const hk_geom *g);
hk_grid hk_grid_get(const hk_geom *g, int64_t index);
/* Pieces of at most `unit` pixels that all grids are cut into, none of them over two grids; and the grid of piece
 * *index, which then counts within that grid. Both take a constant time, however many grids there are. */
int64_t hk_grid_pieces(const hk_geom *g, int64_t unit);
hk_grid hk_grid_find(const hk_geom *g, int64_t unit, int64_t *index);

/* Consecutive pixels of a block that share n and all but the last coordinate. */
typedef struct hk_run {
  int64_t n, p[3]; /* of the first pixel */
  int32_t m, count;
} hk_run;
#define HK_BLOCK_MAX 256
typedef struct hk_block {
  const hk_grid *grid;
  int32_t count, runs;
  hk_run run[HK_BLOCK_MAX];
} hk_block;
/* Pixels m0..m0+count-1 of a grid. */
void hk_block_make(hk_block *b, const hk_grid *grid, int64_t m0, int64_t count);
/* dense/cut.c: where the taps that lie in x change, along lines and along columns; columns = 0: nowhere. */
#define HK_CUTS 16
typedef struct hk_cuts {
  int32_t columns, lines, planes;
  int32_t least; /* pixels of a group worth its own tiles; 1: no two pixels of different taps share a tile */
  bool exact;    /* no place was left out */
  int64_t column[HK_CUTS + 1], line[HK_CUTS + 1], plane[HK_CUTS + 1];
} hk_cuts;
hk_cuts hk_cuts_make(const hk_geom *g, bool every);
/* Puts the pixels of a block in order of their taps; end[i]: how many pixels the groups up to i hold. Returns the
 * number of groups, at most HK_BLOCK_MAX. */
int32_t hk_block_group(const hk_cuts *c, hk_block *b, int32_t *end);
/* Offset of pixel j of a run in a tensor laid out as y. */
static inline int64_t hk_run_offset(const hk_block *b, const hk_run *r, const hk_strides *s, int64_t j) {
  return s->outer * r->n + s->at[0] * r->p[0] + s->at[1] * r->p[1] + s->at[2] * (r->p[2] + j * b->grid->step[2]);
}

/* Offset in x, the image counted, of the line that taps s0 and s1 of the outer dimensions read for a run; false when it
 * lies in the padding or between the lines of a dilated input. */
bool hk_line_offset(const hk_geom *g, const hk_run *r, int64_t s0, int64_t s1, int64_t *offset);

/* Elements of x between neighbours of a run; 1 where a phase has one output, which never steps. */
int64_t hk_index_step(const hk_geom *g, const hk_block *b);
/* Which pixels lo..hi-1 of a run find tap s2 inside the line, and where in the line the first of the run would lie.
 * inc: hk_index_step. */
void hk_run_span(const hk_geom *g, const hk_run *r, int64_t inc, int64_t s2, int64_t *lo, int64_t *hi, int64_t *index);

/* The rows of x under a block: table[t*step + m] for the taps that touch x at all; tap[t] says which. zeros: a row
 * of zeros as long as C. Returns the number of taps kept. */
typedef struct hk_rows {
  const float **table;
  int64_t step;
  int64_t *tap;
  const float *zeros;
} hk_rows;
int64_t hk_rows_make(const hk_geom *g, const hk_block *b, const float *x, int64_t t0, int64_t t1, hk_rows *rows);
/* The same for whole window rows (the last dimension's taps and the channels lie contiguously): tap[] counts window
 * rows, and rows that stick out of x are completed in scratch. */
bool hk_rows_mergeable(const hk_geom *g);
int64_t hk_rows_make_merged(const hk_geom *g, const hk_block *b, const float *x, int64_t t0, int64_t t1, float *scratch,
                            hk_rows *rows);
/* Where the pixels of a block lie under one tap, as pieces of lines of x and of zeros, up to column width. step: the
 * distance of neighbours in x. Returns the number of pieces, 0 when the tap touches nothing. */
#define HK_PIECES_MAX (3 * HK_BLOCK_MAX + 1)
int64_t hk_pieces_make(const hk_geom *g, const hk_block *b, int64_t tap, int64_t width, hk_gather_piece *piece,
                       int64_t *step);

/* ---- dense/epilogue.c: how much of the epilogue a kernel does in registers */
typedef struct hk_fuse {
  bool all;       /* everything: the kernel stores to y */
  uint32_t flags; /* HK_IGEMM_AFFINE.. */
  float lo, hi, beta;
  hk_act late; /* an activation that follows in place, by hk_fuse_late; NONE: the kernel does all */
} hk_fuse;
/* along_k: the kernel stores runs of channels (whose stride must be 1); else runs of pixels. */
hk_fuse hk_fuse_make(const hk_task *task, bool along_k);
/* The same for runs of channels, with any activation: what kernels do not know follows over the rows in y. */
hk_fuse hk_fuse_make_late(const hk_task *task);
/* The late activation over `rows` rows of y, `step` apart, of `count` channels from `first` (over all groups) on; y is
 * the first of them. Does nothing where there is none. */
void hk_fuse_late(const hk_plan *plan, const hk_fuse *fuse, int64_t first, int64_t count, float *y, int64_t step,
                  int64_t rows);
/* For blocks finished with adjacent channels and then transposed into y; without a residual. */
hk_fuse hk_fuse_make_transposed(const hk_task *task);
/* True when the pixels of a block are neighbours in a tensor laid out as s. */
bool hk_block_adjacent(const hk_block *b, const hk_strides *s);
/* scale and bias of output channels first.. (over all groups): width values each, ones and zeros where there are none.
 */
void hk_fuse_affine(const hk_plan *plan, const hk_call *call, int64_t first, int64_t columns, int64_t width,
                    float *scale, float *bias);
/* Rows of raw sums (width apart) of a block through the whole epilogue to y. */
void hk_block_store(const hk_plan *plan, const hk_call *call, const hk_block *b, int64_t k, int64_t columns,
                    float *sums, int64_t width);
/* The same for sums[channel][pixel]: `channels` from k, rows width apart. */
void hk_block_store_planes(const hk_plan *plan, const hk_call *call, const hk_block *b, int64_t k, int64_t channels,
                           float *sums, int64_t width);
#endif
