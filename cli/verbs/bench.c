/* `hankel bench`: times problems, warm (the same operands repeatedly) or cold (caches flushed before each call), in
 * rounds that alternate between hankel and its peers, so that a slow moment of the machine affects all; each is warmed
 * up by its own calls before it is timed. The peak that percentages refer to is measured in the same run. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "bench/bench.h"

static struct {
  const char *batch, *layout, *types, *name, *html;
  cli_texts peers;
  int64_t rounds;
  double seconds;
  int64_t block;
  bool deconv, csv, json, cold, late, stream;
} o = {.rounds = 0, .seconds = 0.3, .block = 64};

static const cli_option table[] = {
    {"batch", CLI_TEXT, &o.batch, "FILE", "problems, one per line, or a .tsv of shapes"},
    {"layout", CLI_TEXT, &o.layout, "WORD", "of a .tsv: last (default) or first"},
    {"types", CLI_TEXT, &o.types, "LIST", "of a .tsv: e.g. f32,bf16 (default f32); column: its last column"},
    {"only", CLI_TEXT, &o.name, "TEXT", "of a batch: problems whose name holds TEXT"},
    {"deconv", CLI_FLAG, &o.deconv, NULL, "the problems are benchdnn text of deconvolutions"},
    {"peer", CLI_LIST, &o.peers, "NAME[,NAME..]", "time these libraries too"},
    {"cold", CLI_FLAG, &o.cold, NULL, "empty the caches before each call"},
    {"late-weights", CLI_FLAG, &o.late, NULL, "weights come at execute"},
    {"own-time", CLI_FLAG, &cli_own_time, NULL, "the thread's own time, not the wall's: one thread on a busy machine"},
    {"seconds", CLI_REAL, &o.seconds, "S", "time spent on a problem, all together (default 0.3)"},
    {"rounds", CLI_INTEGER, &o.rounds, "N", "rounds (default: as many as fit, 7 to 200)"},
    {"stream", CLI_FLAG, &o.stream, NULL,
     "in place of problems: streams of 1 to 32 channels, every group, 1 and 3 taps; with --batch the convolutions of a "
     "list (bench/shapes/stream.tsv), one per stream, interleaved, as CSV"},
    {"block", CLI_INTEGER, &o.block, "N", "of --stream: frames in a block, 1 to 65536 (default 64)"},
    {"csv", CLI_FLAG, &o.csv, NULL, "print CSV"},
    {"json", CLI_FLAG, &o.json, NULL, "print JSON in google-benchmark's shape"},
    {"html", CLI_TEXT, &o.html, "FILE", "write a page with the roofline, the peers and the table"},
    {0}};

/* ---- one contender */
typedef struct contender {
  hk_plan *plan; /* NULL: a peer */
  cli_site site;
  const hk_peer *peer;
  void *state;
  int calls; /* in one sample */
  double sample[BENCH_ROUNDS];
} contender;

static bool call(const contender *c) {
  if (!c->plan) {
    c->peer->run(c->state);
    return true;
  }
  return hk_plan_execute(c->plan, &c->site.args[0]) == HK_OK;
}

/* Writes and reads twice the last-level cache, which evicts its contents. */
static void caches_empty(void) {
  static char *junk;
  static size_t bytes;
  if (!junk) {
    hk_machine m = {.size = sizeof m};
    bytes = hk_machine_info(&m) || m.l3_bytes <= 0 ? 64u << 20 : 2 * (size_t)m.l3_bytes;
    if (bytes > 512u << 20) bytes = 512u << 20;
    junk = malloc(bytes);
    if (!junk) return;
  }
  for (size_t i = 0; i < bytes; i += 64) junk[i]++;
}

/* One call, and more until 2 ms have passed: after a peer that streamed many megabytes the last-level cache takes
 * several calls to hold these operands again. */
static void warm(const contender *c) {
  const double start = cli_tick();
  do call(c);
  while (cli_tick() - start < 2e-3);
}

static double sample(const contender *c) {
  if (c->site.device == HK_CUDA) return cli_site_time(&c->site, c->plan, c->calls);
  if (o.cold) caches_empty();
  else warm(c);
  double start = cli_tick();
  for (int i = 0; i < c->calls; i++) call(c);
  return (cli_tick() - start) / c->calls;
}

/* Returns enough calls that the clock's overhead is under a percent, and no more. */
static bool calibrate(contender *c) {
  c->calls = 1;
  if (c->site.device == HK_CUDA) { /* a graph of launches: half a millisecond, at most 200 */
    const double once = cli_site_time(&c->site, c->plan, 1);
    c->calls = once > 0 && once < 1e-3 ? (int)(1e-3 / once) + 1 : 1;
    if (c->calls > 200) c->calls = 200;
    if (c->calls < c->site.sets && once < 5e-3) c->calls = c->site.sets;
    return isfinite(once);
  }
  if (!call(c)) return false;
  /* Timed together from the start: a small call alone would measure the clock's overhead. Three times, in case one is
   * disturbed. */
  for (int again = 0; !o.cold && again < 3; again++) {
    for (; c->calls < 1 << 20; c->calls *= 2) {
      const double start = cli_tick();
      for (int i = 0; i < c->calls; i++) call(c);
      if (cli_tick() - start >= 50e-6) break;
    }
  }
  return true;
}

static int rounds_for(const contender *c, int count) {
  double once = 0;
  for (int i = 0; i < count; i++) once += sample(&c[i]) * c[i].calls;
  int rounds = o.rounds ? (int)o.rounds : (int)(o.seconds / (once > 1e-9 ? once : 1e-9));
  int least = o.rounds ? 1 : 7;
  return rounds < least ? least : rounds > BENCH_ROUNDS ? BENCH_ROUNDS : rounds;
}

static void rounds_run(contender *c, int count, bench_row *row) {
  row->rounds = rounds_for(c, count);
  for (int r = 0; r < row->rounds; r++)
    for (int i = 0; i < count; i++) c[(i + r) % count].sample[r] = sample(&c[(i + r) % count]);
}

/* ---- one problem */
static const char *layout_of(const hk_problem *p) {
  static const char *const names[] = {"first", "last"};
  for (int i = 0; i < 2; i++) {
    hk_problem d = *p;
    if (!hk_problem_dense(&d, (hk_layout)i) && !memcmp(&d.x, &p->x, sizeof d.x) && !memcmp(&d.f, &p->f, sizeof d.f))
      return names[i];
  }
  return "strided";
}

static int threads_of(const hk_options *options, const hk_plan *plan) {
  const char *name;
  double value;
  for (int i = 0; !hk_plan_symbol(plan, i, &name, &value); i++)
    if (!strcmp(name, "threads")) return (int)value;
  return options->threads > 0 ? options->threads : 1;
}

/* On the CPU it is measured again every few seconds, because clock rates vary; a GPU's follows from its clocks and
 * units. */
static double peak_now(const hk_problem *p, const hk_options *options) {
  if (options->device == HK_CUDA) return cli_gpu_peak(p, options->math);
  static double peak[8], when[8];
  hk_type t = p->x_type;
  if (peak[t] == 0 || cli_now() - when[t] > 5) {
    double v = hk_measure_peak(HK_ISA_BEST, t);
    for (int isa = HK_ISA_AVX2; v <= 0 && isa >= HK_ISA_SCALAR; isa--) v = hk_measure_peak((hk_isa)isa, t);
    peak[t] = v;
    when[t] = cli_now();
  }
  return peak[t];
}

static int peers_make(contender *c, const bench_sheet *s, const cli_item *item, const hk_epilogue *e,
                      const cli_operands *memory, bench_row *row, int which[]) {
  int count = 1;
  for (int i = 0; i < s->peers; i++) {
    hk_peer_job job = {.size = sizeof job,
                       .problem = &item->problem,
                       .epilogue = e,
                       .threads = row->threads,
                       .x = memory->x,
                       .f = memory->f,
                       .c = memory->c,
                       .scale = memory->scale,
                       .bias = memory->bias,
                       .y = memory->y};
    c[count] = (contender){.peer = s->peer[i], .state = s->peer[i]->make(&job, row->refusal[i])};
    if (!c[count].state) {
      cli_note("%s: %s: %s", *row->name ? row->name : row->problem, s->peer[i]->name, row->refusal[i]);
      continue;
    }
    which[count] = i;
    count += calibrate(&c[count]);
  }
  return count;
}

static int problem_time(bench_row *row, const bench_sheet *s, const cli_item *item, const hk_epilogue *e,
                        const hk_options *options, cli_operands *memory) {
  static contender c[1 + BENCH_PEERS];
  int which[1 + BENCH_PEERS] = {0};
  hk_weights w = cli_operands_weights(memory);
  if (o.late) w.f = w.scale = w.bias = NULL;
  hk_plan *plan = NULL;
  hk_status status = hk_plan_create(&plan, &item->problem, e, options, &w);
  if (!status) status = cli_operands_workspace(memory, plan);
  c[0] = (contender){.plan = plan};
  if (!status) {
    const hk_args args = cli_operands_args(memory, plan);
    row->decision = cli_decision_text(plan);
    row->threads = options->device == HK_CUDA ? 1 : threads_of(options, plan);
    status = cli_site_make(&c[0].site, options->device, 0, &item->problem, e, &args);
    if (!status && !calibrate(&c[0])) status = HK_INVALID;
  }
  int code = status ? cli_refused(status, row->problem) : CLI_OK, count = 1;
  if (!code) {
    count = peers_make(c, s, item, e, memory, row, which);
    rounds_run(c, count, row);
    row->ours = cli_spread_of(c[0].sample, row->rounds);
    for (int i = 1; i < count; i++) row->peer[which[i]] = cli_spread_of(c[i].sample, row->rounds);
    row->peak = peak_now(&item->problem, options) * row->threads;
  }
  for (int i = 1; i < count; i++) c[i].peer->destroy(c[i].state);
  cli_site_free(&c[0].site);
  hk_plan_destroy(plan);
  return code;
}

static int problem_bench(bench_row *row, const bench_sheet *s, cli_item *item, const hk_epilogue *e,
                         hk_options options) {
  cli_operands memory;
  *row = (bench_row){.name = strdup(item->name), .problem = cli_problem_text(&item->problem)};
  row->layout = strdup(layout_of(&item->problem));
  if (!strcmp(item->types, "tf32")) options.math |= HK_MATH_TF32;
  if (e->gate)
    hk_problem_dense_y(&item->problem, strcmp(row->layout, "first") ? HK_CHANNELS_LAST : HK_CHANNELS_FIRST,
                       item->problem.k / 2);
  hk_status status = hk_problem_work(&item->problem, &row->flops, &row->bytes);
  if (!status) status = cli_operands_make(&memory, &item->problem, e, 1);
  if (status) return cli_refused(status, row->problem ? row->problem : "?");
  int code = problem_time(row, s, item, e, &options, &memory);
  cli_operands_free(&memory);
  return code;
}

static void row_free(bench_row *r) {
  free(r->name);
  free(r->problem);
  free(r->layout);
  free(r->decision);
}

static double mean_log(const bench_sheet *s, const bench_row *rows, int count, int *used) {
  double sum = 0;
  *used = 0;
  for (int i = 0; i < count; i++) {
    int best = bench_best_peer(s, &rows[i]);
    if (best < 0 || rows[i].ours.median <= 0) continue;
    sum += __builtin_log(rows[i].peer[best].median / rows[i].ours.median);
    ++*used;
  }
  return *used ? sum / *used : 0;
}

static int items_bench(bench_sheet *s, cli_items *items, const hk_epilogue *e, const hk_options *options) {
  bench_row *rows = calloc((size_t)items->count, sizeof *rows);
  cli_table t = {0};
  int code = CLI_OK, done = 0;
  if (!rows) return CLI_FAILED;
  if (o.csv) bench_csv_head(s);
  else bench_table_head(s, &t);
  for (int64_t i = 0; i < items->count; i++) {
    if (o.name && !strstr(items->at[i].name, o.name)) continue;
    cli_progress(i, items->count, items->at[i].name);
    int one = problem_bench(&rows[done], s, &items->at[i], e, *options);
    if (one) {
      row_free(&rows[done]);
      if (code == CLI_OK) code = one;
      continue;
    }
    if (o.csv) {
      cli_progress_end();
      bench_csv_row(s, &rows[done]);
    } else bench_table_row(s, &rows[done], &t);
    done++;
  }
  cli_progress_end();
  if (o.json) bench_json(s, rows, done);
  else if (!o.csv) cli_table_print(&t, s->file);
  if (o.html && done) {
    const int wrote = bench_html(s, rows, done, o.html);
    if (!code) code = wrote;
  }
  int used;
  double log_ratio = mean_log(s, rows, done, &used);
  if (used) cli_note("best peer's time over ours, geometric mean of %d: %.3f", used, __builtin_exp(log_ratio));
  for (int i = 0; i < done; i++) row_free(&rows[i]);
  free(rows);
  cli_table_free(&t);
  return code;
}

/* Names of one --peer, commas between them. */
static int peers_open_list(bench_sheet *s, const char *names) {
  while (*names) {
    char name[1024];
    const int length = (int)strcspn(names, ",");
    if (s->peers == BENCH_PEERS) {
      cli_error("at most %d peers", BENCH_PEERS);
      return CLI_USAGE;
    }
    snprintf(name, sizeof name, "%.*s", length, names);
    const hk_peer *peer = bench_peer_open(name);
    if (!peer) return CLI_UNSUPPORTED;
    s->peer[s->peers++] = peer;
    names += length + (names[length] == ',');
  }
  return CLI_OK;
}

static int peers_open(bench_sheet *s) {
  int code = CLI_OK;
  for (int i = 0; i < o.peers.count && !code; i++) code = peers_open_list(s, o.peers.at[i]);
  return code;
}

/* --stream draws its own problems or takes a list of its own: it allows --batch, --block, --isa, --csv, --own-time. */
static int stream_bench(const cli_verb *verb, int words, hk_isa isa) {
  static const char *const of_problems[] = {"layout",
                                            "types",
                                            "only",
                                            "deconv",
                                            "peer",
                                            "cold",
                                            "late-weights",
                                            "seconds",
                                            "rounds",
                                            "json",
                                            "html",
                                            "threads",
                                            "epilogue",
                                            "decision",
                                            "workspace",
                                            "rigor",
                                            "math",
                                            "batch-invariant",
                                            "unaligned",
                                            "time-limit",
                                            "grad",
                                            "forbid-fallback",
                                            "wisdom-only",
                                            "stateful",
                                            "flush-denormals",
                                            NULL};
  if (words) {
    cli_error("one of PROBLEM, --batch and --stream; usage: hankel %s", verb->usage);
    return CLI_USAGE;
  }
  const int code = cli_options_refuse(of_problems, "--stream");
  if (code) return code;
  if (o.block >= 1 && o.block <= 65536)
    return o.batch ? bench_stream_list(o.batch, o.block, isa) : bench_stream(o.block, isa, o.csv);
  cli_error("--block: %lld is not between 1 and 65536", (long long)o.block);
  return CLI_USAGE;
}

int cli_bench(const cli_verb *verb, int argc, char **argv) {
  const cli_option *const tables[] = {table, cli_plan_table, NULL};
  const char *word[1] = {NULL};
  int words = 1, code;
  hk_options options;
  hk_epilogue e;
  hk_layout layout;
  bench_sheet s = {.file = stdout};
  cli_items items = {0};
  if (!cli_options_read(verb, tables, argc, argv, word, &words, &code)) return code;
  s.cold = o.cold;
  if ((code = cli_planning_options(&options)) || (code = cli_planning_epilogue(&e)) ||
      (code = cli_layout_read(o.layout, &layout)))
    return code;
  s.device = options.device;
  if (options.device == HK_CUDA && (o.peers.count || o.stream || o.cold || cli_own_time)) {
    cli_error(
        "--peer, --stream, --cold and --own-time are for the CPU; cuDNN is timed beside the device by make bench-gpu");
    return CLI_UNSUPPORTED;
  }
  if (o.stream) return stream_bench(verb, words, options.isa);
  if (!(o.seconds > 0)) {
    cli_error("--seconds: %g is not above 0", o.seconds);
    return CLI_USAGE;
  }
  if (words + (o.batch != NULL) != 1 || o.rounds < 0 || o.rounds > BENCH_ROUNDS || (o.csv && o.json)) {
    cli_error("one of PROBLEM, --batch and --stream, rounds of 1 to %d, one of --csv and --json; usage: hankel %s",
              BENCH_ROUNDS, verb->usage);
    return CLI_USAGE;
  }
  static const char *const of_batch[] = {"layout", "types", "only", "block", NULL};
  const char *where = o.batch ? "--batch" : "a PROBLEM given as text";
  if ((code = cli_options_refuse(o.batch ? of_batch + 3 : of_batch, where))) return code;
  bench_peers_hold(options.isa);
  if ((code = peers_open(&s))) return code;
  if (o.batch) code = cli_items_read(&items, o.batch, o.deconv, layout, o.types);
  else {
    items = (cli_items){.count = 1, .room = 1, .at = calloc(1, sizeof(cli_item))};
    hk_status status = items.at ? cli_item_parse(items.at, word[0], o.deconv) : HK_NO_MEMORY;
    if (status) code = cli_refused(status, word[0]);
  }
  if (!code) code = cli_items_only(&items, o.name);
  if (!code) code = items_bench(&s, &items, &e, &options);
  cli_items_free(&items);
  return code;
}
