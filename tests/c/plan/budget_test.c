/* Budgets of docs/limits.md: planning any legal problem takes at most 1 s and 64 MiB beyond the packed weights, and
 * what execute spends grows no faster than outputs, inputs and products. Planned are extreme problems, drawn and from a
 * table of those that once took minutes or gigabytes; their tensors do not exist. Thread CPU time is measured: a busy
 * machine fails nothing. */
#include <math.h>
#include <signal.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include "cuda/depthwise/depthwise.h"
#include "plan/dense/dense.h"
#include "plan/dense/strip.h"
#include "support/allocs.h"
#include "support/check.h"

#define SECONDS 1.0
#define BYTES ((size_t)64 << 20)
#define GIVE_UP 15 /* s of CPU time: a bomb went off */
#define DRAWN 800

static char now_running[1200];

static double cpu_seconds(void) {
  struct timespec t;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void give_up(int signal) {
  (void)signal;
  static const char text[] = ": still not done, given up\n";
  (void)!write(2, now_running, strlen(now_running));
  (void)!write(2, text, sizeof text - 1);
  _exit(1);
}

static void watch(int seconds) {
  const struct itimerval t = {.it_value = {.tv_sec = seconds}};
  signal(SIGPROF, give_up);
  setitimer(ITIMER_PROF, &t, NULL);
}

/* ---- planning */

static float weights[1 << 20];

static void ignore(void *context, const hk_candidate *c) { (void)context, (void)c; }

static void within(const char *what, double start, size_t before, size_t packed) {
  const double seconds = cpu_seconds() - start;
  CHECK(seconds <= SECONDS, "%s of %s took %.2f s", what, now_running, seconds);
  CHECK(held_most <= before + packed + BYTES, "%s of %s took %zu bytes beyond the weights", what, now_running,
        held_most - before - packed);
}

static void plan_once(const hk_problem *p, const hk_options *o, const hk_weights *w) {
  const size_t before = held_most = held;
  const double start = cpu_seconds();
  hk_plan *plan = NULL;
  const hk_status s = hk_plan_create(&plan, p, NULL, o, w);
  CHECK(s == HK_OK || s == HK_UNSUPPORTED, "%s: %s", now_running, hk_last_error());
  within("creation", start, before, plan ? plan->packed->f_bytes : 0);
  hk_plan_destroy(plan);
}

/* weights_most: bytes up to which f is given at creation too */
static void plan_one(const hk_problem *p, const hk_options *o, int64_t weights_most) {
  hk_extent x, f, y;
  hk_problem_print(p, now_running, sizeof now_running, NULL);
  CHECK_STATUS(HK_OK, "", hk_problem_extents(p, &x, &f, &y));
  watch(GIVE_UP);
  hk_options patient = *o;
  patient.rigor = HK_PATIENT; /* lists the other settings of every knob too */
  const size_t before = held_most = held;
  const double start = cpu_seconds();
  const hk_status s = hk_plan_candidates(p, NULL, &patient, ignore, NULL);
  CHECK(s == HK_OK, "%s: %s", now_running, hk_last_error());
  within("listing candidates", start, before, 0);
  plan_once(p, o, NULL);
  const hk_weights w = {.size = sizeof w, .f = weights};
  if (f.below == 0 && f.elements * (int64_t)hk_type_bytes(p->f_type) <= weights_most) plan_once(p, o, &w);
  watch(0);
}

static void table(void) {
  static const char *const text[] = {
      "2d_c52_i65535x3_k52_w1x1_l65536x1_g52_f32_last", /* choose_band of dwp stepped by one row */
      "2d_n1_c19_i3x3_k13_w3x4_l2x100000000_bf16_last", /* igemm and planes counted the blocks of all grids */
      "1d_n1_c1000000000_i4_k4096_w2_f32_last",         /* a row of zeros as long as c */
      "1d_n1_c1000000000_i4_k4096_w2_p1_f32_last",
      "2d_n1_c3_i6x2_k3_w5x3_p17179869185:9x2:0_g3_f32_last",                    /* a table of all output rows */
      "2d_n2_c2_i9x4_k2_w9x1125899906842_s15x1_p4x1125899906841:0_g2_f16_first", /* a loop over the window for every cut
                                                                                  */
      "1d_n1_c3_i8_k5_w1373980_s4_p6:92206290946_d67108_f32_last",
      "1d_c1_i4000000_k1_w1000000_f32_first",  /* a sorted table of taps */
      "1d_c4_i4000000_k4_w250000_g4_f32_last", /* weights packed in passes, each counting the taps before it */
      "1d_n1_c0_i9_k8589934592_w2_p1_g8589934592_bf16_first", /* weights without a channel were searched for NaN */
      "2d_n1_c20_i3x5_k67108865_w3x5_p2_s8:s8:s8_xs=0.0.300.1.100.20_fs=0.0.0.1.100.20_ys=0.0.1006632975.1.335544325."
      "67108865",
      "3d_n1_c1_i1023x1x1_k3_w3x4x3_s1x2x1_p-1:0x33554433:6x1_d1x94x1_l1x2x1_f16:f16:f32_first",
      "1d_n1_c1_i1_k1_w1_s9223372036854775807_f32_last",
      "1d_n281474976710656_c1_i1_k1_w1_f32_last",
      "1d_c4_i0_k4_w3_p100000000000:3_g2_f32_last"};
  for (size_t i = 0; i < sizeof text / sizeof text[0]; i++) {
    hk_problem p;
    const hk_options o = {.size = sizeof o, .threads = 1};
    CHECK(!hk_problem_parse(&p, text[i]), "%s: %s", text[i], hk_last_error());
    plan_one(&p, &o, sizeof weights);
  }
}

static uint64_t seed = 1;
static int64_t below(int64_t n) {
  uint64_t z = seed += 0x9e3779b97f4a7c15u;
  z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
  z = (z ^ z >> 27) * 0x94d049bb133111ebu;
  return (int64_t)((z ^ z >> 31) % (uint64_t)n);
}

/* 1..9 mostly, else about a power of two of at most `bits` bits */
static int64_t size(int bits) {
  const int64_t v = (int64_t)1 << below(bits + 1);
  return below(3) ? 1 + below(9) : below(2) ? v + below(v) : below(2) ? v + 1 : v - (v > 1);
}

static void draw_dimension(hk_problem *p, int d, int bits) {
  p->in[d] = below(50) ? size(bits) : 0;
  p->window[d] = below(3) ? 1 + below(5) : size(bits);
  p->stride[d] = below(2) ? 1 : size(bits);
  p->dilation[d] = below(2) ? 1 : size(bits);
  p->in_dilation[d] = below(3) ? 1 : below(3) ? size(bits) : p->stride[d] * (1 + below(3));
  p->reverse[d] = !below(8);
  int64_t reach, span;
  if (!hk_mul_checked(p->window[d] - 1, p->dilation[d], &reach)) return;
  switch (below(5)) {
  case 0: p->pad_lo[d] = reach; break;
  case 1: p->pad_lo[d] = reach / 2, p->pad_hi[d] = reach - reach / 2; break;
  case 2: p->pad_lo[d] = size(bits), p->pad_hi[d] = size(bits); break;
  case 3: p->pad_lo[d] = -below(3); break;
  default: break;
  }
  if (below(2) || !hk_mul_checked(p->in_dilation[d], p->in[d], &span)) return;
  span += p->pad_lo[d] + p->pad_hi[d];
  if (span <= reach) p->pad_hi[d] += reach - span + 1 + below(5);
}

static bool draw(hk_problem *p) {
  static const hk_type types[] = {HK_F32, HK_F32, HK_F32, HK_F32, HK_F16, HK_BF16, HK_S8, HK_F64, HK_F8E4M3};
  static const int bits_of[] = {10, 16, 20, 26, 31, 40, 55};
  const int bits = bits_of[below(7)];
  const int64_t groups = below(3) ? 1 : size(bits / 2);
  *p = (hk_problem){.size = sizeof *p, .rank = 1 + (int32_t)below(3), .feature_groups = groups, .batch_groups = 1};
  p->x_type = p->f_type = p->y_type = types[below(9)];
  p->n = below(4) ? below(60) > 0 : size(bits);
  if (!hk_mul_checked(groups, below(2) ? 1 : size(bits), &p->c) ||
      !hk_mul_checked(groups, below(2) ? 1 : size(bits), &p->k))
    return false;
  if (!below(40)) p->c = 0;
  if (!below(12)) { /* groups of the batch */
    p->batch_groups = groups;
    p->feature_groups = 1;
    if (!hk_mul_checked(p->n, groups, &p->n)) return false;
  }
  for (int d = 0; d < p->rank; d++) draw_dimension(p, d, below(2) ? bits : 4);
  if (hk_problem_dense(p, below(2) ? HK_CHANNELS_LAST : HK_CHANNELS_FIRST)) return false;
  hk_strides *s = below(2) ? &p->x : &p->f;
  if (!below(6)) *(below(2) ? &s->channel : below(2) ? &s->outer : &s->at[below(p->rank)]) = 0;
  return !hk_problem_check(p);
}

static void drawn(void) {
  static const hk_isa isa[] = {HK_ISA_BEST, HK_ISA_BEST, HK_ISA_AVX2, HK_ISA_SCALAR};
  for (int legal = 0; legal < DRAWN;) {
    hk_problem p;
    if (!draw(&p)) continue;
    legal++;
    hk_options o = {.size = sizeof o, .threads = 1, .isa = isa[below(4)], .math = (uint32_t)below(2)};
    o.stateful = p.rank == 1 && p.stride[0] == 1 && p.in_dilation[0] == 1 && p.batch_groups == 1 && p.pad_hi[0] == 0 &&
                 p.pad_lo[0] == p.dilation[0] * (p.window[0] - 1);
    plan_one(&p, &o, sizeof weights / 16);
  }
}

/* The tilings of CUDA kernels are chosen without a device: as many channels as they take, in groups of every size. */
static void tilings(void) {
  for (int64_t k = 1; k <= 1 << 27; k *= 2)
    for (int kind = 0; kind < HK_DW_KINDS; kind++) {
      hk_problem p = {.size = sizeof p,
                      .rank = 1,
                      .x_type = HK_BF16,
                      .f_type = HK_BF16,
                      .y_type = HK_BF16,
                      .n = 1,
                      .batch_groups = 1};
      p.in[0] = 8;
      p.window[0] = p.stride[0] = p.dilation[0] = p.in_dilation[0] = 1;
      p.feature_groups = p.c = (1 << 27) / k;
      p.k = 1 << 27;
      hk_geom g;
      hk_epi e;
      hk_cu_dw_tiling t;
      char why[HK_DW_REASON];
      CHECK_STATUS(HK_OK, "", hk_problem_dense(&p, HK_CHANNELS_LAST));
      CHECK(!hk_geom_make(&g, &p, false) && !hk_epi_make(&e, NULL, &p), "%s", hk_last_error());
      snprintf(now_running, sizeof now_running, "kind %d, 2^27 channels in groups of %lld", kind, (long long)k);
      watch(GIVE_UP);
      const double start = cpu_seconds();
      hk_cu_dw_tile((hk_cu_dw_kind)kind, &g, &e, (hk_cu_dw_rules){0}, (hk_cu_dw_knobs){0}, &t, why);
      CHECK(cpu_seconds() - start < SECONDS / 10, "%s took %.2f s", now_running, cpu_seconds() - start);
      watch(0);
    }
}

/* ---- execute */

typedef struct run_time {
  double execute, touch, flops; /* s; s to write the tensors once; of the problem */
} run_time;

static run_time execute_one(const char *text, const char *decision) {
  run_time r = {.execute = HUGE_VAL, .touch = HUGE_VAL};
  hk_problem p;
  hk_extent x, f, y;
  hk_plan *plan = NULL;
  double bytes;
  snprintf(now_running, sizeof now_running, "%s", text);
  CHECK(!hk_problem_parse(&p, text) && !hk_problem_extents(&p, &x, &f, &y) && !hk_problem_work(&p, &r.flops, &bytes),
        "%s", hk_last_error());
  const size_t size[3] = {(size_t)x.elements * 8 + 8, (size_t)f.elements * 8 + 8, (size_t)y.elements * 8 + 8};
  char *at[3] = {malloc(size[0]), malloc(size[1]), malloc(size[2])};
  if (at[0] && at[1] && at[2]) {
    for (int round = 0; round < 3; round++) {
      const double start = cpu_seconds();
      for (int i = 0; i < 3; i++) memset(at[i], 0, size[i]);
      r.touch = fmin(r.touch, cpu_seconds() - start);
    }
    const hk_weights w = {.size = sizeof w, .f = at[1]};
    const hk_options o = {.size = sizeof o, .threads = 1, .decision = decision};
    CHECK_STATUS(HK_OK, "", hk_plan_create(&plan, &p, NULL, &o, &w));
    hk_args a = {.size = sizeof a, .x = at[0], .y = at[2], .workspace_bytes = plan ? hk_plan_workspace(plan) : 0};
    a.workspace = aligned_alloc(64, (a.workspace_bytes + 127) / 64 * 64);
    watch(GIVE_UP);
    for (int round = 0; plan && a.workspace && round < 3; round++) {
      const double start = cpu_seconds();
      CHECK_STATUS(HK_OK, "", hk_plan_execute(plan, &a));
      r.execute = fmin(r.execute, cpu_seconds() - start);
    }
    watch(0);
    free(a.workspace);
  }
  for (int i = 0; i < 3; i++) free(at[i]);
  hk_plan_destroy(plan);
  return r;
}

/* The second problem is `more` times the first in outputs, inputs and products; twice that in time is allowed. What it
 * takes in all is bounded by its products and by writing its tensors, loosely: sanitizers and other machines must pass,
 * a scan of all blocks per block not. */
static void linear(void) {
  static const struct {
    const char *small, *large, *decision;
    double more;
  } run[] = {{"2d_c16_i4x4_k16_w3x3_l64x64_f32_last", "2d_c16_i4x4_k16_w3x3_l128x128_f32_last", NULL, 4},
             {"2d_c16_i4x4_k16_w3x3_l64x64_f32_last", "2d_c16_i4x4_k16_w3x3_l128x128_f32_last", "igemm", 4},
             {"2d_c16_i4x4_k16_w3x3_l64x64_f32_first", "2d_c16_i4x4_k16_w3x3_l128x128_f32_first", "planes", 4},
             {"1d_c1_i300012_k1_w100000_s2_d3_f32_first", "1d_c1_i600012_k1_w200000_s2_d3_f32_first", "dwp", 2},
             {"1d_c1_i75000_k1_w100000_p25007:0_f32_first", "1d_c1_i150000_k1_w200000_p50007:0_f32_first", "dwp", 2},
             {"1d_c0_i75000_k4_w25000_f32_last", "1d_c0_i150000_k4_w50000_f32_last", NULL, 2},
             {"1d_c1_i16_k1_w50000_p49999:49999_f32_first", "1d_c1_i16_k1_w100000_p99999:99999_f32_first", NULL, 2},
             {"2d_c1_i3x3_k1_w250x500_p249x499_f64_last", "2d_c1_i3x3_k1_w500x500_p499x499_f64_last", NULL, 2}};
  for (size_t i = 0; i < sizeof run / sizeof run[0]; i++) {
    const run_time small = execute_one(run[i].small, run[i].decision),
                   large = execute_one(run[i].large, run[i].decision);
    CHECK(large.execute <= 2 * run[i].more * small.execute + 3e-3, "%s: %.4f s, %s: %.4f s", run[i].small,
          small.execute, run[i].large, large.execute);
    CHECK(large.execute <= 0.02 + 400 * large.touch + fmin(1, large.flops / 1e8),
          "%s: %.4f s, %.4f s to write the tensors, %.2g flops", run[i].large, large.execute, large.touch, large.flops);
  }
}

/* ---- the closed forms against the loops that they replace */

static void grids(void) {
  for (int i = 0; i < 200; i++) {
    hk_geom g = {.n = 1 + below(2), .pixels = 1};
    for (int d = 0; d < 3; d++) g.in_dil[d] = 1 + below(6), g.stride[d] = 1 + below(6), g.out[d] = 1 + below(9);
    const int64_t unit = 1 + below(12);
    int64_t index = 0;
    for (int64_t k = 0; k < hk_grid_count(&g); k++) {
      const hk_grid want = hk_grid_get(&g, k);
      for (int64_t piece = 0; piece < hk_ceil_div(want.pixels, unit); piece++, index++) {
        int64_t at = index;
        const hk_grid got = hk_grid_find(&g, unit, &at);
        CHECK(at == piece && !memcmp(&got, &want, sizeof got), "piece %lld of %lld pixels", (long long)index,
              (long long)unit);
      }
    }
    CHECK(hk_grid_pieces(&g, unit) == index, "%lld pieces, not %lld", (long long)hk_grid_pieces(&g, unit),
          (long long)index);
  }
}

static void ranges(void) {
  for (int i = 0; i < 20000; i++) {
    hk_geom g = {.win = {0, 0, 1 + below(9)},
                 .stride = {0, 0, 1 + below(5)},
                 .dil = {0, 0, 1 + below(5)},
                 .lo = {0, 0, below(20) - 5},
                 .in = {0, 0, below(20)}};
    const int64_t p = below(12);
    hk_strip_range want = {0, 0};
    for (int64_t s = 0; s < g.win[2]; s++) {
      const int64_t at = p * g.stride[2] + s * g.dil[2] - g.lo[2];
      if (at < 0 || at >= g.in[2]) continue;
      if (!want.to) want.from = (int32_t)s;
      want.to = (int32_t)s + 1;
    }
    const hk_strip_range got = hk_strip_inside(&g, 2, p);
    CHECK(got.from == want.from && got.to == want.to, "%d..%d, not %d..%d", got.from, got.to, want.from, want.to);
  }
  for (int64_t taps = 1; taps < 60; taps++)
    for (int64_t apart = 1; apart < 70; apart++) {
      int64_t runs = 0;
      for (int64_t s = 0; s < apart && s < taps; s++) runs += hk_ceil_div(hk_ceil_div(taps - s, apart), HK_RUN_TAPS);
      CHECK(hk_tap_run_count(taps, apart) == runs, "%lld taps, %lld apart", (long long)taps, (long long)apart);
    }
}

int main(void) {
  table();
  drawn();
  tilings();
  grids();
  ranges();
  linear();
  return hk_test_end();
}
