/* hankel: convolution by implicit GEMM. The only public header; C11 and C++.
 *
 *   hk_problem  what to compute: sizes, types, strides, padding, dilations, groups
 *   hk_epilogue what happens to each sum before it is stored
 *   hk_options  how a plan may be made: threads, ISA, workspace, math modes
 *   hk_plan     the frozen result of planning; execute it as often as you like, from any thread
 *
 * Every struct starts with its own size; fill the rest with zeros for defaults. Sizes and strides count
 * elements; byte counts end in _bytes. Every function that can fail returns hk_status, and
 * hk_last_error() then holds a sentence that names the field, the value and the rule. */
#ifndef HANKEL_H
#define HANKEL_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(_WIN32)
#define HK_API
#else
#define HK_API __attribute__((visibility("default")))
#endif

#define HK_VERSION_MAJOR 0
#define HK_VERSION_MINOR 1
#define HK_VERSION_PATCH 0
#define HK_VERSION_TEXT "0.1.0"
#define HK_MAX_RANK 3

/* ------------------------------------------------------------------ status */

typedef enum hk_status {
  HK_OK = 0,
  HK_INVALID = 1,       /* an argument breaks a rule; nothing was written */
  HK_UNSUPPORTED = 2,   /* legal, but nothing that the options allow computes it */
  HK_NO_MEMORY = 3,     /* an allocation failed during planning */
  HK_WORKSPACE = 4,     /* the workspace given to execute is missing, too small or misaligned */
  HK_SYNTAX = 5,        /* a text (problem, epilogue, decision, wisdom) does not parse */
  HK_NO_WISDOM = 6,     /* wisdom_only was asked for and no wisdom matches */
  HK_FALLBACK = 7,      /* forbid_fallback was asked for and only a slow path is left */
  HK_DEVICE = 8,        /* the device, its driver or its compiler refused */
  HK_IO = 9             /* a file could not be read or written */
} hk_status;

/* Version of the library at run time, e.g. "0.1.0". */
HK_API const char *hk_version(void);
/* The name of a status, e.g. "HK_INVALID". */
HK_API const char *hk_status_name(hk_status status);
/* The sentence of this thread's last failure; "" before any. Valid until the thread's next failure. */
HK_API const char *hk_last_error(void);

/* ------------------------------------------------------------------- types */

typedef enum hk_type {
  HK_F32 = 0, HK_F64 = 1, HK_F16 = 2, HK_BF16 = 3, HK_S8 = 4, HK_U8 = 5, HK_S32 = 6, HK_F8E4M3 = 7
} hk_type;

HK_API const char *hk_type_name(hk_type type);  /* "f32", "bf16", ...; NULL for a bad value */
HK_API size_t hk_type_bytes(hk_type type);      /* 0 for a bad value */
/* Converts count elements as the library does: rounded half to even, integers saturated, NaN kept. */
HK_API hk_status hk_convert(hk_type from, const void *src, hk_type to, void *dst, int64_t count);

/* ----------------------------------------------------------------- problem */

/* Where the elements of a tensor lie, in elements. Channels are [group][in group].
 *   x[n, c, i..]: offset + group*g + outer*n + channel*(c in group) + at[]*i   (batch groups: n in group)
 *   f[k, c, s..]: offset + group*g + outer*(k in group) + channel*(c in group) + at[]*s
 *   y[n, k, p..]: offset + group*g + outer*n + channel*(k in group) + at[]*p
 * offset is added to the pointer given at execute, so views (reversed, sliced) need no pointer arithmetic. */
typedef struct hk_strides {
  int64_t offset, group, outer, channel, at[HK_MAX_RANK];
} hk_strides;

typedef struct hk_problem {
  size_t size;
  int32_t rank;                        /* 1, 2 or 3; arrays below use entries 0..rank-1, slowest dimension first */
  hk_type x_type, f_type, y_type;
  int64_t n, c, k;                     /* batch of x; channels of x; output channels */
  int64_t feature_groups, batch_groups; /* as in XLA, >= 1; at most one exceeds 1 */
  int64_t in[HK_MAX_RANK];             /* spatial size of x */
  int64_t window[HK_MAX_RANK];         /* spatial size of f, >= 1 */
  int64_t stride[HK_MAX_RANK];         /* >= 1 */
  int64_t pad_lo[HK_MAX_RANK], pad_hi[HK_MAX_RANK]; /* any integer; negative crops */
  int64_t dilation[HK_MAX_RANK];       /* of the filter (rhs), >= 1 */
  int64_t in_dilation[HK_MAX_RANK];    /* of the input (lhs), >= 1 */
  int32_t reverse[HK_MAX_RANK];        /* nonzero: the filter is read backwards along that dimension */
  int32_t x_zero, f_zero, y_zero;      /* int8 zero points; padding has the value x_zero */
  hk_strides x, f, y;
} hk_problem;

typedef enum hk_layout {
  HK_CHANNELS_FIRST = 0, /* x[n][c][..], f[k][c][..], y[n][k][..] */
  HK_CHANNELS_LAST = 1   /* x[n][..][c], f[k][..][c], y[n][..][k] */
} hk_layout;

typedef enum hk_padding {
  HK_PAD_EXPLICIT = 0, HK_PAD_VALID = 1, HK_PAD_SAME_UPPER = 2, HK_PAD_SAME_LOWER = 3,
  HK_PAD_CAUSAL = 4    /* all of dilation*(window-1) before the first element, none after */
} hk_padding;

/* The usual arguments of the helpers below. Zero means default: stride, dilation and groups 1, padding 0, f32.
 * rank entries of each array are used. Unlike hk_problem_check these helpers refuse what torch refuses: a window
 * larger than the padded input, negative padding. */
typedef struct hk_conv_desc {
  size_t size;
  int32_t rank;
  hk_layout layout;
  hk_type x_type, f_type, y_type;
  int64_t n, c, k, groups;
  int64_t in[HK_MAX_RANK], window[HK_MAX_RANK], stride[HK_MAX_RANK], dilation[HK_MAX_RANK];
  hk_padding padding;                  /* EXPLICIT takes pad_lo and pad_hi */
  int64_t pad_lo[HK_MAX_RANK], pad_hi[HK_MAX_RANK];
  int64_t output_padding[HK_MAX_RANK]; /* transposed only */
} hk_conv_desc;

/* Fill a problem with dense strides of the layout. */
HK_API hk_status hk_problem_conv(hk_problem *p, const hk_conv_desc *desc);
/* Transposed: desc describes the transposed convolution itself (in = its input; weights [c][k/groups][..], or
 * [c][..][k/groups] channels-last; y = (in-1)*stride - lo - hi + dilation*(window-1) + output_padding + 1). */
HK_API hk_status hk_problem_conv_transpose(hk_problem *p, const hk_conv_desc *desc);
/* Short forms of hk_problem_conv, f32, symmetric padding. */
HK_API hk_status hk_problem_conv1d(hk_problem *p, hk_layout layout, int64_t n, int64_t c, int64_t w, int64_t k,
                                   int64_t s, int64_t stride, int64_t pad, int64_t dilation, int64_t groups);
HK_API hk_status hk_problem_conv2d(hk_problem *p, hk_layout layout, int64_t n, int64_t c, int64_t h, int64_t w,
                                   int64_t k, int64_t r, int64_t s, int64_t stride, int64_t pad, int64_t dilation,
                                   int64_t groups);
HK_API hk_status hk_problem_conv3d(hk_problem *p, hk_layout layout, int64_t n, int64_t c, int64_t d, int64_t h,
                                   int64_t w, int64_t k, int64_t q, int64_t r, int64_t s, int64_t stride,
                                   int64_t pad, int64_t dilation, int64_t groups);
/* Depthwise: groups = c, k = c * multiplier. */
HK_API hk_status hk_problem_depthwise(hk_problem *p, hk_layout layout, int32_t rank, int64_t n, int64_t c,
                                      const int64_t *in, const int64_t *window, int64_t multiplier, int64_t stride,
                                      hk_padding padding, int64_t dilation);
/* XLA's conv_general_dilated. Specs hold one letter an axis: N and C of x, O and I of f, N and C of y, and the same
 * spatial letters in all three ("NHWC", "HWIO", "NHWC"); shapes are in the order of their specs; NULL arrays mean
 * ones (strides, dilations) or zeros (padding, as lo hi pairs). Tensors are dense in spec order. */
typedef struct hk_xla_desc {
  size_t size;
  const char *x_spec, *f_spec, *y_spec;
  const int64_t *x_shape, *f_shape;
  const int64_t *strides, *padding, *lhs_dilation, *rhs_dilation;
  int64_t feature_group_count, batch_group_count; /* 0 means 1 */
  hk_type x_type, f_type, y_type;
} hk_xla_desc;
HK_API hk_status hk_problem_xla(hk_problem *p, const hk_xla_desc *desc);
/* Sets pad_lo and pad_hi of a problem whose sizes, strides and dilations are set. */
HK_API hk_status hk_problem_pad(hk_problem *p, hk_padding padding);
/* Sets dense strides of a layout for x, f and y. */
HK_API hk_status hk_problem_dense(hk_problem *p, hk_layout layout);
/* Sets dense strides of y alone for `channels` channels: k/2 for a gated epilogue, whose y is one run of channels. */
HK_API hk_status hk_problem_dense_y(hk_problem *p, hk_layout layout, int64_t channels);

/* Everything that can be wrong with a problem is found here; a gated epilogue's y is checked by hk_plan_create. */
HK_API hk_status hk_problem_check(const hk_problem *p);
/* out[0..rank-1]: spatial size of y. n_out (may be NULL): batch of y. */
HK_API hk_status hk_problem_output(const hk_problem *p, int64_t out[HK_MAX_RANK], int64_t *n_out);
/* Elements from the lowest to the highest address a tensor touches, and how far the lowest lies below the pointer. */
typedef struct hk_extent { int64_t elements, below; } hk_extent;
HK_API hk_status hk_problem_extents(const hk_problem *p, hk_extent *x, hk_extent *f, hk_extent *y);
/* Multiply-adds times two, padded taps included, and the least bytes moved (each tensor once). */
HK_API hk_status hk_problem_work(const hk_problem *p, double *flops, double *bytes);

/* Gradients as problems of the same algebra; views, never copies. input: execute with x = dy, f = f, y = dx.
 * filter: x = x, f = dy, y = df. Types: dy takes y_type (or x_type where y is wider), results keep x_type, f_type. */
HK_API hk_status hk_problem_grad_input(const hk_problem *forward, hk_problem *grad);
HK_API hk_status hk_problem_grad_filter(const hk_problem *forward, hk_problem *grad);
/* The bias gradient: db[k] = sum of dy over batch and space; db has k elements of f32 (f64 when dy is f64). */
HK_API hk_status hk_grad_bias(const hk_problem *forward, const void *dy, void *db);

/* Text. Both return HK_SYNTAX or HK_INVALID with a reason; print writes at most size bytes including the 0 and
 * gives the full length in *length (may be NULL). parse also reads oneDNN's benchdnn form. */
HK_API hk_status hk_problem_parse(hk_problem *p, const char *text);
HK_API hk_status hk_problem_parse_deconv(hk_problem *p, const char *text); /* benchdnn text of a deconvolution */
HK_API hk_status hk_problem_print(const hk_problem *p, char *buffer, size_t size, size_t *length);

/* ---------------------------------------------------------------- epilogue */

/* v = acc*scale[k] + bias[k]; act(v) + beta*C, or act(v + beta*C); then user2; then conversion and store.
 * int8: v = (acc + bias_s32[k])*scale[k]; ... + y_zero. y_type s32: acc + bias only. */
typedef enum hk_act {
  HK_ACT_NONE = 0, HK_ACT_RELU = 1,
  HK_ACT_CLIP = 2,      /* a, b: min(max(v, a), b) */
  HK_ACT_LEAKY = 3,     /* a: v < 0 ? a*v : v */
  HK_ACT_PRELU = 4,     /* slopes[k] given in hk_weights */
  HK_ACT_SIGMOID = 5, HK_ACT_SILU = 6, HK_ACT_TANH = 7, HK_ACT_GELU = 8, HK_ACT_GELU_TANH = 9,
  HK_ACT_HARDSWISH = 10,
  HK_ACT_HARDTANH = 11, /* a, b; both 0 means -1, 1 */
  HK_ACT_SOFTSIGN = 12,
  HK_ACT_USER = 13      /* hk_epilogue.user */
} hk_act;

typedef enum hk_gate {
  HK_GATE_NONE = 0,
  HK_GATE_GATED = 1,  /* y has k/2 channels: act(t)*act2(b), t = channel j, b = channel j + k/2 */
  HK_GATE_BLENDED = 2 /* a = act2(b): a*act(t) + (1-a)*t */
} hk_gate;

typedef enum hk_residual {
  HK_RESIDUAL_NONE = 0, HK_RESIDUAL_AFTER = 1 /* act(v) + beta*C */, HK_RESIDUAL_BEFORE = 2 /* act(v + beta*C) */
} hk_residual;

/* Where a run of values lies in y: its first element, and whether it runs along k or along the last dimension. */
typedef struct hk_at {
  int64_t n, k, p[HK_MAX_RANK];
  int32_t along_k;
} hk_at;
/* values: float, or double when x, f or y is f64. Called from any thread of the plan. */
typedef void (*hk_user_fn)(void *user, const hk_at *at, int64_t count, void *values);
typedef void (*hk_store_fn)(void *user, const hk_at *at, int64_t count, const void *values);

typedef struct hk_epilogue {
  size_t size;
  int32_t scale;        /* 0 none, 1 one value for all, 2 one a channel */
  int32_t bias;         /* 0 none, 1 one a channel */
  hk_act act, act2;     /* act2 only with a gate */
  float a, b, a2, b2;   /* parameters of act and act2 */
  hk_gate gate;
  hk_residual residual;
  float beta;           /* factor of the residual C, which has y's type and shape */
  int32_t c_strided;    /* nonzero: C lies as c says; zero: as y does */
  hk_strides c;
  hk_user_fn user;      /* act or act2 == HK_ACT_USER */
  hk_user_fn user2;     /* last step before conversion */
  hk_store_fn store;    /* owns the write; y is not touched */
  const char *cuda_user, *cuda_user2, *cuda_store; /* the same as CUDA source text */
} hk_epilogue;

/* "bias+silu+sum:0.5"; see docs/manual.md. User functions print as words and do not parse. */
HK_API hk_status hk_epilogue_parse(hk_epilogue *e, const char *text);
HK_API hk_status hk_epilogue_print(const hk_epilogue *e, char *buffer, size_t size, size_t *length);

/* ----------------------------------------------------------------- options */

typedef enum hk_device { HK_CPU = 0, HK_CUDA = 1 } hk_device;
typedef enum hk_isa {
  HK_ISA_BEST = 0, HK_ISA_SCALAR = 1, HK_ISA_NEON = 2, HK_ISA_AVX2 = 3, HK_ISA_AVX512 = 4, HK_ISA_AMX = 5
} hk_isa;
typedef enum hk_rigor { HK_ESTIMATE = 0, HK_MEASURE = 1, HK_PATIENT = 2 } hk_rigor;
typedef enum hk_denormals { HK_DENORMALS_KEEP = 0, HK_DENORMALS_FLUSH = 1 } hk_denormals;
/* Math modes that may be used besides strict arithmetic; bits. */
enum { HK_MATH_STRICT = 0, HK_MATH_FAST_ALGORITHMS = 1 /* Winograd, FFT */, HK_MATH_TF32 = 2, HK_MATH_SPLIT_F32 = 4 };

/* Runs body(context, i) for every i in 0..count-1, each once, and returns when all are done. */
typedef void (*hk_parallel_for)(void *pool, int64_t count, void (*body)(void *context, int64_t i), void *context);

typedef struct hk_options {
  size_t size;
  int32_t threads;          /* 0: HANKEL_NUM_THREADS, OMP_NUM_THREADS, else affinity and cgroup */
  hk_parallel_for parallel_for; /* the caller's loop in place of hankel's pool; threads says how many to plan for */
  void *pool;
  hk_isa isa;               /* cap; BEST also obeys HANKEL_MAX_ISA */
  hk_device device;
  int32_t limit_workspace;  /* nonzero: no more than workspace_limit_bytes */
  size_t workspace_limit_bytes;
  hk_rigor rigor;
  double time_limit_s;      /* for MEASURE and PATIENT; 0 means none */
  int32_t wisdom_only, forbid_fallback, batch_invariant;
  hk_denormals denormals;
  uint32_t math;            /* HK_MATH_* bits */
  int32_t unaligned;        /* CUDA: x, y and c may lie at any element address (default: 16-byte aligned) */
  int32_t stateful;         /* 1D, stride 1: positions before x come from args.state_in, see hk_args */
  const char *decision;     /* use this decision (as printed by a plan) or fail */
} hk_options;

/* -------------------------------------------------------------------- plan */

typedef struct hk_plan hk_plan;

/* What a plan copies at creation. NULL pointers are given at execute instead (slopes and f_zero only here).
 * scale, bias, slopes: f32, f64 when x, f or y is f64; bias of an int8 problem: s32. */
typedef struct hk_weights {
  size_t size;
  const void *f, *scale, *bias, *slopes;
  const int32_t *f_zero;   /* one a channel k, in place of the problem's f_zero */
} hk_weights;

/* What changes from call to call. On CUDA every tensor pointer is a device pointer. */
typedef struct hk_args {
  size_t size;
  const void *x, *f;
  void *y;
  const void *c;           /* residual; may equal y, else y overlaps nothing */
  const void *scale, *bias;
  void *workspace;         /* 64-byte aligned, hk_plan_workspace() bytes; NULL when that is 0 */
  size_t workspace_bytes;
  void *stream;            /* CUstream */
  const void *state_in;    /* stateful plans: [n][c][dilation*(window-1)] of x's type, oldest first; NULL means zeros */
  void *state_out;         /* the state after this block; may equal state_in */
  void *user;              /* handed to the user functions */
} hk_args;

/* epilogue, options and weights may be NULL. */
HK_API hk_status hk_plan_create(hk_plan **plan, const hk_problem *problem, const hk_epilogue *epilogue,
                                const hk_options *options, const hk_weights *weights);
/* The same convolution for another batch or input size, sharing the packed weights of `like` (which may be
 * destroyed first). Fails if the decision does not carry over. */
HK_API hk_status hk_plan_create_like(hk_plan **plan, const hk_plan *like, const hk_problem *problem);
HK_API void hk_plan_destroy(hk_plan *plan);
HK_API size_t hk_plan_workspace(const hk_plan *plan);
HK_API hk_status hk_plan_execute(const hk_plan *plan, const hk_args *args);
/* The decision as text, e.g. "igemm kernel=hk_igemm_f32_6x16_avx2 bm=48 bk=256": hk_options.decision reads it. */
HK_API hk_status hk_plan_decision(const hk_plan *plan, char *buffer, size_t size, size_t *length);
/* The whole story for a person: problem, GEMM sizes, tiles, memory, why. */
HK_API hk_status hk_plan_print(const hk_plan *plan, char *buffer, size_t size, size_t *length);
/* The symbol table, one by one: index 0.. until HK_INVALID. */
HK_API hk_status hk_plan_symbol(const hk_plan *plan, int32_t index, const char **name, double *value);
/* How exact a plan is: 0 when integers come out exact, else the factor on gk*eps that its error stays under. */
HK_API double hk_plan_error_factor(const hk_plan *plan);

/* Every candidate the planner would consider, best first, then the refused with their reasons. */
typedef struct hk_candidate {
  size_t size;
  const char *decision;    /* text; the algorithm and kernel for a refused one */
  const char *refusal;     /* NULL when usable */
  double predicted_s;      /* 0 when unknown */
  size_t workspace_bytes;
} hk_candidate;
typedef void (*hk_candidate_fn)(void *context, const hk_candidate *candidate);
HK_API hk_status hk_plan_candidates(const hk_problem *problem, const hk_epilogue *epilogue, const hk_options *options,
                                    hk_candidate_fn fn, void *context);

/* ----------------------------------------------------------------- machine */

typedef struct hk_machine {
  size_t size;
  char cpu[64];
  hk_isa best_isa;
  int32_t cores;           /* that this process may use */
  int64_t l1d_bytes, l2_bytes, l3_bytes;
} hk_machine;
HK_API hk_status hk_machine_info(hk_machine *m);
HK_API const char *hk_isa_name(hk_isa isa);
/* Measured now, on this thread: FMA peak in flop/s of an ISA, and bytes/s of a copy of `bytes` (read plus written). */
HK_API double hk_measure_peak(hk_isa isa, hk_type type);
HK_API double hk_measure_bandwidth(size_t bytes);

/* Log lines go to this function (NULL: stderr, or HANKEL_LOGFILE). Level and words: HANKEL_VERBOSE. */
typedef void (*hk_log_fn)(void *context, const char *line);
HK_API void hk_log_set(hk_log_fn fn, void *context);

#ifdef __cplusplus
}
#endif
#endif
