/* The tensor maps and runs of pixels that the copy engine would get, checked without a GPU: a host model of the im2col
 * walk, written from the published rules alone, must deliver exactly the pixels that the geometry says a tile needs,
 * for every tap; and what the engine cannot walk must be refused. */
#include <stdlib.h>
#include <string.h>

#include "core/core.h"
#include "cuda/cuda.h"
#include "cuda/igemm/halo.h"
#include "cuda/igemm/planes.h"
#include "support/check.h"

/* Element offsets of the first channel of `pixels` pixels from output pixel m on, tap (t, r, s); -1 outside. The walk:
 * the innermost coordinate steps by its stride through the box [lower, size - 1 + upper], then the next dimension, then
 * the image; the tap's offsets are added afterwards and what leaves the tensor reads as zero. */
static void walk(const hk_cu_map *m, const hk_geom *g, int64_t pixel, const int64_t tap[3], int pixels, int64_t *to) {
  const int space = m->rank - 2;
  int64_t at[3], n, rest = pixel;
  for (int i = 0; i < space; ++i) {
    const int64_t out = g->out[2 - i];
    at[i] = rest % out * m->steps[i + 1] + m->lower[i];
    rest /= out;
  }
  for (int i = space; i < 3; ++i) rest /= g->out[2 - i];
  n = rest;
  for (int p = 0; p < pixels; ++p) {
    int64_t offset = n * (int64_t)m->strides[space] / m->bytes;
    bool inside = n < (int64_t)m->dims[space + 1];
    for (int i = 0; i < space; ++i) {
      const int64_t v = at[i] + tap[2 - i] * g->dil[2 - i];
      inside = inside && v >= 0 && v < (int64_t)m->dims[i + 1];
      offset += v * (int64_t)m->strides[i] / m->bytes;
    }
    to[p] = inside ? offset : -1;
    for (int i = 0; i <= space; ++i) {
      if (i == space) {
        n++;
        break;
      }
      at[i] += m->steps[i + 1];
      if (at[i] <= (int64_t)m->dims[i + 1] - 1 + m->upper[i]) break;
      at[i] = m->lower[i];
    }
  }
}

/* What the definition reads for output pixel m and a tap; -1 for padding and past the last image. */
static int64_t wanted(const hk_geom *g, int64_t m, const int64_t tap[3]) {
  int64_t offset = 0;
  for (int d = 2; d >= 0; --d) {
    const int64_t i = m % g->out[d] * g->stride[d] + tap[d] * g->dil[d] - g->lo[d];
    if (i < 0 || i >= g->in[d]) return -1;
    offset += i * g->x.at[d];
    m /= g->out[d];
  }
  return m < g->n ? offset + m * g->x.outer : -1;
}

static void check_walk(const hk_geom *g, const hk_cu_map *m, const char *text) {
  enum { PIXELS = 96 };
  int64_t got[PIXELS], tap[3];
  for (int64_t start = 0; start < g->gm; start += PIXELS)
    for (tap[0] = 0; tap[0] < g->win[0]; ++tap[0])
      for (tap[1] = 0; tap[1] < g->win[1]; ++tap[1])
        for (tap[2] = 0; tap[2] < g->win[2]; ++tap[2]) {
          walk(m, g, start, tap, PIXELS, got);
          for (int p = 0; p < PIXELS; ++p)
            CHECK(got[p] == wanted(g, start + p, tap), "%s: pixel %lld tap %lld %lld %lld: %lld, not %lld", text,
                  (long long)(start + p), (long long)tap[0], (long long)tap[1], (long long)tap[2], (long long)got[p],
                  (long long)wanted(g, start + p, tap));
        }
}

static void check_tiled(const hk_geom *g, const hk_cu_map *m, const char *text) {
  const int64_t tap[3] = {0, 0, 0};
  CHECK((int64_t)m->dims[1] == g->gm, "%s", text);
  for (int64_t p = 0; p < g->gm; ++p)
    CHECK(p * (int64_t)m->strides[0] / m->bytes == wanted(g, p, tap), "%s: pixel %lld", text, (long long)p);
}

static hk_geom parse(const char *text) {
  hk_problem problem;
  hk_geom g;
  CHECK(!hk_problem_parse(&problem, text) && !hk_geom_make(&g, &problem, false), "%s", hk_last_error());
  return g;
}
static hk_geom make(hk_conv_desc d) {
  hk_problem p = {.size = sizeof p};
  hk_geom g;
  d.size = sizeof d;
  d.layout = HK_CHANNELS_LAST;
  if (!d.x_type) d.x_type = d.f_type = d.y_type = HK_BF16;
  CHECK(hk_problem_conv(&p, &d) == HK_OK, "%s", hk_last_error());
  CHECK(hk_geom_make(&g, &p, false) == HK_OK, "%s", hk_last_error());
  return g;
}

static const struct {
  const char *text;
  int load;
  hk_conv_desc d;
} cases[] = {
    {"square",
     HK_CU_LOAD_2D,
     {.rank = 2, .n = 2, .c = 64, .k = 8, .in = {9, 9}, .window = {3, 3}, .pad_lo = {1, 1}, .pad_hi = {1, 1}}},
    {"nothing square",
     HK_CU_LOAD_2D,
     {.rank = 2,
      .n = 3,
      .c = 72,
      .k = 8,
      .in = {13, 7},
      .window = {3, 2},
      .stride = {2, 1},
      .pad_lo = {1, 0},
      .pad_hi = {2, 3},
      .dilation = {1, 2}}},
    {"wide padding",
     HK_CU_LOAD_2D,
     {.rank = 2,
      .n = 2,
      .c = 8,
      .k = 8,
      .in = {5, 6},
      .window = {2, 3},
      .stride = {3, 2},
      .pad_lo = {7, 9},
      .pad_hi = {8, 5}}},
    {"one row",
     HK_CU_LOAD_1D,
     {.rank = 1,
      .n = 3,
      .c = 16,
      .k = 8,
      .in = {50},
      .window = {5},
      .stride = {3},
      .pad_lo = {4},
      .pad_hi = {20},
      .dilation = {7}}},
    {"long dilation",
     HK_CU_LOAD_1D,
     {.rank = 1, .n = 1, .c = 16, .k = 8, .in = {2000}, .window = {3}, .dilation = {900}}},
    {"volume",
     HK_CU_LOAD_3D,
     {.rank = 3,
      .n = 2,
      .c = 24,
      .k = 8,
      .in = {4, 5, 6},
      .window = {2, 3, 2},
      .stride = {1, 2, 3},
      .pad_lo = {1, 0, 2},
      .pad_hi = {0, 2, 1},
      .dilation = {2, 1, 1}}},
    {"strided 1x1",
     HK_CU_LOAD_2D,
     {.rank = 2, .n = 2, .c = 64, .k = 8, .in = {9, 10}, .window = {1, 1}, .stride = {2, 3}}},
};

static void walks(void) {
  for (int i = 0; i < HK_COUNT(cases); ++i) {
    const hk_geom g = make(cases[i].d);
    hk_cu_map m;
    char why[HK_CU_REASON] = "";
    const bool ok = hk_cu_map_make(&g, &m, why);
    CHECK(ok, "%s refused: %s", cases[i].text, why);
    CHECK(ok && m.load == cases[i].load, "%s: load %d", cases[i].text, m.load);
    if (ok) check_walk(&g, &m, cases[i].text);
  }
  const hk_geom g = make((hk_conv_desc){.rank = 2, .n = 3, .c = 40, .k = 8, .in = {5, 7}, .window = {1, 1}});
  hk_cu_map m;
  char why[HK_CU_REASON];
  CHECK(hk_cu_map_make(&g, &m, why) && m.load == HK_CU_LOAD_TILED, "a plain product is a tiled map");
  check_tiled(&g, &m, "plain product");
}

static void cropped(void) {
  hk_geom g = make((hk_conv_desc){.rank = 2, .n = 2, .c = 8, .k = 8, .in = {9, 8}, .window = {2, 2}});
  hk_problem p = {.size = sizeof p};
  hk_cu_map m;
  char why[HK_CU_REASON];
  CHECK(hk_problem_parse(&p, "2d_n2_c8_i9x8_k8_w2x2_last") == HK_OK, "%s", hk_last_error());
  p.pad_lo[0] = -2, p.pad_hi[1] = -3, p.pad_lo[1] = 1;
  CHECK(hk_problem_dense(&p, HK_CHANNELS_LAST) == HK_OK && hk_geom_make(&g, &p, false) == HK_OK, "%s", hk_last_error());
  CHECK(hk_cu_map_make(&g, &m, why), "%s", why);
  check_walk(&g, &m, "cropped");
}

static void refusals(void) {
  static const struct {
    const char *word;
    hk_conv_desc d;
  } cases[] = {
      {"multiples of 16", {.rank = 2, .n = 2, .c = 67, .k = 8, .in = {9, 9}, .window = {3, 3}}},
      {"limit of 8, it is 9", {.rank = 2, .n = 2, .c = 64, .k = 8, .in = {30, 30}, .window = {3, 3}, .stride = {9, 1}}},
      {"exceed TMA's limit",
       {.rank = 2, .n = 1, .c = 64, .k = 8, .in = {300, 300}, .window = {3, 3}, .dilation = {100, 100}}},
      {"exceed TMA's limit",
       {.rank = 3, .n = 1, .c = 64, .k = 8, .in = {50, 9, 9}, .window = {3, 1, 1}, .dilation = {17, 1, 1}}},
      {"channels per group", {.rank = 2, .n = 2, .c = 64, .k = 8, .groups = 2, .in = {9, 9}, .window = {3, 3}}},
  };
  for (int i = 0; i < HK_COUNT(cases); ++i) {
    const hk_geom g = make(cases[i].d);
    hk_cu_map m;
    char why[HK_CU_REASON] = "";
    CHECK(!hk_cu_map_make(&g, &m, why) && strstr(why, cases[i].word), "expected \"%s\", got \"%s\"", cases[i].word,
          why);
  }
}

/* A folded window: the copy engine must still find its pixels, and the run of channels from there must be the pixels
 * that the window covers along the last dimension, padding included. */
static void folded(void) {
  static const hk_conv_desc cases[] = {
      {.rank = 2, .n = 2, .c = 67, .k = 8, .in = {9, 7}, .window = {3, 3}, .pad_lo = {1, 1}, .pad_hi = {1, 1}},
      {.rank = 2,
       .n = 3,
       .c = 35,
       .k = 8,
       .in = {6, 11},
       .window = {2, 3},
       .stride = {1, 2},
       .pad_lo = {0, 2},
       .pad_hi = {1, 1}},
      {.rank = 1, .n = 2, .c = 3, .k = 8, .in = {40}, .window = {5}, .stride = {3}, .pad_lo = {4}},
      {.rank = 3,
       .n = 2,
       .c = 19,
       .k = 8,
       .in = {4, 5, 6},
       .window = {2, 1, 3},
       .dilation = {2, 1, 1},
       .pad_hi = {2, 0, 1}},
  };
  for (int i = 0; i < HK_COUNT(cases); ++i) {
    const hk_geom g = make(cases[i]);
    hk_geom to;
    hk_cu_map m;
    size_t bytes;
    char why[HK_CU_REASON];
    const int64_t run = hk_cu_transpose_filters(&g).fold_run, width = (g.out[2] - 1) * g.stride[2] + g.win[2];
    CHECK(run >= g.c && run % 8 == 0, "case %d does not fold", i);
    CHECK(hk_cu_transpose_takes(&g, &to, &bytes, why) && hk_cu_map_make(&to, &m, why), "case %d: %s", i, why);
    CHECK(to.c == run * g.win[2] && to.win[2] == 1 && to.taps * g.win[2] == g.taps && to.gm == g.gm, "case %d", i);
    CHECK((int64_t)bytes == g.n * g.in[0] * g.in[1] * width * run * 2, "case %d: %zu bytes", i, bytes);
    if (m.load != HK_CU_LOAD_TILED) check_walk(&to, &m, "folded");
    for (int64_t pixel = 0; pixel < g.gm; ++pixel) {
      const int64_t first[3] = {0, 0, 0}, at = wanted(&to, pixel, first);
      /* the last pixel of the run is the last that the window covers */
      if (at >= 0)
        CHECK(at % run == 0 && at / run % width == pixel % g.out[2] * g.stride[2] && at + to.c <= (int64_t)bytes / 2,
              "case %d: pixel %lld at %lld", i, (long long)pixel, (long long)at);
    }
  }
  const hk_geom even = make((hk_conv_desc){.rank = 2, .n = 2, .c = 64, .k = 8, .in = {9, 9}, .window = {3, 3}});
  const hk_geom wide =
      make((hk_conv_desc){.rank = 2, .n = 2, .c = 67, .k = 8, .in = {9, 9}, .window = {3, 3}, .dilation = {1, 2}});
  CHECK(!hk_cu_transpose_filters(&even).fold_run && !hk_cu_transpose_filters(&wide).fold_run,
        "full runs and dilated windows do not fold");
}

/* Which groups are multiplied together, and that joining changes no element's place. */
static void joined(void) {
  static const struct {
    hk_conv_desc d;
    int64_t count;
  } cases[] = {
      {{.rank = 2, .n = 2, .c = 512, .k = 512, .groups = 32, .in = {14, 14}, .window = {3, 3}}, 4},
      {{.rank = 2, .n = 2, .c = 96, .k = 96, .groups = 3, .in = {14, 14}, .window = {3, 3}}, 3},
      {{.rank = 2, .n = 2, .c = 256, .k = 256, .groups = 4, .in = {14, 14}, .window = {3, 3}}, 1},
      {{.rank = 2, .n = 2, .c = 64, .k = 64, .groups = 64, .in = {14, 14}, .window = {3, 3}}, 1},
      {{.rank = 1, .n = 2, .c = 64, .k = 128, .groups = 8, .in = {30}, .window = {3}}, 8},
  };
  const hk_epi none = {.any = false}, sum = {.e = {.residual = HK_RESIDUAL_AFTER}};
  for (int i = 0; i < HK_COUNT(cases); ++i) {
    const hk_geom g = make(cases[i].d);
    const int64_t count = hk_cu_join_count(&g, &none, false);
    const hk_geom to = hk_cu_join(&g, count);
    CHECK(count == cases[i].count, "case %d: %lld groups joined", i, (long long)count);
    CHECK(to.c * to.groups == g.c * g.groups && to.k * to.groups == g.k * g.groups && to.gk == to.c * g.taps, "case %d",
          i);
    CHECK(to.x.group == to.c * g.x.channel && to.y.group == to.k * g.y.channel, "case %d: groups lie elsewhere", i);
    CHECK(hk_cu_join_count(&g, &sum, false) == 1 && hk_cu_join_count(&g, &none, true) == 1,
          "case %d: what cannot be zeroed is joined", i);
  }
}

/* Exactly one way to store y for every row, epilogue and layout; strips alone may take fewer pixels than a tile has. */
static void finishes(void) {
  static const struct {
    const char *problem, *epilogue;
    hk_cu_finish finish; /* of bm = 128, bn = 64 without a split */
  } cases[] = {{"2d_n2_c64_i14x14_k64_w3x3_p1_bf16_last", "bias", HK_FINISH_SLAB},
               {"2d_n2_c64_i16x16_k64_w3x3_p1_bf16_first", "bias", HK_FINISH_TRANSPOSED},
               {"2d_n2_c64_i15x15_k63_w3x3_p1_bf16_first", "bias", HK_FINISH_TALL},
               {"2d_n2_c64_i14x14_k63_w3x3_p1_bf16_last", "bias", HK_FINISH_STRIP},
               {"2d_n2_c64_i14x14_k63_w3x3_p1_bf16:bf16:f32_last", "bias", HK_FINISH_SLIM},
               {"2d_n2_c64_i14x14_k64_w3x3_p1_bf16_last", "gated:tanh:sigmoid", HK_FINISH_ANY},
               {"2d_n2_c64_i14x14_k64_w3x3_p1_bf16_last", "softsign", HK_FINISH_ANY}};
  for (int i = 0; i < HK_COUNT(cases); ++i) {
    hk_problem p = {.size = sizeof p};
    hk_epilogue epilogue = {.size = sizeof epilogue};
    hk_geom g;
    hk_epi e;
    int seen = 0;
    CHECK(!hk_problem_parse(&p, cases[i].problem) && !hk_epilogue_parse(&epilogue, cases[i].epilogue) &&
              !hk_geom_make(&g, &p, epilogue.gate) && !hk_epi_make(&e, &epilogue, &p),
          "%s: %s", cases[i].problem, hk_last_error());
    for (int r = 0; r < hk_cu_row_count; ++r) {
      const hk_cu_row *row = &hk_cu_rows[r];
      char why[HK_CU_REASON];
      if (row->type != HK_BF16 || !hk_cu_row_takes(row, &g, &e, why)) continue;
      const hk_cu_finish finish = hk_cu_igemm_finish(row, &g, &e, false);
      const int bm = hk_cu_row_bm(row), step = hk_cu_igemm_step(row, &g, finish, 132);
      if (row->split == 1 && row->bn == 64 && bm == 128 && hk_cu_row_strips(row)) {
        seen++;
        CHECK(finish == cases[i].finish, "%s, %s: %s: finish %d", cases[i].problem, cases[i].epilogue, row->name,
              (int)finish);
      }
      CHECK((finish == HK_FINISH_SPLIT) <= (row->split > 1), "%s: finish %d", row->name, (int)finish);
      CHECK(finish == HK_FINISH_STRIP ? step > 0 && step <= bm && step % 8 == 0 : step == bm, "%s: step %d", row->name,
            step);
    }
    CHECK(seen > 0, "%s: no row", cases[i].problem);
  }
}

/* Windows laid out one by one: a plain matrix, each of x's elements at most once. */
static void gathered(void) {
  static const struct {
    hk_conv_desc d;
    bool takes;
  } cases[] = {
      {{.rank = 2, .n = 2, .c = 3, .k = 8, .in = {32, 48}, .window = {16, 16}, .stride = {16, 16}}, true},
      {{.rank = 2, .n = 2, .c = 3, .k = 8, .in = {32, 48}, .window = {16, 16}, .stride = {16, 15}}, false},
      {{.rank = 2, .n = 2, .c = 128, .k = 8, .in = {32, 48}, .window = {2, 2}, .stride = {2, 2}}, false},
      {{.rank = 2, .n = 2, .c = 128, .k = 8, .in = {32, 48}, .window = {2, 2}, .stride = {2, 9}}, true},
      {{.rank = 2, .n = 2, .c = 6, .k = 8, .groups = 2, .in = {32, 48}, .window = {2, 2}, .stride = {2, 2}}, false},
      {{.rank = 1, .n = 3, .c = 5, .k = 8, .in = {60}, .window = {3}, .stride = {5}, .dilation = {2}, .pad_lo = {2}},
       true},
  };
  for (int i = 0; i < HK_COUNT(cases); ++i) {
    const hk_geom g = make(cases[i].d);
    CHECK(hk_cu_gather_takes(&g) == cases[i].takes, "case %d", i);
    if (!cases[i].takes) continue;
    const hk_geom to = hk_cu_gather_geom(&g);
    const hk_cu_filters f = hk_cu_gather_filters(&g);
    hk_cu_map m;
    char why[HK_CU_REASON] = "";
    CHECK(hk_cu_map_make(&to, &m, why) && m.load == HK_CU_LOAD_TILED, "case %d: %s", i, why);
    CHECK(to.gm == g.gm && to.c >= g.c * g.taps && to.c < g.c * g.taps + 8 && to.c % 8 == 0, "case %d", i);
    CHECK(f.fold[0] * f.fold[1] * f.fold[2] == g.taps && (f.fold_run == 0 || f.fold_run == g.c), "case %d", i);
  }
}

/* An image as one run of pixels: what a tap finds at its distance, zeros outside the run and where columns are lost,
 * must be what the definition reads for every output. Boxes start at eights of pixels, lags fall to 0 and every tap has
 * its phase. */
static void check_run(const hk_geom *g, const hk_cu_planes *p, int phase, const hk_cu_planes_tap *tap,
                      const char *text) {
  const int64_t plane = g->in[0] * g->in[1] * g->in[2];
  const int64_t at[3] = {tap->index / g->win[2] / g->win[1], tap->index / g->win[2] % g->win[1],
                         tap->index % g->win[2]};
  CHECK(tap->start % 8 == 0, "%s: tap %d starts at %d", text, tap->index, tap->start);
  for (int64_t m = 0; m < g->pixels; ++m) {
    const int64_t w = m % g->out[2], h = m / g->out[2] % g->out[1], d = m / g->out[2] / g->out[1];
    const int64_t q = (d * p->height + h) * p->width + w, read = q + p->lag[phase] + tap->start;
    int from = 0, to = 0;
    if (p->wraps) hk_cu_planes_wrapped(p, (int)h, tap->across, tap->down, &from, &to);
    const int64_t got = read < 0 || read >= plane || (w >= from && w < to) ? -1 : read;
    CHECK(q < p->flat && got == wanted(g, m, at), "%s: pixel %lld tap %d: %lld, not %lld", text, (long long)m,
          tap->index, (long long)got, (long long)wanted(g, m, at));
  }
}

static void check_phases(const hk_geom *g, const hk_cu_planes *p, const char *text) {
  int taps = 0, seen[HK_CU_PLANES_TAPS] = {0};
  for (int i = 0; i < p->phases; ++i) {
    CHECK(p->lag[i] > p->lag[i + 1] || (i + 1 == p->phases && p->lag[i] == 0), "%s: lag %d", text, p->lag[i]);
    for (int j = 0; j < p->taps[i]; ++j, ++taps) {
      check_run(g, p, i, &p->tap[taps], text);
      ++seen[p->tap[taps].index];
    }
  }
  for (int i = 0; i < g->taps; ++i) CHECK(seen[i] == 1, "%s: tap %d", text, i);
  CHECK(taps == g->taps && p->lag[p->phases] == 0 && p->lag[0] <= p->lost, "%s: %d taps", text, taps);
}

static void planes(void) {
  static const struct {
    const char *problem;
    int wraps, whole;
  } cases[] = {
      {"2d_n1_c64_i6x8_k8_w3_p1_bf16_first", HK_CU_WRAP_COLUMNS, 1},
      {"2d_n1_c64_i6x8_k8_w3_p1x2:0_bf16_first", HK_CU_WRAP_COLUMNS, 1}, /* padding before the rows alone */
      {"2d_n1_c64_i6x8_k8_w3_p1x0:2_bf16_first", HK_CU_WRAP_COLUMNS, 1},
      {"3d_n1_c64_i4x5x8_k8_w3_p1x2:0x1_bf16_first", HK_CU_WRAP_COLUMNS | HK_CU_WRAP_ROWS, 1},
      {"2d_n1_c64_i6x8_k8_w3_p0_bf16_first", 0, 0},
      {"2d_n1_c64_i6x8_k8_w1_bf16_first", 0, 1},
      {"2d_n2_c64_i9x8_k8_w3x2_p4:2x0:1_d2x3_bf16_first", HK_CU_WRAP_COLUMNS, 0},
      {"2d_n2_c64_i9x8_k8_w3_p1x9_d1x9_f16_first", HK_CU_WRAP_COLUMNS, 1},
      {"2d_n1_c64_i10x12_k8_w3_p-1:1x-2:3_f16_first", HK_CU_WRAP_COLUMNS, 0},
      {"1d_n2_c64_i40_k8_w3_p20_f16_first", 0, 0},
      {"1d_n2_c64_i40_k8_w5_p2_f16_first", 0, 1},
      {"3d_n1_c64_i4x3x8_k8_w3_p1_bf16_first", HK_CU_WRAP_COLUMNS | HK_CU_WRAP_ROWS, 1},
      {"3d_n1_c64_i4x5x8_k8_w2x3x2_p3:0x0:1x0_d1x2x3_bf16_first", HK_CU_WRAP_ROWS, 0},
  };
  static const struct {
    const char *problem, *word;
  } refused[] = {
      {"2d_n1_c64_i7x7_k8_w3_p1_bf16_first", "multiples of 16"},
      {"2d_n1_c64_i8x8_k8_w3_p1_bf16_last", "contiguous"},
      {"2d_n1_c64_i8x8_k8_w3_p1_s2_bf16_first", "stride"},
      {"2d_n1_c64_i8x8_k8_w3_p2_bf16_first", "longer rows"},
      {"2d_n1_c64_i8x8_k8_w3_p1_f32_first", "bf16 or both f16"},
      {"2d_n1_c64_i8x8_k8_w3_p1_bf16:bf16:f32_first", "stores bf16"},
  };
  const hk_epi none = {.any = false};
  char why[HK_CU_REASON];
  hk_geom g;
  hk_cu_planes p;
  for (int i = 0; i < HK_COUNT(cases); ++i) {
    g = parse(cases[i].problem);
    const bool ok = hk_cu_planes_make(&g, &none, false, &p, why);
    CHECK(ok, "%s: %s", cases[i].problem, why);
    if (!ok) continue;
    CHECK(p.wraps == cases[i].wraps && p.whole == cases[i].whole, "%s: wraps %d, whole %d", cases[i].problem, p.wraps,
          p.whole);
    check_phases(&g, &p, cases[i].problem);
  }
  for (int i = 0; i < HK_COUNT(refused); ++i) {
    g = parse(refused[i].problem);
    CHECK(!hk_cu_planes_make(&g, &none, false, &p, why) && strstr(why, refused[i].word), "%s: %s", refused[i].problem,
          why);
  }
}

/* Rows of pixels with gaps between them: what lies at a tap's distance from an output's place, nothing in a gap and
 * outside of the image, must be what the definition reads. */
static void check_gaps(const hk_geom *g, const hk_cu_halo *h, const char *text) {
  for (int i = 0; i < g->taps; ++i)
    for (int64_t m = 0; m < g->pixels; ++m) {
      const int64_t at[3] = {0, i / g->win[2], i % g->win[2]}, q = m / g->out[2] * h->p.width + m % g->out[2];
      const int64_t v = q - h->before + h->p.tap[i].start, row = v / h->p.width, w = v % h->p.width;
      const int64_t got = v < 0 || w >= h->wide || row * h->wide + w >= h->plane ? -1 : row * h->wide + w;
      CHECK(q < h->p.flat && h->p.tap[i].start >= 0 && got == wanted(g, m, at), "%s: pixel %lld tap %d: %lld, not %lld",
            text, (long long)m, i, (long long)got, (long long)wanted(g, m, at));
    }
}

static void halo(void) {
  static const struct {
    const char *problem;
    int apart, unit;
  } cases[] = {
      {"2d_n2_c64_i8x8_k8_w3_p1_bf16_first", 1, 4},       {"2d_n2_c64_i14x14_k8_w3_p1_bf16_first", 2, 4},
      {"2d_n2_c64_i6x7_k8_w3_p1_f16_first", 4, 2},        {"2d_n2_c64_i7x7_k8_w3_p1_f16_first", 8, 1},
      {"2d_n1_c64_i8x9_k8_w3_p0_bf16_first", 1, 2},       {"2d_n2_c64_i9x8_k8_w3x2_p4:2x0:1_d2x3_bf16_first", 1, 2},
      {"2d_n2_c64_i9x8_k8_w3_p1x9_d1x9_f16_first", 1, 4}, {"2d_n1_c64_i10x12_k8_w3_p-1:1x-2:3_f16_first", 1, 4},
      {"1d_n2_c64_i40_k8_w3_p20_f16_first", 1, 2},        {"2d_n1_c64_i6x8_k8_w2_p3:1x0:4_bf16_first", 1, 1},
  };
  static const struct {
    const char *problem, *word;
  } refused[] = {
      {"2d_n1_c64_i8x8_k8_w3_p1_bf16_last", "contiguous"},
      {"2d_n2_c9_i7x7_k8_w3_p1_bf16_first", "multiples of 16"},
      {"2d_n1_c64_i8x8_k8_w3_p1_s2_bf16_first", "stride"},
      {"2d_n1_c64_i8x8_k8_w1_bf16_first", "taps"},
      {"3d_n1_c64_i4x8x8_k8_w3_p1_bf16_first", "dimensions"},
      {"2d_n1_c64_i8x8_k8_w3_p1_bf16:bf16:f32_first", "stores bf16"},
      {"2d_n1_c64_i8x8_k8_w3_p1_f32_first", "bf16 or both f16"},
  };
  const hk_epi none = {.any = false};
  char why[HK_CU_REASON];
  hk_geom g;
  hk_cu_halo h;
  for (int i = 0; i < HK_COUNT(cases); ++i) {
    g = parse(cases[i].problem);
    const bool ok = hk_cu_halo_make(&g, &none, &h, why);
    CHECK(ok, "%s: %s", cases[i].problem, why);
    if (!ok) continue;
    CHECK(h.apart == cases[i].apart && h.unit == cases[i].unit, "%s: apart %d, unit %d", cases[i].problem, h.apart,
          h.unit);
    check_gaps(&g, &h, cases[i].problem);
  }
  for (int i = 0; i < HK_COUNT(refused); ++i) {
    g = parse(refused[i].problem);
    CHECK(!hk_cu_halo_make(&g, &none, &h, why) && strstr(why, refused[i].word), "%s: %s", refused[i].problem, why);
  }
}

/* The tile that the estimate likes best, and how long it takes, as it was measured on an H200; blocks too large for any
 * tile are refused. */
static void halo_seconds(void) {
  static const struct {
    const char *problem;
    int bm, bn;
    double least, most;
  } cases[] = {
      {"2d_n64_c128_i28_k128_w3_p1_bf16_first", 128, 208, 27e-6, 32e-6},
      {"2d_n64_c256_i14_k256_w3_p1_bf16_first", 128, 216, 24e-6, 29e-6},
      {"2d_n64_c64_i56_k64_w3_p1_f16_first", 64, 0, 34e-6, 44e-6},
      {"2d_n4_c640_i32_k640_w3_p1_bf16_first", 128, 208, 48e-6, 57e-6},
      {"2d_n1_c256_i256_k256_w3_p1_bf16_first", 0, 0, 0, 0},
  };
  const hk_epi none = {.any = false};
  char why[HK_CU_REASON];
  hk_geom g;
  hk_cu_halo h;
  for (int i = 0; i < HK_COUNT(cases); ++i) {
    const hk_cu_planes_row *best = NULL;
    double least = 1;
    g = parse(cases[i].problem);
    CHECK(hk_cu_halo_make(&g, &none, &h, why), "%s", why);
    for (int j = 0; j < hk_cu_halo_row_count; ++j) {
      const hk_cu_planes_row *r = &hk_cu_halo_rows[j];
      if (!hk_cu_halo_fit(r, &g, &h, why)) continue;
      CHECK(HK_HALO_SMEM(r->bm, r->bn, r->nc, h.stages, h.slots, h.apart, h.rows, h.hold) <= HK_IGEMM_SMEM_MAX &&
                h.rows < h.hold && h.p.lost < r->bn,
            "%s", r->name);
      const double s = hk_cu_halo_seconds(r, &g, &none, &h, 132);
      if (s < least) best = r, least = s;
    }
    CHECK(best ? best->bm == cases[i].bm && (best->bn == cases[i].bn || !cases[i].bn) && least >= cases[i].least &&
                     least <= cases[i].most
               : !cases[i].bm,
          "%s: %s, %.1f us", cases[i].problem, best ? best->name : "none", least * 1e6);
  }
}

static void divisors(void) {
  static const int64_t n[] = {
      0, 1, 2, 3, 62, 63, 64, 65, 12543, 12544, 99999, (1 << 24) - 1, 1 << 24, INT32_MAX - 1, INT32_MAX};
  for (int64_t d = 1; d < INT32_MAX; d += d < 300 ? 1 : d / 7)
    for (int i = 0; i < HK_COUNT(n); ++i) {
      const hk_cu_divisor by = hk_cu_divisor_make(d);
      const uint32_t got = ((uint32_t)((uint64_t)n[i] * by.mul >> 32) + (uint32_t)n[i]) >> by.shift;
      CHECK(got == n[i] / d, "%lld / %lld is not %u", (long long)n[i], (long long)d, got);
    }
}

/* The estimates of pointwise and wider windows, as they were measured: x read where it lies for the first, a pass
 * before the second. */
static void planes_seconds(void) {
  const hk_epi none = {.any = false};
  char why[HK_CU_REASON];
  hk_geom g;
  hk_cu_planes p;
  static const struct {
    const char *problem;
    double least, most;
  } cases[] = {
      {"2d_n64_c64_i56_k64_w1_bf16_first", 16e-6, 22e-6},
      {"2d_n64_c64_i56_k256_w1_bf16_first", 36e-6, 48e-6},
      {"2d_n64_c128_i28_k128_w3_p1_bf16_first", 36e-6, 52e-6},
      {"2d_n1_c256_i256_k256_w3_p1_bf16_first", 140e-6, 190e-6},
      {"2d_n32_c256_i112_k256_w3_p1_bf16_first", 780e-6, 980e-6},
  };
  for (int i = 0; i < HK_COUNT(cases); ++i) {
    double best = 1;
    g = parse(cases[i].problem);
    CHECK(hk_cu_planes_make(&g, &none, false, &p, why), "%s", why);
    for (int j = 0; j < hk_cu_planes_row_count; ++j) {
      const double s = hk_cu_planes_seconds(&hk_cu_planes_rows[j], &g, &none, &p, 132);
      if (s < best) best = s;
    }
    CHECK(best >= cases[i].least && best <= cases[i].most, "%s: %.1f us", cases[i].problem, best * 1e6);
  }
}

/* Every row must be reachable by its knobs alone, and its estimate must fall when the work does. */
static void rows(void) {
  const hk_geom big = make((hk_conv_desc){.rank = 2, .n = 8, .c = 256, .k = 640, .in = {56, 56}, .window = {3, 3}});
  const hk_geom small = make((hk_conv_desc){.rank = 2, .n = 1, .c = 256, .k = 640, .in = {28, 28}, .window = {3, 3}});
  const hk_epi none = {.any = false};
  for (int i = 0; i < hk_cu_row_count; ++i) {
    const hk_cu_row *a = &hk_cu_rows[i];
    CHECK(hk_cu_row_shared(a) <= 232448, "%s: %d bytes of shared memory", a->name, hk_cu_row_shared(a));
    CHECK(hk_cu_row_seconds(a, &small, &none, 132) < hk_cu_row_seconds(a, &big, &none, 132), "%s", a->name);
    for (int j = 0; j < i; ++j) {
      const hk_cu_row *b = &hk_cu_rows[j];
      CHECK(a->type != b->type || hk_cu_row_bm(a) != hk_cu_row_bm(b) || a->bn != b->bn || a->stages != b->stages ||
                a->cm != b->cm || a->cn != b->cn || a->split != b->split || a->parts != b->parts ||
                (a->wgs < a->nc) != (b->wgs < b->nc),
            "%s and %s have the same knobs", a->name, b->name);
    }
  }
}

/* The text that a user function is compiled in: every row has one, with the tile and the function in it. */
static void sources(void) {
  const hk_epilogue e = {.size = sizeof e,
                         .act = HK_ACT_USER,
                         .cuda_user = "float hk_user(hk_at at, float v, const void *user) { return v * at.k; }"};
  for (int i = 0; i < hk_cu_row_count; ++i) {
    char *source = hk_cu_user_source(hk_cu_rows[i].name, &e), tile[64];
    snprintf(tile, sizeof tile, "{%d, %d, %d, %d, ", hk_cu_rows[i].mi, hk_cu_rows[i].nc, hk_cu_rows[i].bn,
             hk_cu_rows[i].stages);
    CHECK(source && strstr(source, "HK_DEV float hk_user(") && strstr(source, "#define HK_USER 1") &&
              strstr(source, tile) && !strstr(source, "HK_USER2"),
          "%s", hk_cu_rows[i].name);
    hk_free(source);
  }
  char *pass = hk_cu_user_source(NULL, &e);
  CHECK(pass && strstr(pass, "HK_DEV float hk_user(") && strstr(pass, "staged.cuh") && !strstr(pass, "igemm_body"),
        "the pass over sums");
  hk_free(pass);
}

/* HANKEL_CUDA_DEVICE is a number, or refused by name; it was read by atoi, which takes a word for 0. */
static void device_numbers(void) {
  static const struct {
    const char *text;
    int number;
  } good[] = {{"", 0}, {"0", 0}, {"3", 3}};
  static const char *const bad[] = {"abc", "1x", "-1", " 1", "0x1", "99999999999999999999"};
  int number = -1;
  for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
    setenv("HANKEL_CUDA_DEVICE", good[i].text, 1);
    CHECK(!hk_cu_device_wanted(&number) && number == good[i].number, "\"%s\" is %d", good[i].text, number);
  }
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
    setenv("HANKEL_CUDA_DEVICE", bad[i], 1);
    CHECK_STATUS(HK_DEVICE, "HANKEL_CUDA_DEVICE", hk_cu_device_wanted(&number));
  }
  unsetenv("HANKEL_CUDA_DEVICE");
}

/* Gathering x orders the reduction otherwise than transposing it: which of both may not depend on the batch. */
static void gathered_for_any_batch(void) {
  hk_problem problem;
  hk_geom g;
  CHECK(!hk_problem_parse(&problem, "3d_n1_c11_i1x1x7_k15_w2x1x1_s1x1x2_p1:0x3:1x1:3_d1x1x3_f32_first"), "%s",
        hk_last_error());
  CHECK(!hk_geom_make(&g, &problem, false), "%s", hk_last_error());
  const bool one = hk_cu_gather_takes(&g);
  problem.n = 9;
  CHECK(!hk_geom_make(&g, &problem, false), "%s", hk_last_error());
  CHECK(hk_cu_gather_takes(&g) == one, "the batch decides whether x is gathered");
}

int main(void) {
  device_numbers();
  gathered_for_any_batch();
  walks();
  sources();
  cropped();
  refusals();
  folded();
  joined();
  finishes();
  gathered();
  planes();
  planes_seconds();
  halo();
  halo_seconds();
  divisors();
  rows();
  return hk_test_end();
}
