/* Runs the slices of a call: x widened, the inner plan, y rounded. See slice.c. */
#include "plan/rewrite/slice.h"

#include <string.h>

#include "plan/depthwise/depthwise.h"
#include "plan/rewrite/widen.h"

enum { WIDEN, NARROW, ZERO };

/* A part of a tensor and the same part of a buffer, axis by axis, the last one of adjacent floats in the buffer. */
typedef struct axis {
  int64_t size, tensor, buffer; /* steps in elements */
} axis;
typedef struct box {
  int op;
  hk_type type;
  const hk_kernel *kernel; /* for adjacent elements, or NULL */
  const hk_plan *plan;     /* whose threads take part; NULL: this thread alone */
  axis axes[7];
  int count;
} box;

/* Keeps the axes in falling order of their steps in the buffer, and joins those that continue each other. */
static void box_add(box *b, int64_t size, int64_t tensor, int64_t buffer) {
  if (size == 1) return;
  int i = b->count++;
  for (; i > 0 && b->axes[i - 1].buffer < buffer; i--) b->axes[i] = b->axes[i - 1];
  b->axes[i] = (axis){size, tensor, buffer};
}

static void box_join(box *b) {
  int count = 0;
  for (int i = 0; i < b->count; i++) {
    const axis a = b->axes[i];
    axis *before = count ? &b->axes[count - 1] : NULL;
    if (before && before->tensor == a.tensor * a.size && before->buffer == a.buffer * a.size)
      *before = (axis){before->size * a.size, a.tensor, a.buffer};
    else b->axes[count++] = a;
  }
  if (!count || b->axes[count - 1].buffer != 1) b->axes[count++] = (axis){1, 1, 1};
  b->count = count;
}

static void run_of(const box *b, char *tensor, float *buffer) {
  const axis *a = &b->axes[b->count - 1];
  if (b->op == ZERO) memset(buffer, 0, (size_t)a->size * sizeof *buffer);
  else if (b->op == WIDEN) hk_widen_run(b->kernel, b->type, tensor, a->tensor, buffer, a->size);
  else if (b->type == HK_F32 && a->tensor == 1) memcpy(tensor, buffer, (size_t)a->size * sizeof *buffer);
  else if (b->kernel && a->tensor == 1) b->kernel->fn(&(hk_convert_args){buffer, tensor, a->size});
  else
    for (int64_t i = 0; i < a->size; i++) hk_store_element(b->type, tensor, i * a->tensor, buffer[i]);
}

static void box_run(const box *b, char *tensor, float *buffer) {
  const int64_t bytes = (int64_t)hk_type_bytes(b->type);
  int64_t at[7] = {0};
  for (;;) {
    run_of(b, tensor, buffer);
    int i = b->count - 2;
    for (; i >= 0; i--) {
      const axis *a = &b->axes[i];
      tensor += a->tensor * bytes;
      buffer += a->buffer;
      if (++at[i] < a->size) break;
      tensor -= a->size * a->tensor * bytes;
      buffer -= a->size * a->buffer;
      at[i] = 0;
    }
    if (i < 0) return;
  }
}

/* A box cut along its first axis for the threads of a plan. */
typedef struct cut {
  const box *b;
  int64_t pieces;
  char *tensor;
  float *buffer;
} cut;

static void run_piece(void *context, int64_t i) {
  const cut *c = context;
  int64_t from, to;
  box b = *c->b;
  axis *a = &b.axes[0];
  hk_piece(a->size, i, c->pieces, &from, &to);
  a->size = to - from;
  box_run(&b, c->tensor + from * a->tensor * (int64_t)hk_type_bytes(b.type), c->buffer + from * a->buffer);
}

/* Which part of a tensor: images [n, n + images), groups and rows (of dimension d; d < 0: all of them) likewise. */
typedef struct part {
  int64_t n, images, group, groups, row, rows;
  int d;
} part;

/* A tensor: channels of a group, sizes, strides, and strides in the buffer. */
typedef struct tensor {
  int64_t channels;
  const int64_t *size;
  const hk_strides *from, *to;
} tensor;

/* The part of a tensor that begins at `at`, and at `buffer`. */
static void convert_part(box b, const part *p, const tensor *t, char *at, float *buffer) {
  const hk_strides *s = t->from, *to = t->to;
  box_add(&b, p->images, s->outer, to->outer);
  box_add(&b, p->groups, s->group, to->group);
  box_add(&b, t->channels, s->channel, to->channel);
  for (int d = 0; d < 3; d++) box_add(&b, d == p->d ? p->rows : t->size[d], s->at[d], to->at[d]);
  box_join(&b);
  if (b.plan && b.op != ZERO) {
    cut c = {&b, hk_min64(b.axes[0].size, b.plan->task.threads), at, buffer};
    hk_plan_parallel(b.plan, c.pieces, run_piece, &c);
  } else {
    box_run(&b, at, buffer);
  }
}

typedef struct job {
  const hk_plan *plan;
  hk_call call; /* with f as the inner plan takes it */
  hk_slice s;
  int64_t workers;
  char *inner, *own;             /* workspace */
  size_t inner_bytes, own_bytes; /* of a worker */
} job;

/* The outputs of slice i: where the slice begins, and what it stores. */
typedef struct place {
  int64_t n, group, row;
  part own;
} place;

static place place_of(const job *j, int64_t i) {
  const hk_geom *g = &j->plan->task.geom;
  const hk_slice *s = &j->s;
  const int64_t row = i % s->blocks * s->rows, band = i / s->blocks;
  const int64_t group = band % s->bands * s->groups, n = band / s->bands * s->images;
  place p = {.n = hk_min64(n, g->n - s->images), .group = hk_min64(group, g->groups - s->groups)};
  p.own = (part){.n = n, .group = group, .row = row, .d = s->d, .groups = hk_min64(s->groups, g->groups - group)};
  p.own.images = hk_min64(s->images, g->n - n);
  if (s->d >= 0) {
    p.row = hk_min64(row, g->out[s->d] - s->rows);
    p.own.rows = hk_min64(s->rows, g->out[s->d] - row);
  }
  return p;
}

/* Where element 0 of a part lies in a tensor, and where in the buffer of a slice. */
static int64_t tensor_at(const part *p, const hk_strides *s) {
  return p->n * s->outer + p->group * s->group + (p->d >= 0 ? p->row * s->at[p->d] : 0);
}
static int64_t buffer_at(const part *p, const place *from, int64_t row, const hk_strides *s) {
  return (p->n - from->n) * s->outer + (p->group - from->group) * s->group +
         (p->d >= 0 ? (p->row - row) * s->at[p->d] : 0);
}

/* Slices that run one after the other are converted by all threads. */
static const hk_plan *helpers(const job *j) {
  const hk_task *t = &j->plan->task;
  return j->workers == 1 && (t->threads > 1 || t->options.parallel_for) ? j->plan : NULL;
}

/* All that the slice reads of x; rows outside it are zeros. */
static void widen_x(const job *j, const place *p, float *buffer) {
  const hk_geom *g = &j->plan->task.geom;
  const hk_slice *s = &j->s;
  const box zero = {.op = ZERO, .type = g->x_type};
  const box widen = {.op = WIDEN,
                     .type = g->x_type,
                     .kernel = hk_kernel_convert(g->x_type, HK_F32, j->plan->decision.isa),
                     .plan = helpers(j)};
  const tensor t = {g->c, g->in, &g->x, &s->x};
  part all = {.n = p->n, .images = s->images, .group = p->group, .groups = s->groups, .d = s->d};
  int64_t first = 0;
  if (s->d >= 0) {
    const int64_t top = hk_geom_source(g, s->d, p->row, 0), end = top + s->in[s->d];
    first = top;
    all.row = hk_min64(hk_max64(top, 0), g->in[s->d]);
    all.rows = hk_max64(0, hk_min64(end, g->in[s->d]) - all.row);
    part outside = all;
    outside.row = top;
    outside.rows = all.rows ? all.row - top : end - top;
    if (outside.rows) convert_part(zero, &outside, &t, (char *)(uintptr_t)j->call.x, buffer);
    outside.row = all.row + all.rows;
    outside.rows = all.rows ? end - outside.row : 0;
    if (outside.rows)
      convert_part(zero, &outside, &t, (char *)(uintptr_t)j->call.x, buffer + buffer_at(&outside, p, first, &s->x));
    if (!all.rows) return;
  }
  const char *x = j->call.x + tensor_at(&all, &g->x) * (int64_t)hk_type_bytes(g->x_type);
  convert_part(widen, &all, &t, (char *)(uintptr_t)x, buffer + buffer_at(&all, p, first, &s->x));
}

/* The slice's own part of y, or of the residual. */
static void convert_y(const job *j, const place *p, int op, const hk_strides *strides, char *at, float *buffer) {
  const hk_geom *g = &j->plan->task.geom;
  const box b = {
      .op = op, .type = g->y_type, .kernel = op == NARROW ? j->plan->narrow : j->plan->wide, .plan = helpers(j)};
  const tensor t = {g->k, g->out, strides, &j->s.y};
  convert_part(b, &p->own, &t, at + tensor_at(&p->own, strides) * (int64_t)hk_type_bytes(g->y_type),
               buffer + buffer_at(&p->own, p, p->row, &j->s.y));
}

/* Some groups, whose weights come with the call of the inner plan. */
static void run_planes(const job *j, const place *p, hk_call c, float *f) {
  const hk_geom *g = &j->plan->task.geom;
  box b = {.op = WIDEN, .type = g->f_type, .kernel = hk_kernel_convert(g->f_type, HK_F32, j->plan->decision.isa)};
  box_add(&b, j->s.groups, g->f.group, j->s.f.group);
  box_add(&b, g->k, g->f.outer, j->s.f.outer);
  for (int d = 0; d < 3; d++) box_add(&b, g->win[d], g->f.at[d], j->s.f.at[d]);
  box_join(&b);
  box_run(&b, (char *)(uintptr_t)c.f + p->group * g->f.group * (int64_t)hk_type_bytes(g->f_type), f);
  c.f = (const char *)f;
  if (j->plan->task.epi.e.scale == 2) c.scale = (const float *)c.scale + p->group * g->k;
  if (j->plan->task.epi.e.bias) c.bias = (const float *)c.bias + p->group * g->k;
  hk_plan_run(j->plan->inner[0], &c);
}

/* The rows of the last slice that another one stores have no residual here: another thread may be writing them. */
static void slice_run(const job *j, int64_t i, char *inner, float *x, float *y, float *f) {
  const hk_plan *plan = j->plan;
  const place p = place_of(j, i);
  hk_call c = j->call;
  widen_x(j, &p, x);
  if (plan->task.epi.e.residual) {
    if (p.own.images < j->s.images || p.own.groups < j->s.groups || (j->s.d >= 0 && p.own.rows < j->s.rows))
      memset(y, 0, (size_t)j->s.y_values * sizeof *y);
    convert_y(j, &p, WIDEN, &plan->task.epi.c, (char *)(uintptr_t)c.c, y);
    c.c = (const char *)y;
  }
  c.x = (const char *)x;
  c.y = (char *)y;
  c.workspace = inner;
  if (j->s.planes) run_planes(j, &p, c, f);
  else hk_rewrite_run_inner(plan, 0, &c);
  convert_y(j, &p, NARROW, &plan->task.geom.y, j->call.y, y);
}

static void worker(void *context, int64_t w) {
  const job *j = context;
  int64_t from, to;
  char *own = j->own + (size_t)w * j->own_bytes;
  const int64_t line = HK_ALIGN / (int64_t)sizeof(float);
  float *x = (float *)(void *)own, *y = x + hk_round_up(j->s.x_values, line);
  float *f = y + hk_round_up(j->s.y_values, line);
  hk_piece(j->s.count, w, j->workers, &from, &to);
  for (; from < to; from++) slice_run(j, from, j->inner + (size_t)w * j->inner_bytes, x, y, f);
}

hk_status hk_slice_build(hk_plan *plan) {
  const hk_task *t = &plan->task;
  hk_status s = hk_rewrite_alloc_pass(plan, sizeof(hk_slice));
  if (s) return s;
  *(hk_slice *)plan->pass = hk_slice_make(&t->geom);
  const bool planes = ((const hk_slice *)plan->pass)->planes;
  if (!t->f_now) return HK_OK;
  if (hk_plan_shares(plan) && plan->packed->as_given != planes)
    return hk_fail(HK_UNSUPPORTED, "slices of planes take other weights than those of the plan it is made like; "
                                   "hk_plan_create makes a plan of its own");
  if (!planes) return HK_OK;
  plan->packed->as_given = true;
  s = hk_plan_copy_weights(plan);
  return s ? s : hk_plan_keep_layout(plan, plan->packed->f_bytes, NULL, 0);
}

hk_status hk_slice_run(const hk_plan *plan, const hk_call *call) {
  const hk_task *t = &plan->task;
  const int64_t line = HK_ALIGN / (int64_t)sizeof(float);
  job j = {.plan = plan, .call = *call, .s = *(const hk_slice *)plan->pass, .inner = call->workspace};
  j.workers = hk_slice_workers(t, &j.s);
  j.inner_bytes = (size_t)hk_round_up((int64_t)plan->inner[0]->decision.workspace_bytes, HK_ALIGN);
  j.own = j.inner + (size_t)j.workers * j.inner_bytes;
  j.own_bytes = sizeof(float) * (size_t)(hk_round_up(j.s.x_values, line) + hk_round_up(j.s.y_values, line) +
                                         hk_round_up(j.s.f_values, line));
  if (t->f_now && j.s.planes) {
    j.call.f = (const char *)plan->packed->f + plan->packed->f_shift * (int64_t)hk_type_bytes(t->geom.f_type);
  } else if (!t->f_now && !j.s.planes) {
    j.call.f = hk_widen_filter_to(plan, call->f, (float *)(void *)j.own);
    j.own += hk_widen_filter_bytes(t);
  }
  hk_plan_parallel(plan, j.workers, worker, &j);
  return HK_OK;
}
