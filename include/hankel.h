/* hankel: convolution by implicit GEMM. The only public header; C11 and C++.
 *
 *   hk_problem  what to compute: sizes, types, strides, padding, dilations, groups
 *   hk_epilogue what happens to each sum before it is stored
 *   hk_options  how a plan may be made: threads, ISA, workspace, math modes
 *   hk_plan     the frozen result of planning; execute it as often as you like, from any thread
 *
 * Every struct with a field `size` starts with it; set it to sizeof of the struct. A program built against an older
 * header hands over smaller structs: the fields it does not know count as zero, and the library writes only the bytes
 * it has. A size larger than the library's is refused: the program is newer than the library. Zero is the default of
 * every field of hk_epilogue, hk_options, hk_weights, hk_conv_desc, hk_xla_desc and hk_args; sizes, strides and
 * dilations of an hk_problem have none, and helpers fill them. hk_problem and hk_epilogue are also filled by the
 * library and keep their size.
 *
 * Sizes and strides count elements; byte counts end in _bytes. Every function that can fail returns hk_status, and
 * hk_last_error() then holds a sentence that names what broke which rule.
 *
 * Threads: every section below says which of its functions may run at the same time. Where it says "any thread", calls
 * need no lock of the caller's as long as no two of them write the same memory. */
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

/* ------------------------------------------------------------------ status
 * Threads: any thread; hk_last_error is the calling thread's own. */

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

/* ------------------------------------------------------------------- types
 * Threads: any thread. */

typedef enum hk_type {
  HK_F32 = 0, HK_F64 = 1, HK_F16 = 2, HK_BF16 = 3, HK_S8 = 4, HK_U8 = 5, HK_S32 = 6, HK_F8E4M3 = 7
} hk_type;

HK_API const char *hk_type_name(hk_type type);  /* "f32", "bf16", ...; NULL for a bad value */
HK_API size_t hk_type_bytes(hk_type type);      /* 0 for a bad value */
/* Converts count elements as the library does: rounded half to even, integers saturated, NaN kept. */
HK_API hk_status hk_convert(hk_type from, const void *src, hk_type to, void *dst, int64_t count);

/* ----------------------------------------------------------------- problem
 * Threads: any thread; all state is in the arguments. */

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
/* XLA's conv_general_dilated. Specs hold one letter per axis: N and C of x, O and I of f, N and C of y, and the same
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
/* Elements from the lowest to the highest address a tensor touches, and how far the lowest lies below the pointer. Both
 * functions below also accept a y that is valid only under a gate (k/2 channels). */
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

/* ---------------------------------------------------------------- epilogue
 * Threads: any thread; all state is in the arguments. */

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
/* values: float, or double when x, f or y of a float problem is f64. Called from any thread of the plan. */
typedef void (*hk_user_fn)(void *user, const hk_at *at, int64_t count, void *values);
typedef void (*hk_store_fn)(void *user, const hk_at *at, int64_t count, const void *values);

typedef struct hk_epilogue {
  size_t size;
  int32_t scale;        /* 0 none, 1 one value for all, 2 one per channel */
  int32_t bias;         /* 0 none, 1 one per channel */
  hk_act act, act2;     /* act2 only with a gate */
  float a, b, a2, b2;   /* parameters of act and act2 */
  hk_gate gate;
  hk_residual residual;
  float beta;           /* factor of the residual C, which has y's type and shape; 0: C is not read */
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
/* KEEP: f32 and f64 arithmetic keeps denormals; bf16 products by dot-product instructions (the algorithm dots) count
 * them as zero, as those instructions always do. EXACT excludes these. */
typedef enum hk_denormals { HK_DENORMALS_KEEP = 0, HK_DENORMALS_FLUSH = 1, HK_DENORMALS_EXACT = 2 } hk_denormals;
/* Math modes that may be used besides strict arithmetic; bits. */
enum {
  HK_MATH_STRICT = 0,
  HK_MATH_FAST_ALGORITHMS = 1, /* Winograd, FFT, Karatsuba */
  HK_MATH_TF32 = 2,
  HK_MATH_SPLIT_F32 = 4
};

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
  int32_t unaligned;        /* CUDA: x, y, c and a late f may lie at any element address (default: 16-byte aligned) */
  int32_t stateful;         /* 1D, stride 1: positions before x come from args.state_in, see hk_args */
  const char *decision;     /* use this decision (as printed by a plan) or fail */
} hk_options;

/* -------------------------------------------------------------------- plan
 * Threads: any thread. A plan is immutable once it is made: any number of threads may execute, print and make plans
 * like it at the same time, each call with a workspace, y and state_out of its own. hk_plan_destroy needs every other
 * call on that plan to be over; plans made like it are plans of their own. A user function runs on the plan's threads,
 * several at a time. */

typedef struct hk_plan hk_plan;

/* What a plan copies at creation. NULL pointers are given at execute instead (slopes and f_zero only here).
 * scale, bias, slopes: f32, f64 when x, f or y of a float problem is f64; bias of an int8 problem: s32. */
typedef struct hk_weights {
  size_t size;
  const void *f, *scale, *bias, *slopes;
  const int32_t *f_zero;   /* one per channel k, in place of the problem's f_zero */
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

/* Makes a plan. epilogue, options and weights may be NULL; all that is needed of them is copied, user pointers and
 * functions aside. *plan is NULL on failure. HK_ESTIMATE takes microseconds to milliseconds; MEASURE and PATIENT run
 * candidates and may take minutes without a time limit. */
HK_API hk_status hk_plan_create(hk_plan **plan, const hk_problem *problem, const hk_epilogue *epilogue,
                                const hk_options *options, const hk_weights *weights);
/* The same convolution for another batch or input size, sharing the packed weights of `like` (which may be
 * destroyed first). Fails if the decision does not carry over. */
HK_API hk_status hk_plan_create_like(hk_plan **plan, const hk_plan *like, const hk_problem *problem);
/* Frees a plan; NULL is ignored. No call on the plan may be running, on the CUDA device none may be queued. Packed
 * weights that other plans share stay until the last of them goes. */
HK_API void hk_plan_destroy(hk_plan *plan);
/* Bytes of args.workspace that every execution of the plan needs, 64-byte aligned; 0: none, NULL will do. The same for
 * the plan's whole life. Executions that overlap in time need one each; nothing is kept in it between calls. */
HK_API size_t hk_plan_workspace(const hk_plan *plan);
/* Computes y from args. Checks plan and args first (NULL, size, alignment, workspace) and writes nothing when it
 * refuses; Inf and NaN follow IEEE arithmetic and are no failure. On the CPU y is complete on return: the call uses the
 * plan's threads, allocates nothing, and with one thread takes no lock. On the CUDA device the work is queued on
 * args.stream in the current context, y is complete when the stream gets there, and the call may be captured into a
 * graph. args is not kept. y may overlap no input but c, which may equal it. */
HK_API hk_status hk_plan_execute(const hk_plan *plan, const hk_args *args);
/* The simplest case in one call, on the CPU: y = conv(x, f) + bias, tensors dense in desc's layout, bias (one per
 * channel, f32; f64 with f64 tensors, s32 with int8) or NULL. Plans, executes and forgets: to run a convolution more
 * than once, keep a plan. */
HK_API hk_status hk_conv(const hk_conv_desc *desc, const void *x, const void *f, const void *bias, void *y);
/* The decision as text, e.g. "igemm kernel=hk_igemm_f32_6x64_avx512 bm=112 bn=1 bk=64 pack=0": hk_options.decision
 * reads it. */
HK_API hk_status hk_plan_decision(const hk_plan *plan, char *buffer, size_t size, size_t *length);
/* The whole story for a person: problem, GEMM sizes, tiles, memory, why. */
HK_API hk_status hk_plan_print(const hk_plan *plan, char *buffer, size_t size, size_t *length);
/* The symbol table, one by one: index 0.. until HK_INVALID. */
HK_API hk_status hk_plan_symbol(const hk_plan *plan, int32_t index, const char **name, double *value);
/* 0: exact on integers. Else errors stay under it * gk * eps * sum|f| * largest |x| of the image: docs/manual.md. */
HK_API double hk_plan_error_factor(const hk_plan *plan);

/* Every candidate the planner would consider (rigor PATIENT: other knob settings too), best first, then the refused
 * ones with their reasons. */
typedef struct hk_candidate {
  size_t size;
  const char *decision;    /* text; of a refused one rewrites, algorithm and kernel */
  const char *refusal;     /* NULL when usable */
  double predicted_s;      /* 0 when unknown */
  size_t workspace_bytes;
} hk_candidate;
typedef void (*hk_candidate_fn)(void *context, const hk_candidate *candidate);
HK_API hk_status hk_plan_candidates(const hk_problem *problem, const hk_epilogue *epilogue, const hk_options *options,
                                    hk_candidate_fn fn, void *context);

/* ------------------------------------------------------------------ wisdom
 * Threads: any thread; one table per process, behind a lock of its own. */

/* What measuring taught: one line of text per problem. Plans look it up first; MEASURE and PATIENT add to it. The files
 * read at first use: /etc/hankel/wisdom, then HANKEL_WISDOM ("none": no file), else XDG_DATA_HOME/hankel/wisdom. */
HK_API hk_status hk_wisdom_import(const char *text);               /* all of it, or nothing and a reason */
HK_API hk_status hk_wisdom_export(char *buffer, size_t size, size_t *length);
HK_API hk_status hk_wisdom_load(const char *path);                 /* adds a file; NULL: the files named above, again */
HK_API hk_status hk_wisdom_save(const char *path); /* merges into a file, atomically; NULL: the user's */
HK_API hk_status hk_wisdom_path(char *buffer, size_t size, size_t *length); /* the user's file; "" for none */
HK_API void hk_wisdom_forget(void);                                /* memory only, files stay */
HK_API int64_t hk_wisdom_count(void);

/* ----------------------------------------------------------------- machine
 * Threads: any thread. */

typedef struct hk_machine {
  size_t size;
  char cpu[64];
  hk_isa best_isa;
  int32_t cores;           /* that this process may use */
  int64_t l1d_bytes, l2_bytes, l3_bytes;
  int32_t family, model, stepping; /* x86: by CPUID; Arm: implementer, part and revision; 0 where not known */
  char features[64];       /* instructions beyond the ISA that kernels use: "avxvnni avx512vnni", or "" */
} hk_machine;
HK_API hk_status hk_machine_info(hk_machine *m);
HK_API const char *hk_isa_name(hk_isa isa);
/* Measured now, on this thread: FMA peak in flop/s of an ISA, and bytes/s of a copy of `bytes` (read plus written). */
HK_API double hk_measure_peak(hk_isa isa, hk_type type);
HK_API double hk_measure_bandwidth(size_t bytes);

/* --------------------------------------------------------- the CUDA device
 * Threads: any thread, each in its own current context. */

/* For programs that bring no CUDA of their own: memory of the current context's device (with none current, the primary
 * context of device HANKEL_CUDA_DEVICE, else 0). All fail with HK_DEVICE where there is no device. */
typedef struct hk_gpu {
  size_t size;
  char name[64];
  int32_t major, minor;    /* compute capability */
  int32_t processors, driver;
  int64_t l2_bytes;
  int32_t kernels;         /* nonzero: this build holds device code */
  /* by its clocks and units, not measured; 0 where not known. tensor_flops: bf16; tf32 has half, e4m3 twice as many */
  double tensor_flops, fma_flops, bytes_per_s;
} hk_gpu;
HK_API hk_status hk_gpu_info(hk_gpu *gpu);
HK_API hk_status hk_gpu_alloc(void **p, size_t bytes);
HK_API void hk_gpu_free(void *p);
HK_API hk_status hk_gpu_copy(void *to, const void *from, size_t bytes); /* either side host or device; waits */
HK_API hk_status hk_gpu_sync(void *stream);                            /* NULL: the whole context */
/* Mean seconds of one execution: `repeats` of them, recorded as a CUDA graph on a stream of its own and replayed, with
 * args[0..sets-1] in turn (more than the L2 holds, to time memory). Waits for the device. */
HK_API hk_status hk_gpu_time(const hk_plan *plan, const hk_args *args, int32_t sets, int32_t repeats, double *seconds);

/* --------------------------------------------------------------------- log
 * Threads: any thread; lines are handed over one at a time, from the thread that has something to say. */

/* Log lines go to this function (NULL: stderr, or HANKEL_LOGFILE). Level and words: HANKEL_VERBOSE. */
typedef void (*hk_log_fn)(void *context, const char *line);
HK_API void hk_log_set(hk_log_fn fn, void *context);

/* ------------------------------------------------------------------ stream
 * Threads: a chain is immutable, and any thread may use it; a stream belongs to one thread at a time. Different streams
 * of one chain run at the same time. hk_chain_destroy needs its streams to be destroyed, hk_stream_destroy the calls on
 * its stream to be over. */

/* Real time: causal networks over blocks of any length, with state and without latency.
 *   hk_step    one operation on signals: convolution, activation or gate, sum, scale and shift, LSTM
 *   hk_chain   checked steps with packed weights: immutable, any number of streams run from one
 *   hk_stream  the history of one signal path; one thread at a time
 * Signals are numbered: 1 is the input, steps[i] makes signal i + 2 from lower ones, 0 means none. Before the first
 * sample every signal was zero. All is f32; denormals are flushed. What does not reach the output is not computed. */

/* An activation inside a chain. HARDTANH: slope_lo below a and slope_hi above b (0: flat). TANH: rational != 0 takes a
 * short rational form, within 3e-3 of tanh. PRELU: slopes, one per channel. USER is refused. */
typedef struct hk_step_act {
  hk_act act;
  float a, b, slope_lo, slope_hi;
  const float *slopes;
  int32_t rational;
} hk_step_act;

typedef enum hk_step_kind {
  HK_STEP_CONV = 1,  /* causal convolution of x, plus a 1x1 of mix, plus bias; then the tail below */
  HK_STEP_MAP = 2,   /* x; then the tail below */
  HK_STEP_SCALE = 3, /* x*s + h with s, h the two halves of the channels of x2; h is 0 when x2 has as many as x */
  HK_STEP_LSTM = 4,  /* one layer, sample by sample; the state starts as h0, c0 */
  HK_STEP_FIR = 5    /* CONV with a long window (reverbs, cabinets); see HK_FIR_WINDOW_MAX */
} hk_step_kind;

/* FIR computes what CONV computes with stride and dilation 1 and without mix, without latency too, for windows up to
 * HK_FIR_WINDOW_MAX (10 s at 192 kHz). The newest taps are summed directly; the rest of a long window goes through
 * partitioned FFTs, whose work is spread evenly over the frames that follow. The error is at most 1e-6 of the peak: of
 * the largest magnitude of x so far times the largest sum of magnitudes of f over one output channel. An Inf or NaN in
 * x spreads over a period (256 to 2^17 frames) on both sides of the window, never to earlier outputs. The result does
 * not depend, to the bit, on how the signal is cut into blocks. */
#define HK_FIR_WINDOW_MAX (1 << 21)

/* The tail of CONV, FIR and MAP: v (+ beta*add if residual is BEFORE), activation or gate (halves the channels, as in
 * hk_epilogue), + beta*add if residual is AFTER. A sum of two signals is a MAP with an add. */
typedef struct hk_step {
  size_t size;
  hk_step_kind kind;
  int32_t x;
  int64_t k, window, dilation, stride, groups; /* CONV, FIR; 0 means 1 but for k. stride > 1 makes a slower signal */
  const float *f;       /* [k][c/groups][window], oldest tap first; LSTM: [4k][c + k], gates i f g o, input first */
  const float *bias;    /* [k] or NULL; LSTM: [4k] */
  int32_t mix;          /* CONV: another signal of the same rate as the result */
  int64_t mix_groups;
  const float *mix_f;   /* [k][channels of mix / mix_groups] */
  int32_t x2;           /* SCALE */
  hk_step_act act, act2;
  hk_gate gate;
  hk_residual residual;
  int32_t add;          /* signal of the result's shape (BEFORE: of the shape before the gate) */
  float beta;
  const float *h0, *c0; /* LSTM: [k] each, NULL means zeros */
} hk_step;

/* Blocks are f32: channel c at time t lies at x[c*x_channel + t*x_time]; zeros mean channels-last (interleaved) or, for
 * CHANNELS_FIRST, rows of the longest block (max_block, for y the most frames it can make) one after the other. */
typedef struct hk_chain_desc {
  size_t size;
  int64_t channels;     /* of the input */
  int64_t max_block;    /* longest block that process takes */
  const hk_step *steps;
  int32_t count;
  int32_t output;       /* signal; 0 means the last */
  hk_layout layout;     /* of x and y */
  int64_t x_channel, x_time, y_channel, y_time;
  hk_isa isa;           /* cap, as in hk_options */
} hk_chain_desc;

typedef struct hk_chain hk_chain;
typedef struct hk_stream hk_stream;

/* Memory may be the caller's (64-byte aligned, as long as measure says, freed after destroy) or NULL: then create
 * makes one allocation. */
HK_API hk_status hk_chain_measure(const hk_chain_desc *desc, size_t *chain_bytes, size_t *stream_bytes);
HK_API hk_status hk_chain_create(hk_chain **chain, const hk_chain_desc *desc, void *memory, size_t memory_bytes);
/* One convolution: rank 1, batch 1, f32, causal padding, in[0] the longest block; x and y strides say how blocks lie.
 * A residual adds the stream's own input. scale, bias and f come from weights. */
HK_API hk_status hk_chain_create_conv(hk_chain **chain, const hk_problem *problem, const hk_epilogue *epilogue,
                                      const hk_options *options, const hk_weights *weights);
HK_API void hk_chain_destroy(hk_chain *chain); /* after its streams */
typedef struct hk_chain_facts {
  size_t size;
  int64_t x_channels, y_channels, max_block, max_out; /* max_out: most frames one block can make */
  int64_t receptive_field; /* input frames that one output frame depends on; LSTM counts as 1 */
  int32_t recurrent;       /* nonzero: some LSTM remembers for ever */
  double flops;            /* per input frame: twice the multiply-adds of what is computed; FIR: of its direct form */
  size_t chain_bytes, stream_bytes, state_bytes;
  const char *isa;
} hk_chain_facts;
HK_API hk_status hk_chain_info(const hk_chain *chain, hk_chain_facts *facts);

HK_API hk_status hk_stream_create(hk_stream **stream, const hk_chain *chain, void *memory, size_t memory_bytes);
HK_API void hk_stream_destroy(hk_stream *stream);
/* Takes 0..max_block frames and makes *n_out (may be NULL) frames: n, or what the strides leave. Never allocates,
 * locks, or calls the system; the cost of a block depends on its length alone (with FIR, nearly: it has work for every
 * 16 frames of the stream). y may equal x when both lie alike. */
HK_API hk_status hk_stream_process(hk_stream *stream, const float *x, int64_t n, float *y, int64_t *n_out);
/* As new. */
HK_API hk_status hk_stream_reset(hk_stream *stream);
/* As after reset and then `frames` frames of zeros; at once, if the chain is not recurrent and frames is at least the
 * receptive field, and then to the rounding of FIR where its x is a constant other than 0. */
HK_API hk_status hk_stream_prewarm(hk_stream *stream, int64_t frames);
/* The whole state, state_bytes long; restore takes it into any stream of the same chain, or of one made alike. */
HK_API hk_status hk_stream_save(const hk_stream *stream, void *state, size_t bytes);
HK_API hk_status hk_stream_restore(hk_stream *stream, const void *state, size_t bytes);

/* ------------------------------------------------------------------ causal
 * Threads: any thread. An hk_causal is immutable: any number of threads may execute it, each call with y, states and
 * workspace of its own. hk_causal_destroy needs every other call on it to be over. */

/* The causal depthwise Conv1D of state-space models, with everything that rides on it in one pass over memory:
 *   y[s, c, t] = post[s, c, t] * act(bias[c] + sum over j of f[c, j] * u[s, c, t - dilation*(window-1-j)])
 *                + residual[s, c, t],   u = pre * x
 * for sequence s, channel c and token t; post, bias, residual and pre are optional. Values of u before a sequence's
 * first token come from its state, and are zero without one. Sums are f32 whatever the types. Weights are read at each
 * call and nothing is packed, so training may change them between calls. */

/* Where channel c of token t of sequence s lies: outer*s + channel*c + time*t, in elements; of packed sequences
 * channel*c + time*t, with t counted from the first token of all. States: slot*outer + c*channel + entry*time. */
typedef struct hk_causal_strides {
  int64_t outer, channel, time;
} hk_causal_strides;

typedef enum hk_causal_packing {
  HK_CAUSAL_BATCH = 0,   /* n sequences of `length` tokens */
  HK_CAUSAL_OFFSETS = 1, /* one run of `length` tokens; sequence s is tokens offsets[s] to offsets[s+1]-1 */
  HK_CAUSAL_IDS = 2      /* n rows of `length` tokens; a tap on a token of another id counts 0; where the id is below
                            0 y is 0. No state */
} hk_causal_packing;

typedef struct hk_causal_desc {
  size_t size;
  hk_type x_type;          /* f32, f16 or bf16, as are the others; pre, post and residual have it too */
  hk_type f_type;          /* of f and bias */
  hk_type y_type, state_type;
  int64_t n, c, length;    /* sequences (rows with ids), channels, tokens */
  int64_t longest;         /* OFFSETS: no sequence has more tokens, at most length; 0: length */
  int64_t window, dilation; /* taps, 1 to 256; 0 means dilation 1 */
  hk_causal_packing packing;
  hk_causal_strides x, y, pre, post, residual; /* all zero: as x; x all zero: [n][c][length]. Those of y address
                                                  distinct elements */
  int64_t f_channel, f_tap; /* both zero: [c][window] */
  int32_t has_bias, has_pre, has_post, has_residual; /* nonzero: args hold them */
  hk_act act;              /* any but PRELU and USER */
  float a, b;              /* parameters of act */
  /* State. A slot holds the last state_length values of u of each channel, oldest first, rounded to state_type: at
   * least dilation*(window-1) of them. 0: no state. */
  int64_t state_length;
  hk_causal_strides state; /* all zero: [slot][c][state_length] */
  int32_t ring;            /* token i of a sequence lies at entry i mod state_length; args.positions says how many there
                              were; nothing moves */
  int64_t skip;            /* a sequence whose slots_in is this is left out, its y and state untouched; where only
                              slots_out is this its state is not written */
  int32_t has_skip;        /* nonzero: skip counts, and args.slots_in is needed */
  int32_t in_place;        /* nonzero: args.y may equal args.x; needs y to have the type and strides of x, and
                              dilation*(window-1) <= 4096 */
  int32_t gradient;        /* nonzero: hk_causal_gradient will be called */
} hk_causal_desc;

/* What changes from call to call. y overlaps no input, x alone excepted (in_place) and a residual that equals y and
 * lies alike. On CUDA every pointer is a device pointer and nothing is read by the host; on the CPU slots, positions,
 * accepted and offsets out of range are refused. */
typedef struct hk_causal_args {
  size_t size;
  const void *x, *f, *bias, *pre, *post, *residual;
  void *y;
  const void *state_in;    /* slots; NULL: every sequence begins with zeros */
  void *state_out;         /* slots; may equal state_in; NULL: not written */
  const int32_t *slots_in, *slots_out; /* slot of sequence s; NULL: s; slots_out NULL: slots_in. No slot is written by
                                 one sequence and read or written by another */
  const uint8_t *has_state;   /* zero: the slot's old entries count as zeros; NULL: all have a state */
  const int32_t *positions;   /* ring: tokens that sequence s had before; older ones are zeros */
  const int32_t *accepted;    /* linear states: rollback of rejected draft tokens, with K = dilation*(window-1) and K-1
                                 kept entries (0 if K is 0). History is the K entries from accepted[s] - 1 on. The new
                                 state begins with the kept entries from accepted[s] on, then come this call's tokens,
                                 at most state_length - (K-1) of them; entries behind them stay. 1 <= accepted[s] <=
                                 state_length - K + 1. NULL: history is the newest entries. A sequence without tokens
                                 keeps its state */
  const int32_t *offsets;     /* OFFSETS: n + 1 of them */
  const int32_t *ids;         /* IDS: [n][length] */
  void *workspace;            /* hk_causal_workspace() bytes, 64-byte aligned, for the gradient alone */
  size_t workspace_bytes;
  void *stream;               /* CUstream */
} hk_causal_args;

/* Gradients of y with respect to what args held; each output may be NULL. df and dbias are f32, [c][window] and [c],
 * and written, not added to; the same bits every time, whatever the threads. act is none, relu or silu; gates,
 * residual, slots, ring and accepted are refused. args.y and args.state_out are not used. */
typedef struct hk_causal_grads {
  size_t size;
  const void *dy;             /* as y lies, of y's type */
  const void *dstate_out;     /* gradient of the final states, as state lies; NULL: zeros */
  void *dx;                   /* as x lies, of x's type */
  hk_causal_strides dx_at;    /* all zero: as x */
  float *df, *dbias;
  void *dstate_in;            /* gradient of the initial states, as state lies; zeros where has_state is zero */
} hk_causal_grads;

typedef struct hk_causal hk_causal;
/* Checks desc and chooses the kernels; options (may be NULL): threads, parallel_for, isa and device are used. */
HK_API hk_status hk_causal_create(hk_causal **causal, const hk_causal_desc *desc, const hk_options *options);
HK_API void hk_causal_destroy(hk_causal *causal); /* NULL is ignored */
/* Computes y and the new states. As hk_plan_execute: allocates nothing; on CUDA one launch, queued on args.stream. */
HK_API hk_status hk_causal_execute(const hk_causal *causal, const hk_causal_args *args);
HK_API hk_status hk_causal_gradient(const hk_causal *causal, const hk_causal_args *args, const hk_causal_grads *grads);
HK_API size_t hk_causal_workspace(const hk_causal *causal); /* of the gradient */
/* One line: what was chosen. */
HK_API hk_status hk_causal_print(const hk_causal *causal, char *buffer, size_t size, size_t *length);

/* -------------------------------------------------------- long convolution
 * Threads: as hk_causal. */

/* The causal convolution of Hyena and its relatives, whose filters are as long as the sequence:
 *   y[s, c, t] = post[s, c, t] * (skip[c] * u[s, c, t] + sum over i < window of f[c, i] * u[s, c, t - i]),
 *   u = pre * x
 * for sequence s, channel c and token t; post, skip and pre are optional, u before token 0 is zero, and f[c, 0] is the
 * tap of the token itself. Computed by FFT in f32: an error is that of the whole row, relative to the largest |y| of
 * it, so options.math must hold HK_MATH_FAST_ALGORITHMS, and one Inf or NaN spreads over its row. */
typedef struct hk_longconv_desc {
  size_t size;
  hk_type x_type;             /* f32, f16 or bf16, as are the others; pre and post have it too */
  hk_type f_type;             /* of f and skip */
  hk_type y_type;
  int64_t n, c, length;       /* sequences, channels, tokens */
  int64_t window;             /* taps; those beyond length are not read. length and window: 1 to 2^21 */
  hk_causal_strides x, y, pre, post; /* all zero: as x; x all zero: [n][c][length]. y: distinct elements */
  int64_t f_channel, f_tap;   /* both zero: [c][window] */
  int32_t has_skip, has_pre, has_post; /* nonzero: args hold them */
  int32_t gradient;           /* nonzero: hk_longconv_gradient will be called; counts towards the workspace */
} hk_longconv_desc;

/* What changes from call to call. y overlaps no input. On CUDA every pointer is a device pointer. */
typedef struct hk_longconv_args {
  size_t size;
  const void *x, *f, *skip, *pre, *post; /* f and skip: not read where they were given at creation */
  void *y;
  void *workspace;            /* hk_longconv_workspace() bytes, 64-byte aligned */
  size_t workspace_bytes;
  void *stream;               /* CUstream */
} hk_longconv_args;

/* Gradients of y with respect to what args held; each output may be NULL. df and dskip are f32, [c][window] and [c];
 * all are written, not added to, and are the same bits every time, whatever the threads. args.y is not used. */
typedef struct hk_longconv_grads {
  size_t size;
  const void *dy;             /* as y lies, of y's type */
  void *dx, *dpre, *dpost;    /* of x's type */
  hk_causal_strides dx_at, dpre_at, dpost_at; /* all zero: as x, pre and post */
  float *df, *dskip;
} hk_longconv_grads;

typedef struct hk_longconv hk_longconv;
/* Checks desc and chooses the sizes of the transforms; options: threads, parallel_for, isa, device and math are used.
 * f and skip: filters that never change, transformed here once (CPU only); NULL: args have them. */
HK_API hk_status hk_longconv_create(hk_longconv **conv, const hk_longconv_desc *desc, const void *f, const void *skip,
                                    const hk_options *options);
HK_API void hk_longconv_destroy(hk_longconv *conv); /* NULL is ignored */
/* As hk_plan_execute: allocates nothing; on CUDA launches are queued on args.stream. */
HK_API hk_status hk_longconv_execute(const hk_longconv *conv, const hk_longconv_args *args);
HK_API hk_status hk_longconv_gradient(const hk_longconv *conv, const hk_longconv_args *args,
                                      const hk_longconv_grads *grads);
HK_API size_t hk_longconv_workspace(const hk_longconv *conv); /* of execute and gradient */
/* One line: what was chosen. */
HK_API hk_status hk_longconv_print(const hk_longconv *conv, char *buffer, size_t size, size_t *length);

#ifdef __cplusplus
}
#endif
#endif
