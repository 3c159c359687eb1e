/* Tiles of a dwp plan: their places, how their sums become y. Internal to dwp_*.c. */
#ifndef HK_PLAN_DWP_TILE_H
#define HK_PLAN_DWP_TILE_H
#include "plan/depthwise/dwp.h"

/* One task of an execute. The arguments of calls are filled as far as they are the same for all: a small plane takes
 * less time than to clear them. */
typedef struct hk_dwp_job {
  const hk_plan *plan;
  const hk_call *call;
  const hk_geom *g;
  const hk_dwp *p;
  hk_dwp_args down, along; /* templates of the two directions */
} hk_dwp_job;

/* One output channel of one image. */
typedef struct hk_dwp_site {
  hk_dwp_job *j;
  int64_t n, k; /* k over all groups */
  float *y;
  const float *c, *f;
  float scale, bias;
} hk_dwp_site;

/* Where a call's vectors lie: vector v of tile i at row p + v*p_step, column q + v*q_step + i*q_next. */
typedef struct hk_dwp_place {
  int64_t z, p, p_step, q, q_step, q_next;
} hk_dwp_place;

void hk_dwp_templates(hk_dwp_job *j);
/* Runs the kernel on a and lets the sums become y; a is from a template, with x, vectors, tiles and lanes set. */
void hk_dwp_emit(const hk_dwp_site *s, hk_dwp_args *a, const hk_dwp_place *w);
/* Tiles of vectors along one row: count outputs from column q on, read from x. */
void hk_dwp_along(const hk_dwp_site *s, const float *x, int64_t z, int64_t p, int64_t q, int64_t count);
/* The same, more than a vector of them: the last tile is moved back to end with the last output. */
void hk_dwp_overlapped(const hk_dwp_site *s, const float *x, int64_t q, int64_t count);
/* The same for a plan whose window is a line; any count. */
void hk_dwp_line(const hk_dwp_site *s, const float *x, int64_t q, int64_t count);
/* The same for a plan that folds; whole vectors of x are read, and of y where there is one. */
void hk_dwp_folded(const hk_dwp_site *s, const float *x, int64_t q, int64_t count);
/* Tiles of vectors down the rows of a band that begins at row p, column q, column after column. */
void hk_dwp_down(const hk_dwp_site *s, const float *x, const hk_dwp_place *band, int64_t rows, int64_t tiles,
                 int64_t tail);
/* count outputs of a row from column p[2] on, each tap's values gathered from plane x. */
void hk_dwp_gather(const hk_dwp_site *s, const float *x, const int64_t p[3], int64_t count);
#endif
