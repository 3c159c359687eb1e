/* Decisions and plans: the tables of algorithms and rewrites, and what the tile loops see.
 *
 *   task      geometry + epilogue + options: everything a decision may depend on
 *   algo      one way to compute it; offers decisions or says why not, builds, runs
 *   rewrite   a task as another task and what runs before and after it: see rewrite/rewrite.h
 *   decision  a path of rewrites + algo + kernel row + knobs: prints, parses, compares
 *   plan      decision + packed weights: immutable, shared by threads */
#ifndef HK_PLAN_H
#define HK_PLAN_H
#include <stdatomic.h>

#include "core/core.h"
#include "cost/cost.h"
#include "cpu/ukernel.h"

#define HK_KNOBS 16
#define HK_DECISION_TEXT 512 /* most characters of a decision, and its end */
#define HK_COMMAND_TEXT 2048 /* of a command that hk_task_print_command writes */
#define HK_REASON 160
#define HK_LAYOUT 4
#define HK_DEPTH 5  /* rewrites of a path: one of each order */
#define HK_PARTS 64 /* most inner tasks of a rewrite */
/* Most bytes that one table of a plan takes, packed weights apart: with it creation stays under the 64 MiB of
 * docs/limits.md. An algorithm that would need more refuses, and one that needs no table takes the problem. */
#define HK_TABLE_BYTES ((int64_t)16 << 20)
/* Most taps for which a plan keeps a table of taps, up to 64 bytes each, and sorts them. */
#define HK_TABLE_TAPS ((int64_t)1 << 18)

typedef struct hk_task {
  hk_problem problem;
  hk_geom geom;
  hk_epi epi;
  hk_options options; /* every field present; decision pointer not kept */
  hk_isa isa;         /* highest that may be used */
  int32_t threads;    /* >= 1 */
  bool f_now;         /* weights are known at creation */
  bool f_zero_per_k;
  int part_of;           /* of several parts of y that run one after another: 1 the first, 2 a later one; else 0 */
  bool y_unaligned;      /* a view of y or c may start anywhere, whatever options.unaligned says of x */
  bool nonfinite;        /* the weights, known at creation, hold Inf or NaN */
  bool padded_nonfinite; /* and some tap falls outside x */
  bool vast; /* so large that 64-bit sizes and offsets of the algorithms could overflow, or that packed weights would:
                for ref alone */
} hk_task;

typedef struct hk_algo hk_algo;
typedef struct hk_rewrite hk_rewrite;

/* path[0] maps the task to that of path[1], and so on; the algorithm sees what the last one leaves. */
typedef struct hk_decision {
  const hk_rewrite *path[HK_DEPTH];
  int depth;
  const hk_algo *algo;
  const hk_kernel *kernel; /* NULL for algorithms without rows */
  hk_isa isa;              /* of passes, and of kernels that no row names; printed where it is not the kernel's */
  int64_t knob[HK_KNOBS];
  double predicted_s;
  size_t workspace_bytes;
} hk_decision;

/* What execute hands to an algorithm: pointers with the problem's offsets already added. */
typedef struct hk_call {
  const char *x, *f, *c;
  char *y;
  const void *scale, *bias;
  char *workspace;
  const char *state_in;
  char *state_out;
  void *stream, *user;
  bool prepared; /* the algorithm's prepare has run for this call */
} hk_call;

/* The sizes of a problem that bound a knob. */
typedef enum hk_knob_of {
  HK_OF_NOTHING,
  HK_OF_POSITIONS, /* gm: output positions of all images */
  HK_OF_C,
  HK_OF_K,
  HK_OF_GROUPS,
  HK_OF_ROWS,   /* out[1] */
  HK_OF_COLUMNS /* out[2] */
} hk_knob_of;

/* A knob as printed (bm=, bk=, ...) and the values it may take: least..most and, where `of` names a size of the
 * problem, at most that size rounded up to whole tiles. Every decision passes hk_decision_check, whoever made it; an
 * algorithm's own check adds only what relates knobs to each other, to the kernel or to the layout.
 *
 * A derived knob follows from the others, the task and the machine where a text leaves it out: it is HK_KNOB_AUTO until
 * the algorithm's check replaces that by its choice, so every decision that passed is complete, and build chooses
 * nothing. */
typedef enum hk_knob_kind {
  HK_GIVEN,
  HK_DERIVED,
  HK_DERIVED_ORDER /* the order of packed weights or of sums depends on it: a plan made like another keeps it */
} hk_knob_kind;
typedef struct hk_knob {
  const char *name;
  int64_t least, most;
  hk_knob_of of;
  hk_knob_kind kind;
} hk_knob;
#define HK_KNOB_AUTO (-1)
#define HK_KNOB_MOST (INT64_C(1) << 40) /* of knobs that only the problem bounds */
#define HK_KNOB(name, least, most)                                                                                     \
  { name, least, most, HK_OF_NOTHING, HK_GIVEN }
#define HK_KNOB_OF(name, size)                                                                                         \
  { name, 1, HK_KNOB_MOST, HK_OF_##size, HK_GIVEN }
#define HK_KNOB_DERIVED(name, least, most)                                                                             \
  { name, least, most, HK_OF_NOTHING, HK_DERIVED }
#define HK_KNOB_ORDER(name, least, most)                                                                               \
  { name, least, most, HK_OF_NOTHING, HK_DERIVED_ORDER }
#define HK_THREAD_PIECES 4096 /* of knobs that count pieces of work: shards, parts, slots */

struct hk_algo {
  const char *name;
  const char *summary; /* one line for docs/algorithms.md */
  hk_knob knobs[HK_KNOBS];
  hk_family family; /* its rows are offered one by one; HK_FAMILY_NONE: one offer, kernel NULL */
  hk_family also;   /* a second family, whose rows follow; HK_FAMILY_NONE: there is none */
  hk_device device;
  bool fallback;       /* a slow path: forbid_fallback refuses it */
  double error_factor; /* 0: integers exact */
  bool fewer_products; /* than one per tap of a sum: HK_MATH_FAST_ALGORITHMS */
  bool folds;          /* takes a y with folded channels (hk_geom.fold) */
  bool skips_padding;  /* padded taps are never read, so Inf and NaN weights are safe */
  /* Fills knobs, predicted_s and workspace_bytes of *d (algo and kernel are set), or writes why not (HK_REASON bytes)
   * and returns false. */
  bool (*offer)(const hk_task *task, hk_decision *d, char *why);
  /* The index-th other knob setting worth measuring, from a decision that offer made; false when there are no more.
   * May be NULL. */
  bool (*vary)(const hk_task *task, const hk_decision *base, int index, hk_decision *d);
  /* For knobs within their ranges: says whether they fit the task and each other, and sets workspace_bytes and
   * predicted_s for this task, whatever task the decision was made for; writes why not. Never NULL. */
  bool (*check)(const hk_task *task, hk_decision *d, char *why);
  /* Packs weights (plan->raw_f is readable when task.f_now and the plan does not share) into plan->packed->f, and
   * whatever else; may allocate. */
  hk_status (*build)(hk_plan *plan);
  hk_status (*run)(const hk_plan *plan, const hk_call *call);
  /* Packs weights that come with the call into its workspace, so that `run` with call->prepared finds them there: for a
   * rewrite that packs those of several parts before it runs any. NULL: run does it. */
  hk_status (*prepare)(const hk_plan *plan, const hk_call *call);
  void (*destroy)(hk_plan *plan); /* frees plan->own; may be NULL */
  /* Appends what build made of the decision, as plan->own holds it: kernels and loops, for HANKEL_VERBOSE=trace. NULL:
   * plan->own holds nothing of the kind. */
  void (*trace)(const hk_plan *plan, hk_text *t);
};

/* Packed weights, shared between plans made alike. All pointers owned. */
typedef struct hk_packed {
  atomic_int refs;
  void *f; /* as the algorithm packed it; for algorithms that read f as given: a plain copy */
  size_t f_bytes;
  int64_t f_shift;           /* hk_plan_copy_weights: element of f that is f[0] */
  const hk_algo *algo;       /* who packed f */
  const hk_kernel *kernel;   /* and for which kernel */
  int64_t layout[HK_LAYOUT]; /* and what else the order of f depends on: see hk_plan_keep_layout */
  bool as_given;             /* f is the caller's, for a rewrite that passes it on in its calls */
  int64_t part;              /* of a rewrite whose parts have filters of their own: hk_rewrite.filter_at of this one */
  struct hk_packed *next;    /* those of the next part, kept by this one */
  void (*f_free)(void *f);   /* how to free f; NULL: hk_free */
  void *scale, *bias, *slopes;
  int32_t *f_zero;
} hk_packed;

/* What execute needs to know of a plan that takes x and y and nothing else from its caller: found once, at creation. */
typedef struct hk_short_way {
  bool open;
  uintptr_t x_mask, y_mask; /* bits of the pointers that must be 0 */
  int64_t x_bytes, y_bytes; /* the problem's offsets */
  const char *f;
  const void *scale, *bias;
  hk_status (*run)(const hk_plan *plan, const hk_call *call);
  /* Set by the build of an algorithm that needs no more than x and y, offsets added, and one thread; else NULL. */
  hk_status (*run_xy)(const hk_plan *plan, const char *x, char *y);
  bool flush;
} hk_short_way;

struct hk_plan {
  hk_short_way short_way;
  hk_task task;
  hk_decision decision;
  hk_packed *packed;
  const void *raw_f;        /* during build only: the caller's weights, offset added */
  const hk_packed *share;   /* during build only: packed weights to reuse (create-like) */
  const hk_kernel *act;     /* activation rows of the plan's ISA */
  const hk_kernel *map;     /* scale, bias and residual of rows, rounded as the decision's kernel rounds them */
  const hk_kernel *narrow;  /* f32 rows into y's type; NULL when y is f32 or has no such row */
  const hk_kernel *wide;    /* the way back, for the residual */
  void *own;                /* the algorithm's tables */
  hk_plan *inner[HK_PARTS]; /* of a rewrite: plans of the rest of the path, NULL where there are fewer */
  void *pass;               /* of a rewrite: what its own pass needs, or NULL */
  const char *source;       /* where the decision came from: "estimate", "wisdom", "forced", "measured" */
  double error_factor;
};

/* What the pieces of one call share: the context of a parallel loop. */
typedef struct hk_shared {
  const hk_plan *plan;
  const hk_call *call;
} hk_shared;

/* registry.c: NULL-ended */
extern const hk_algo *const hk_algos[];
/* The kernel rows of an algorithm in the order in which they are offered: the row behind `last`, or NULL. */
const hk_kernel *hk_algo_next_row(const hk_algo *algo, const hk_kernel *last);
extern const hk_rewrite *const hk_rewrites[];

/* run.c: body(context, 0..count-1) over the plan's threads or the caller's loop */
void hk_plan_parallel(const hk_plan *plan, int64_t count, hk_body body, void *context);

void hk_plan_short_way(hk_plan *plan); /* run.c: sets plan->short_way of a plan that is built */
hk_status hk_plan_run(const hk_plan *plan,
                      const hk_call *call); /* run.c: the first rewrite of the path, or the algorithm */
/* print.c: the command that does with a task what the caller did, by this decision (NULL: --why in its place) */
void hk_task_print_command(hk_text *t, const hk_task *task, const char *verb, const char *decision);
/* print.c: log lines of an execution and of a build */
void hk_plan_log_exec(const hk_plan *plan, double seconds);
void hk_plan_log_trace(const hk_plan *plan);

/* decision.c: writes why not (HK_REASON bytes) and returns false, for refusals to return. */
bool hk_refuse(char *why, const char *reason);
/* decision.c: "rewrite / rewrite / algo kernel=name isa=name knob=value ..." */
void hk_decision_print(hk_text *t, const hk_decision *d);
/* The same without knobs, and without an algorithm where a rewrite was refused: as refusals are told. */
void hk_decision_print_name(hk_text *t, const hk_decision *d);
hk_status hk_decision_parse(const hk_task *task, const char *text, hk_decision *d);
/* The highest ISA that the passes of a path of so many rewrites and the algorithm may use. */
hk_isa hk_decision_isa(const hk_task *task, const hk_algo *algo, int depth);
/* Sets the derived knobs of d->algo to HK_KNOB_AUTO: for a task or for other knobs than they were chosen for. */
void hk_decision_derive(hk_decision *d);
/* The same, but for knobs that the order of packed weights or of sums depends on. */
void hk_decision_renew(hk_decision *d);
/* Fills *d for a task like the one that `from` was made for: derived knobs are chosen anew, but for those that the
 * order of packed weights depends on. */
hk_status hk_decision_adapt(const hk_task *task, const hk_decision *from, hk_decision *d);
/* The one gate for decisions, offered, varied, parsed or forced: rewrites, knob ranges, then the algorithm's check.
 * Sets workspace_bytes and predicted_s for this task; writes why not. */
bool hk_decision_check(const hk_task *task, hk_decision *d, char *why);
/* False with a reason when the options alone forbid the algorithm or its kernel: device, ISA cap, forbid_fallback,
 * size.
 */
bool hk_decision_allowed(const hk_task *task, const hk_decision *d, char *why);

/* plan.c: from a decision to a plan. like (may be NULL): a plan whose packed weights are shared. */
hk_status hk_plan_build(hk_plan **plan, const hk_task *task, const hk_decision *d, const hk_weights *w,
                        const hk_plan *like);
/* Sets task.nonfinite and task.padded_nonfinite for these weights; hk_task_make, which sees stand-ins too, reads none.
 */
void hk_task_read_weights(hk_task *task, const void *f);
/* Sets them for weights that another plan has read. */
void hk_task_set_nonfinite(hk_task *task, bool nonfinite);
/* Sets problem, geometry and epilogue alone. */
hk_status hk_task_shape(hk_task *t, const hk_problem *p, const hk_epilogue *e);
hk_status hk_task_make(hk_task *task, const hk_problem *p, const hk_epilogue *e, const hk_options *o,
                       const hk_weights *w);

/* For algorithms that read f as given: copies the extent of f (or shares it); weights at execute need nothing. */
hk_status hk_plan_copy_weights(hk_plan *plan);
void hk_packed_release(hk_packed *p);
size_t hk_packed_bytes(const hk_packed *p); /* of the weights of all parts */
/* True for a plan made like another: packed weights are the other's, and there is nothing to pack. */
bool hk_plan_shares(const hk_plan *plan);
/* Notes what the order of packed weights depends on beside f's own sizes and strides: the algorithm, its kernel, their
 * bytes, and count <= HK_LAYOUT numbers that the algorithm names. A plan that shares its weights compares instead, and
 * fails where they were packed in another order. */
hk_status hk_plan_keep_layout(hk_plan *plan, size_t bytes, const int64_t *layout, int count);
/* The same, and room for `elements` of `bytes` each at plan->packed->f, which *to points at then; NULL: nothing is to
 * be packed, because the weights come at execute or are shared. */
hk_status hk_plan_pack_room(hk_plan *plan, int64_t elements, size_t bytes, const int64_t *layout, int count, void *to);

/* hk_plan_build where f points at f[0] already, whatever w says; NULL when it comes at execute or is shared. */
hk_status hk_plan_build_at(hk_plan **plan, const hk_task *task, const hk_decision *d, const hk_weights *w,
                           const void *f, const hk_plan *like);

/* rows.c: the epilogue of one run of f32 sums while it is hot, then conversion and store. at->k counts over all
 * groups; v has count values along k (at->along_k) or along the last dimension; v is overwritten. */
/* The same for values that are finished but for the residual after the activation, user2 and the store. */
void hk_plan_store_finished(const hk_plan *plan, const hk_call *call, const hk_at *at, int64_t count, float *v);
void hk_plan_store_row(const hk_plan *plan, const hk_call *call, const hk_at *at, int64_t count, float *v);
/* What that counts for all outputs, handed over in so many rows. */
void hk_work_store(hk_work *work, const hk_task *task, bool along_k, double rows);
#endif
