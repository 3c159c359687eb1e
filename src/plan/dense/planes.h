/* What planes' planning (dense/planes.c) and running (planes_run.c) share. */
#ifndef HK_PLANES_H
#define HK_PLANES_H
#include "plan/dense/dense.h"
#include "plan/dense/igemm.h"

/* knobs; those from WIDE on are derived:
 *   wide    strips gathered at once; 1 where flat
 *   chunks  flat: jobs an image is cut into; else 0
 *   ahead   flat: strips are prefetched
 *   keep    flat: strips are copied next to each other as they are read
 *   rest    flat: the last pixels go through vectors half as long */
enum {
  HK_PLANES_BM,
  HK_PLANES_BS,
  HK_PLANES_PACK,
  HK_PLANES_FLAT,
  HK_PLANES_WIDE,
  HK_PLANES_CHUNKS,
  HK_PLANES_AHEAD,
  HK_PLANES_KEEP,
  HK_PLANES_REST
};

/* what a job keeps on its stack */
#define HK_PLANES_PANEL 16384  /* floats: gathered pixels */
#define HK_PLANES_PARTIAL 8192 /* floats: sums of bm channels x a strip */
#define HK_PLANES_SET 512      /* channels at most in a set */
#define HK_PLANES_SEGMENTS 64  /* taps gathered at once */
#define HK_PLANES_TILE 4096    /* floats: weights of a tile packed in place */

typedef struct hk_planes_own {
  hk_fuse fuse;
  const hk_kernel *gather;
  int64_t lanes, most;              /* floats in a vector; vectors in the widest strip */
  int64_t bm, groups_m, bs, splits; /* channels packed together; how many such; per job; jobs a strip */
  int64_t strips, wide;             /* of the gathering loop; knob */
  int64_t chunks;                   /* knob */
  int64_t cuts, each, more;         /* flat: strips of an image, their vectors, how many have one more */
  bool ahead, keeps;                /* knobs */
  const hk_kernel *rest;            /* flat: for the last pixels, with vectors half as long; else NULL */
} hk_planes_own;

/* Strip `index` of a grid: nearly equal numbers of vectors, the last cut to the pixels there are. */
typedef struct hk_strip {
  int64_t first, columns, vectors;
} hk_strip;
int64_t hk_strip_count(int64_t pixels, int64_t lanes, int64_t most);
hk_strip hk_strip_get(int64_t pixels, int64_t lanes, int64_t most, int64_t index);

/* Weights of channels m0..m0+count-1 of a group, reduction rows r0..r1-1 (tap*C + c), packed by tiles of mr channels.
 * f: of the group. */
typedef struct hk_planes_piece {
  int64_t m0, count, mr, r0, r1;
} hk_planes_piece;
void hk_planes_pack(const hk_geom *g, const float *f, const hk_planes_piece *piece, float *to);
void hk_planes_pack_all(const hk_plan *plan, const float *f, float *to);
hk_status hk_planes_run(const hk_plan *plan, const hk_call *call);

/* planes_flat.c: pointwise problems whose images lie as one line of pixels a channel, in x and in y: strips are read
 * and written in place. */
bool hk_planes_flat(const hk_task *t, int64_t lanes, int64_t most);
/* The kernel for the last pixels of an image, with vectors half as long; NULL: there is none for them. */
const hk_kernel *hk_planes_rest(const hk_geom *g, const hk_kernel *kernel);
/* True when it pays. */
bool hk_planes_rest_pays(const hk_geom *g, const hk_kernel *kernel);
/* True when an image's x and y do not fit L2: strips are prefetched. */
bool hk_planes_ahead(const hk_geom *g);
/* The derived knobs of a flat decision: chooses those that are HK_KNOB_AUTO, and says whether all of them fit. */
void hk_planes_flat_derive(const hk_task *t, hk_decision *d);
bool hk_planes_flat_fits(const hk_task *t, const hk_decision *d, char *why);
/* How a flat plan cuts an image: chunks, strips and what they are made of. */
void hk_planes_cut(const hk_geom *g, const hk_decision *d, hk_planes_own *o);
void hk_planes_run_flat(const hk_plan *plan, const hk_call *call, const float *packed);
#endif
