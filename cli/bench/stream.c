/* `hankel bench --stream`: convolutions of 1 to 32 channels with every divisor as groups, 1 and 3 taps, block by block.
 * Each is timed inside a chain of LAYERS alike, as in a network, and one of them is what is printed: nanoseconds,
 * GFLOP/s and per cent of the peak measured in the same run. The fastest of many blocks counts. */
#include <stdlib.h>
#include <string.h>

#include "bench/bench.h"

enum { LAYERS = 16, WIDEST = 32, BLOCKS = 400 };

static hk_status measure(int64_t c, int64_t groups, int64_t window, int64_t block, hk_isa isa, double *seconds) {
  static float f[WIDEST * WIDEST * 3], bias[WIDEST];
  hk_step steps[LAYERS];
  memset(steps, 0, sizeof steps);
  for (int i = 0; i < LAYERS; i++) {
    steps[i] = (hk_step){.size = sizeof steps[i],
                         .kind = HK_STEP_CONV,
                         .x = i + 1,
                         .k = c,
                         .window = window,
                         .dilation = 16,
                         .groups = groups,
                         .f = f,
                         .bias = bias};
  }
  for (int64_t i = 0; i < c * c / groups * window; i++) f[i] = (float)(i % 5 - 2) / (float)(2 * c / groups * window);
  const hk_chain_desc d = {
      .size = sizeof d, .channels = c, .max_block = block, .steps = steps, .count = LAYERS, .isa = isa};
  float *x = calloc((size_t)(c * block), sizeof *x), *y = calloc((size_t)(c * block), sizeof *y);
  hk_chain *chain = NULL;
  hk_stream *stream = NULL;
  hk_status e = x && y ? hk_chain_create(&chain, &d, NULL, 0) : HK_NO_MEMORY;
  if (!e) e = hk_stream_create(&stream, chain, NULL, 0);
  for (int64_t i = 0; !e && i < c * block; i++) x[i] = (float)(i % 17 - 8);
  *seconds = 1e9;
  for (int i = 0; !e && i < BLOCKS; i++) {
    const double start = cli_now();
    e = hk_stream_process(stream, x, block, y, NULL);
    const double took = (cli_now() - start) / LAYERS;
    if (took < *seconds) *seconds = took;
  }
  hk_stream_destroy(stream);
  hk_chain_destroy(chain);
  free(x);
  free(y);
  return e;
}

typedef struct row {
  int64_t c, groups, window;
  double seconds, rate, percent; /* percent: of the peak */
} row;

static void print_row(cli_table *t, bool csv, const row *r) {
  if (csv) {
    printf("%lld,%lld,%lld,%.1f,%.2f,%.1f\n", (long long)r->c, (long long)r->groups, (long long)r->window,
           1e9 * r->seconds, 1e-9 * r->rate, r->percent);
    return;
  }
  cli_table_add(t, 0, cli_text("%lld", (long long)r->c));
  cli_table_add(t, 1, cli_text("%lld", (long long)r->groups));
  cli_table_add(t, 2, cli_text("%lld", (long long)r->window));
  cli_table_add(t, 3, cli_text("%.0f", 1e9 * r->seconds));
  cli_table_add(t, 4, cli_text("%.1f", 1e-9 * r->rate));
  cli_table_add(t, 5, cli_text("%.0f", r->percent));
}

int bench_stream(int64_t block, hk_isa isa, bool csv) {
  hk_machine m = {.size = sizeof m};
  const char *head[6] = {"channels", "groups", "taps", "ns", "GFLOP/s", "% of peak"};
  cli_table t = {.columns = 6};
  double peak = 0;
  hk_status e = hk_machine_info(&m);
  for (int i = 0; i < 10; i++) {
    const double now = hk_measure_peak(isa, HK_F32);
    if (now > peak) peak = now;
  }
  if (csv) printf("channels,groups,taps,ns,gflops,percent\n");
  for (int i = 0; !csv && i < 6; i++) cli_table_add(&t, i, cli_text("%s", head[i]));
  for (int64_t window = 1; window <= 3 && !e; window += 2) {
    for (int64_t c = 1; c <= WIDEST && !e; c++) {
      for (int64_t g = 1; g <= c && !e; g++) {
        double seconds;
        if (c % g) continue;
        e = measure(c, g, window, block, isa, &seconds);
        const double rate = 2.0 * (double)(block * c * (c / g) * window) / seconds;
        if (!e) print_row(&t, csv, &(row){c, g, window, seconds, rate, 100 * rate / peak});
      }
    }
  }
  if (!e && !csv) {
    printf("%s, blocks of %lld frames, a convolution with bias inside a chain of %d, peak %.1f GFLOP/s\n", m.cpu,
           (long long)block, LAYERS, 1e-9 * peak);
    cli_table_print(&t, stdout);
  }
  cli_table_free(&t);
  return e ? cli_refused(e, "bench --stream") : CLI_OK;
}
