/* `hankel bench --stream --batch FILE`: streams of one convolution over interleaved frames, a call per block, as
 * listed in FILE: channels, groups, taps, dilation, bias (0 or 1) per line, # begins a comment. Prints the median of
 * ROUNDS rounds of at least 20 us. Refuses lines that are not five such numbers. */
#include <stdlib.h>
#include <string.h>

#include "bench/bench.h"

enum { ROUNDS = 9, MOST = 1024 }; /* channels, taps, dilation */

typedef struct shape {
  long channels, groups, taps, dilation, bias;
} shape;

static int by_value(const void *a, const void *b) {
  const double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

/* Seconds per call. */
static hk_status calls(hk_stream *stream, const float *x, int64_t block, float *y, double *seconds) {
  double round[ROUNDS];
  int64_t count = 1;
  hk_status e = HK_OK;
  for (int r = -1; r < ROUNDS && !e; r++) {
    double took;
    for (;;) {
      const double start = cli_tick();
      for (int64_t i = 0; i < count && !e; i++) e = hk_stream_process(stream, x, block, y, NULL);
      took = cli_tick() - start;
      if (r >= 0 || took > 20e-6 || e) break;
      count *= 2;
    }
    if (r >= 0) round[r] = took / (double)count;
  }
  qsort(round, ROUNDS, sizeof *round, by_value);
  *seconds = round[ROUNDS / 2];
  return e;
}

static hk_status measure(const shape *q, int64_t block, hk_isa isa, double *seconds) {
  const size_t weights = (size_t)(q->channels * (q->channels / q->groups) * q->taps);
  const size_t frames = (size_t)(q->channels * block), lines = (frames + 15) / 16 * 64;
  float *f = calloc(weights + (size_t)q->channels, sizeof *f);
  float *x = aligned_alloc(64, lines), *y = aligned_alloc(64, lines);
  hk_chain *chain = NULL;
  hk_stream *stream = NULL;
  hk_status e = f && x && y ? HK_OK : HK_NO_MEMORY;
  for (size_t i = 0; !e && i < weights; i++) f[i] = (float)((int)(i % 5) - 2);
  for (size_t i = 0; !e && i < frames; i++) x[i] = (float)((int)(i % 17) - 8);
  const hk_step step = {.size = sizeof step,
                        .kind = HK_STEP_CONV,
                        .x = 1,
                        .k = q->channels,
                        .window = q->taps,
                        .dilation = q->dilation,
                        .groups = q->groups,
                        .f = f,
                        .bias = q->bias && f ? f + weights : NULL};
  const hk_chain_desc d = {.size = sizeof d,
                           .channels = q->channels,
                           .max_block = block,
                           .layout = HK_CHANNELS_LAST,
                           .steps = &step,
                           .count = 1,
                           .isa = isa};
  if (!e) e = hk_chain_create(&chain, &d, NULL, 0);
  if (!e) e = hk_stream_create(&stream, chain, NULL, 0);
  if (!e) e = calls(stream, x, block, y, seconds);
  hk_stream_destroy(stream);
  hk_chain_destroy(chain);
  free(f);
  free(x);
  free(y);
  return e;
}

static bool shape_read(shape *q, const char *line) {
  char more;
  return sscanf(line, "%ld %ld %ld %ld %ld %c", &q->channels, &q->groups, &q->taps, &q->dilation, &q->bias, &more) ==
             5 &&
         q->channels >= 1 && q->channels <= MOST && q->groups >= 1 && q->channels % q->groups == 0 && q->taps >= 1 &&
         q->taps <= MOST && q->dilation >= 1 && q->dilation <= MOST && (q->bias == 0 || q->bias == 1);
}

int bench_stream_list(const char *path, int64_t block, hk_isa isa) {
  FILE *file = fopen(path, "r");
  if (!file) {
    cli_error("cannot open %s", path);
    return CLI_USAGE;
  }
  char line[256];
  int code = CLI_OK;
  printf("channels,groups,taps,dilation,bias,ns,gflops\n");
  for (int n = 1; !code && fgets(line, sizeof line, file); n++) {
    shape q;
    double seconds = 0;
    if (*line == '#' || *line == '\n') continue;
    if (!shape_read(&q, line)) {
      cli_error("%s, line %d: not channels, groups, taps, dilation (1 to %d) and bias (0 or 1), groups a divisor", path,
                n, MOST);
      code = CLI_USAGE;
      break;
    }
    const hk_status e = measure(&q, block, isa, &seconds);
    if (e) code = cli_refused(e, "bench --stream");
    else
      printf("%ld,%ld,%ld,%ld,%ld,%.1f,%.1f\n", q.channels, q.groups, q.taps, q.dilation, q.bias, 1e9 * seconds,
             2e-9 * (double)(block * q.channels * (q.channels / q.groups) * q.taps) / seconds);
  }
  fclose(file);
  return code;
}
