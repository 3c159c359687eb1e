/* What the polyphase rewrites of both devices share: the phases of a dilated x, and the outputs that meet no tap. */
#ifndef HK_PLAN_POLYPHASE_H
#define HK_PLAN_POLYPHASE_H
#include "plan/rewrite/rewrite.h"

/* The phases of each dimension, those with taps first, in the order of their first tap, then those without. */
typedef struct hk_phases {
  hk_polyphase at[3][HK_PARTS];
  int count[3], live[3];
  int parts; /* product of live */
} hk_phases;
void hk_phases_make(const hk_geom *g, hk_phases *to);
/* The phases of a part: the last dimension varies first. */
void hk_phases_part(const hk_phases *phases, int part, hk_polyphase to[3]);
/* Whether some outputs meet no tap. */
bool hk_phases_gaps(const hk_phases *phases);
/* The index-th of the sets of outputs that meet no tap, and together are all of them; false when there are no more. */
bool hk_phases_gap(const hk_phases *phases, const hk_geom *g, int index, hk_polyphase to[3]);
/* Elements from the first one of a tensor to that of these phases. */
int64_t hk_phases_place(const hk_strides *s, const hk_polyphase p[3]);

/* Refuses tasks without input dilation, with more phases than there may be parts, with functions that are told where an
 * output lies, and outputs without taps that the epilogue of 0 cannot store. */
bool hk_polyphase_takes(const hk_task *t, char *why);
int hk_polyphase_inner(const hk_task *t, int part, hk_task *to);
int64_t hk_polyphase_filter_at(const hk_task *t, int part, int64_t *first);
/* How many parts have workspace of their own: all, whose filters are packed before any runs, where they come with the
 * call and an algorithm of the device may prepare them. */
int64_t hk_polyphase_copies(const hk_task *t);
/* Runs the parts, on views of the call's f (where it comes with the call), y and c. */
hk_status hk_polyphase_run_parts(const hk_plan *plan, const hk_phases *phases, const hk_call *call);

/* subpixel.c: makes the filter of the one convolution, zeroed before, from the task's at f[0]; its elements. */
int64_t hk_subpixel_elements(const hk_task *t);
void hk_subpixel_filter(const hk_task *t, const char *f, char *to);
#endif
