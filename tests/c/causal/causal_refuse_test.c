/* What hk_causal refuses, each with its sentence, and that a refused call has written nothing; struct sizes of older
 * headers; the caller's own loop in place of the pool. */
#include <stddef.h>
#include <stdlib.h>

#include "support/check.h"

enum { N = 2, C = 5, L = 7, W = 4, S = 3 };
static float x[N * C * L], y[N * C * L], f[C * W], bias[C], state[N * C * S];

static hk_causal_desc plain(void) {
  return (hk_causal_desc){.size = sizeof(hk_causal_desc), .n = N, .c = C, .length = L, .window = W, .has_bias = 1};
}
static hk_causal_desc stateful(void) {
  hk_causal_desc d = plain();
  d.state_length = S;
  return d;
}
static hk_causal_args args(void) {
  return (hk_causal_args){.size = sizeof(hk_causal_args), .x = x, .f = f, .bias = bias, .y = y};
}

/* Creation refuses d with this status and word. */
static void refused(hk_status status, const char *word, hk_causal_desc d) {
  hk_causal *k = (hk_causal *)&d;
  CHECK_STATUS(status, word, hk_causal_create(&k, &d, NULL));
  CHECK(!k, "a refused description left a pointer");
}
#define REFUSED(status, word, ...)                                                                                     \
  do {                                                                                                                 \
    hk_causal_desc d = plain();                                                                                        \
    __VA_ARGS__;                                                                                                       \
    refused(status, word, d);                                                                                          \
  } while (0)

static void descriptions(void) {
  REFUSED(HK_INVALID, "desc.x_type = f64 must be f32, f16 or bf16", d.x_type = HK_F64);
  REFUSED(HK_INVALID, "desc.f_type = s8", d.f_type = HK_S8);
  REFUSED(HK_INVALID, "desc.y_type", d.y_type = (hk_type)99);
  REFUSED(HK_INVALID, "desc.state_type", d.state_type = HK_S32);
  REFUSED(HK_INVALID, "desc.n = -1 must be 0 to 2^48", d.n = -1);
  REFUSED(HK_INVALID, "desc.c = -2", d.c = -2);
  REFUSED(HK_INVALID, "desc.length = -3", d.length = -3);
  REFUSED(HK_INVALID, "desc.length", d.length = INT64_MAX);
  REFUSED(HK_INVALID, "desc.window = 0 must be 1 to 256", d.window = 0);
  REFUSED(HK_INVALID, "desc.window = 257", d.window = 257);
  REFUSED(HK_INVALID, "desc.dilation = -1", d.dilation = -1);
  REFUSED(HK_INVALID, "desc.packing = 3", d.packing = (hk_causal_packing)3);
  REFUSED(HK_INVALID, "desc.longest = 2 needs packing", d.longest = 2);
  REFUSED(HK_INVALID, "desc.longest = 8 exceeds desc.length = 7", d.packing = HK_CAUSAL_OFFSETS, d.longest = L + 1);
  REFUSED(HK_INVALID, "desc.act = 14", d.act = (hk_act)14);
  REFUSED(HK_UNSUPPORTED, "desc.act = prelu", d.act = HK_ACT_PRELU);
  REFUSED(HK_UNSUPPORTED, "desc.act = user", d.act = HK_ACT_USER);
  REFUSED(HK_INVALID, "must be in order", d.act = HK_ACT_CLIP, d.a = 1);
  REFUSED(HK_INVALID, "x exceeds 2^48", d.n = d.c = d.length = (int64_t)1 << 40);
  REFUSED(HK_INVALID, "the strides of x reach beyond", d.x.time = (int64_t)1 << 60, d.x.channel = 1);
  REFUSED(HK_INVALID, "the strides of pre reach", d.has_pre = 1, d.pre.time = INT64_MIN);
  REFUSED(HK_INVALID, "the strides of f reach", d.f_channel = INT64_MAX / 2);
  REFUSED(HK_INVALID, "y must address distinct elements", d.y.channel = 1, d.y.time = 1, d.y.outer = 100);
  REFUSED(HK_INVALID, "y must address distinct elements", d.y.channel = 1, d.y.time = C, d.y.outer = C * L - 1);
  REFUSED(HK_INVALID, "y must address distinct elements", d.y.channel = 1);
  REFUSED(HK_INVALID, "desc.ring needs a state", d.ring = 1);
  REFUSED(HK_INVALID, "desc.state_length = 2 must be at least dilation*(window-1) = 3", d.state_length = 2);
  REFUSED(HK_UNSUPPORTED, "packing by ids has no state", d.state_length = S, d.packing = HK_CAUSAL_IDS);
  REFUSED(HK_INVALID, "state must address distinct elements", d.state_length = S, d.state.channel = 1);
  REFUSED(HK_INVALID, "desc.in_place needs y_type to equal x_type", d.in_place = 1, d.y_type = HK_BF16);
  REFUSED(HK_INVALID, "desc.in_place needs y to have the strides of x", d.in_place = 1,
          d.y = (hk_causal_strides){C * L, 1, C});
  REFUSED(HK_UNSUPPORTED, "desc.in_place supports dilation*(window-1) up to 4096, it is 6000", d.in_place = 1,
          d.dilation = 2000);
  REFUSED(HK_UNSUPPORTED, "act none, relu and silu, not gelu", d.gradient = 1, d.act = HK_ACT_GELU);
  REFUSED(HK_UNSUPPORTED, "desc.gradient does not support has_pre", d.gradient = 1, d.has_pre = 1);
  REFUSED(HK_UNSUPPORTED, "has_post", d.gradient = 1, d.has_post = 1);
  REFUSED(HK_UNSUPPORTED, "has_residual", d.gradient = 1, d.has_residual = 1);
  REFUSED(HK_UNSUPPORTED, "ring", d.gradient = 1, d.state_length = S, d.ring = 1);
  hk_causal *k;
  hk_causal_desc d = plain();
  hk_options o = {.size = sizeof o, .threads = -1};
  CHECK_STATUS(HK_INVALID, "options.threads = -1", hk_causal_create(&k, &d, &o));
  o.threads = 1, o.isa = (hk_isa)77;
  CHECK_STATUS(HK_INVALID, "options.isa = 77", hk_causal_create(&k, &d, &o));
  o.isa = HK_ISA_BEST, o.device = (hk_device)5;
  CHECK_STATUS(HK_INVALID, "options.device = 5", hk_causal_create(&k, &d, &o));
  CHECK_STATUS(HK_INVALID, "causal is NULL", hk_causal_create(NULL, &d, NULL));
  CHECK_STATUS(HK_INVALID, "desc is NULL", hk_causal_create(&k, NULL, NULL));
  hk_causal_destroy(NULL);
}

/* Executing a with d is refused, and y and state stay as they are. */
static void call_refused(const char *word, hk_causal_desc d, hk_causal_args a) {
  hk_causal *k;
  CHECK_STATUS(HK_OK, "", hk_causal_create(&k, &d, NULL));
  for (int i = 0; i < N * C * L; i++) y[i] = 7;
  for (int i = 0; i < N * C * S; i++) state[i] = 8;
  CHECK_STATUS(HK_INVALID, word, hk_causal_execute(k, &a));
  int touched = 0;
  for (int i = 0; i < N * C * L; i++) touched += y[i] != 7;
  for (int i = 0; i < N * C * S; i++) touched += state[i] != 8;
  CHECK(!touched, "a refused call wrote %d elements", touched);
  hk_causal_destroy(k);
}
#define CALL_REFUSED(word, base, ...)                                                                                  \
  do {                                                                                                                 \
    hk_causal_desc d = base();                                                                                         \
    hk_causal_args a = args();                                                                                         \
    __VA_ARGS__;                                                                                                       \
    call_refused(word, d, a);                                                                                          \
  } while (0)

static void calls(void) {
  static int32_t table[N + 1] = {0, 1, 2};
  CALL_REFUSED("args.x is NULL", plain, a.x = NULL);
  CALL_REFUSED("args.y is NULL", plain, a.y = NULL);
  CALL_REFUSED("args.f is NULL", plain, a.f = NULL);
  CALL_REFUSED("args.x must be aligned", plain, a.x = (char *)x + 2);
  CALL_REFUSED("args.bias (desc.has_bias) is NULL", plain, a.bias = NULL);
  CALL_REFUSED("args.pre (desc.has_pre) is NULL", plain, d.has_pre = 1);
  CALL_REFUSED("args.post (desc.has_post) is NULL", plain, d.has_post = 1);
  CALL_REFUSED("args.residual (desc.has_residual) is NULL", plain, d.has_residual = 1);
  CALL_REFUSED("args.offsets (packing by offsets) is NULL", plain, d.packing = HK_CAUSAL_OFFSETS);
  CALL_REFUSED("args.ids (packing by ids) is NULL", plain, d.packing = HK_CAUSAL_IDS);
  CALL_REFUSED("args.state_in needs desc.state_length", plain, a.state_in = state);
  CALL_REFUSED("args.state_out needs desc.state_length", plain, a.state_out = state);
  CALL_REFUSED("args.slots_in and slots_out need", plain, a.slots_in = table);
  CALL_REFUSED("desc.has_skip needs args.slots_in", stateful, d.has_skip = 1);
  CALL_REFUSED("desc.ring needs args.positions", stateful, d.ring = 1);
  CALL_REFUSED("args.accepted needs a linear state", stateful, d.ring = 1, a.positions = a.accepted = table);
  CALL_REFUSED("args.positions needs desc.ring", stateful, a.positions = table);
  CALL_REFUSED("args.accepted needs desc.state_length", plain, a.accepted = table);
  CALL_REFUSED("a state of 3 entries keeps 2 and takes 1 tokens, not 7", stateful, a.accepted = table);
  CALL_REFUSED("args.y equals args.x: set desc.in_place", plain, a.y = x);
  CALL_REFUSED("args.y overlaps args.x", plain, a.y = x + L);
  static int32_t offsets[N + 1] = {0, 5, 4};
  CALL_REFUSED("args.offsets[2] = 4 must be 5 to 7", plain, d.packing = HK_CAUSAL_OFFSETS, a.offsets = offsets);
  static int32_t beyond[N + 1] = {0, 5, 8};
  CALL_REFUSED("args.offsets[2] = 8 must be 5 to 7", plain, d.packing = HK_CAUSAL_OFFSETS, a.offsets = beyond);
  static int32_t longer[N + 1] = {0, 5, 7};
  CALL_REFUSED("sequence 0 has 5 tokens, desc.longest is 3", plain, d.packing = HK_CAUSAL_OFFSETS, d.longest = 3,
               a.offsets = longer);
  static int32_t negative[N] = {0, -1};
  CALL_REFUSED("args.slots_in[1] = -1", stateful, a.slots_in = negative, a.state_in = state);
  CALL_REFUSED("args.slots_out[1] = -1", stateful, a.slots_out = negative, a.state_out = state);
  CALL_REFUSED("args.positions[1] = -1", stateful, d.ring = 1, a.positions = negative);
  static int32_t much[N] = {1, 3};
  CALL_REFUSED("args.accepted[1] = 3 must be 1 to 2", stateful, d.length = 1, d.state_length = 4, a.accepted = much);
  hk_causal_args a = args();
  CHECK_STATUS(HK_INVALID, "causal is NULL", hk_causal_execute(NULL, &a));
}

static void gradients(void) {
  hk_causal *k;
  hk_causal_desc d = plain();
  hk_causal_args a = args();
  static float dx[N * C * L];
  hk_causal_grads g = {.size = sizeof g, .dy = y, .dx = dx};
  CHECK_STATUS(HK_OK, "", hk_causal_create(&k, &d, NULL));
  CHECK_STATUS(HK_INVALID, "needs a description with desc.gradient", hk_causal_gradient(k, &a, &g));
  hk_causal_destroy(k);
  d.gradient = 1;
  CHECK_STATUS(HK_OK, "", hk_causal_create(&k, &d, NULL));
  CHECK(hk_causal_workspace(k) == 0, "the CPU wants a workspace");
  CHECK_STATUS(HK_OK, "", hk_causal_gradient(k, &a, &g));
  CHECK_STATUS(HK_INVALID, "grads is NULL", hk_causal_gradient(k, &a, NULL));
  CHECK_STATUS(HK_INVALID, "args is NULL", hk_causal_gradient(k, NULL, &g));
  g.dy = NULL;
  CHECK_STATUS(HK_INVALID, "grads.dy is NULL", hk_causal_gradient(k, &a, &g));
  g.dy = y, g.dstate_in = dx;
  CHECK_STATUS(HK_INVALID, "grads.dstate_in needs desc.state_length", hk_causal_gradient(k, &a, &g));
  g.dstate_in = NULL, g.dx_at.channel = 1;
  CHECK_STATUS(HK_INVALID, "dx_at must address distinct elements", hk_causal_gradient(k, &a, &g));
  static int32_t table[N] = {0, 1};
  a.slots_in = table;
  CHECK_STATUS(HK_UNSUPPORTED, "args.slots_in", hk_causal_gradient(k, &a, &g));
  a.slots_in = NULL, a.accepted = table;
  CHECK_STATUS(HK_UNSUPPORTED, "args.accepted", hk_causal_gradient(k, &a, &g));
  hk_causal_destroy(k);
}

/* Structs end where an older header's did: what follows them is not read. */
static void sizes(void) {
  hk_causal *k;
  hk_causal_desc d = plain();
  d.size = offsetof(hk_causal_desc, state_length);
  d.state_length = -5;
  CHECK_STATUS(HK_OK, "", hk_causal_create(&k, &d, NULL));
  hk_causal_args a = args();
  a.size = offsetof(hk_causal_args, state_in);
  a.state_in = x;
  CHECK_STATUS(HK_OK, "", hk_causal_execute(k, &a));
  a.size = sizeof a + 8;
  CHECK_STATUS(HK_INVALID, "newer hankel.h", hk_causal_execute(k, &a));
  hk_causal_destroy(k);
  d.size = sizeof d + 8;
  CHECK_STATUS(HK_INVALID, "newer hankel.h", hk_causal_create(&k, &d, NULL));
  d.size = 0;
  CHECK_STATUS(HK_INVALID, "desc.size = 0", hk_causal_create(&k, &d, NULL));
}

static int bodies;
static void own_loop(void *pool, int64_t count, void (*body)(void *, int64_t), void *context) {
  for (int64_t i = count - 1; i >= 0; i--) body(context, i), bodies++;
  CHECK(pool == &bodies, "another pool");
}

static void loops(void) {
  enum { LONG = 4096 };
  float *big = calloc((size_t)N * C * LONG * 2, sizeof *big);
  hk_causal_desc d = plain();
  d.length = LONG;
  const hk_options o = {.size = sizeof o, .threads = 4, .parallel_for = own_loop, .pool = &bodies};
  hk_causal *k;
  CHECK_STATUS(HK_OK, "", hk_causal_create(&k, &d, &o));
  hk_causal_args a = args();
  a.x = big, a.y = big + N * C * LONG;
  CHECK_STATUS(HK_OK, "", hk_causal_execute(k, &a));
  CHECK(bodies >= N, "the caller's loop ran %d pieces", bodies);
  char text[200];
  size_t length;
  CHECK_STATUS(HK_OK, "", hk_causal_print(k, text, sizeof text, &length));
  CHECK(length == strlen(text) && strstr(text, "causal n2 c5 l4096 w4 f32/f32/f32 batch bias: "), "%s", text);
  CHECK_STATUS(HK_OK, "", hk_causal_print(k, NULL, 0, &length));
  CHECK_STATUS(HK_INVALID, "buffer is NULL", hk_causal_print(k, NULL, 9, &length));
  CHECK_STATUS(HK_INVALID, "causal is NULL", hk_causal_print(NULL, text, 9, &length));
  CHECK(!strstr(text, "gradient"), "%s", text);
  hk_causal_destroy(k);
  free(big);
}

/* The line says by what the gradient is computed, too, where one will be asked for. */
static void prints_gradient(void) {
  hk_causal_desc d = plain();
  d.gradient = 1;
  for (int reference = 0; reference < 2; reference++) {
    char text[300];
    hk_causal *k;
    if (reference) d.window = 200, d.dilation = 50; /* reaches further than a tile */
    CHECK_STATUS(HK_OK, "", hk_causal_create(&k, &d, NULL));
    CHECK_STATUS(HK_OK, "", hk_causal_print(k, text, sizeof text, NULL));
    CHECK(strstr(text, reference ? "; gradient: ref" : "; gradient: hk_causalg_"), "%s", text);
    CHECK(reference || strstr(text, " tokens per tile"), "%s", text);
    hk_causal_destroy(k);
  }
}

int main(void) {
  descriptions();
  calls();
  gradients();
  sizes();
  loops();
  prints_gradient();
  return hk_test_end();
}
