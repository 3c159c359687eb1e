/* The results of `hankel bench` as a table, as CSV (name, problem, layout, threads, us, gflops, pct_peak, decision,
 * then <peer>_us for each peer, then best_peer, ratio) and as JSON in google-benchmark's shape. Times are medians; a
 * ratio is the best peer's time over hankel's. */
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "bench/bench.h"

int bench_best_peer(const bench_sheet *s, const bench_row *r) {
  int best = -1;
  for (int i = 0; i < s->peers; i++)
    if (r->peer[i].median > 0 && (best < 0 || r->peer[i].median < r->peer[best].median)) best = i;
  return best;
}

static double percent(const bench_row *r) {
  return r->peak > 0 && r->ours.median > 0 ? 100 * r->flops / r->ours.median / r->peak : 0;
}

static double gflops(const bench_row *r) { return r->ours.median > 0 ? 1e-9 * r->flops / r->ours.median : 0; }

/* ---- CSV */
static void csv_text(FILE *file, const char *text) {
  if (!strpbrk(text, ",\"\n")) {
    fputs(text, file);
    return;
  }
  fputc('"', file);
  for (; *text; text++) fprintf(file, *text == '"' ? "\"%c" : "%c", *text);
  fputc('"', file);
}

void bench_csv_head(const bench_sheet *s) {
  fputs("name,problem,layout,threads,us,gflops,pct_peak,decision", s->file);
  for (int i = 0; i < s->peers; i++) fprintf(s->file, ",%s_us", s->peer[i]->name);
  fputs(",best_peer,ratio\n", s->file);
}

void bench_csv_row(const bench_sheet *s, const bench_row *r) {
  FILE *f = s->file;
  int best = bench_best_peer(s, r);
  csv_text(f, r->name);
  fputc(',', f);
  csv_text(f, r->problem);
  fprintf(f, ",%s,%d,%.3f,%.2f,%.1f,", r->layout, r->threads, 1e6 * r->ours.median, gflops(r), percent(r));
  csv_text(f, r->decision);
  for (int i = 0; i < s->peers; i++) {
    if (r->peer[i].median > 0) fprintf(f, ",%.3f", 1e6 * r->peer[i].median);
    else fputc(',', f);
  }
  if (best >= 0) fprintf(f, ",%s,%.3f\n", s->peer[best]->name, r->peer[best].median / r->ours.median);
  else fputs(",,\n", f);
  fflush(f);
}

/* ---- table */
void bench_table_head(const bench_sheet *s, cli_table *t) {
  static const char *const head[] = {"problem", "us", "+-%", "GFLOP/s", "GB/s", "% peak"};
  t->columns = 6 + s->peers + (s->peers ? 1 : 0) + 1;
  int column = 0;
  for (; column < 6; column++) cli_table_add(t, column, strdup(head[column]));
  for (int i = 0; i < s->peers; i++) cli_table_add(t, column++, cli_text("%s us", s->peer[i]->name));
  if (s->peers) cli_table_add(t, column++, strdup("ratio"));
  cli_table_add(t, column, strdup("decision"));
}

void bench_table_row(const bench_sheet *s, const bench_row *r, cli_table *t) {
  int column = 0, best = bench_best_peer(s, r);
  double us = r->ours.median;
  cli_table_add(t, column++, strdup(*r->name ? r->name : r->problem));
  cli_table_add(t, column++, cli_text("%.2f", 1e6 * us));
  cli_table_add(t, column++, cli_text("%.1f", us > 0 ? 50 * (r->ours.high - r->ours.low) / us : 0));
  cli_table_add(t, column++, cli_text("%.1f", gflops(r)));
  cli_table_add(t, column++, cli_text("%.1f", us > 0 ? 1e-9 * r->bytes / us : 0));
  cli_table_add(t, column++, cli_text("%.1f", percent(r)));
  for (int i = 0; i < s->peers; i++)
    cli_table_add(t, column++, r->peer[i].median > 0 ? cli_text("%.2f", 1e6 * r->peer[i].median) : strdup("-"));
  if (s->peers) cli_table_add(t, column++, best >= 0 ? cli_text("%.2f", r->peer[best].median / us) : strdup("-"));
  cli_table_add(t, column, strdup(r->decision));
}

/* ---- JSON */
static void json_context(cli_json *j) {
  hk_machine m = {.size = sizeof m};
  char host[256] = "", when[64] = "";
  time_t now = time(NULL);
  struct tm local;
  if (gethostname(host, sizeof host - 1)) host[0] = 0;
  if (localtime_r(&now, &local)) strftime(when, sizeof when, "%Y-%m-%dT%H:%M:%S%z", &local);
  bool known = !hk_machine_info(&m);
  cli_json_open(j, "context", '{');
  cli_json_text(j, "date", when);
  cli_json_text(j, "host_name", host);
  cli_json_text(j, "executable", "hankel");
  cli_json_text(j, "hankel_version", hk_version());
  cli_json_text(j, "cpu", known ? m.cpu : "");
  cli_json_integer(j, "num_cpus", known ? m.cores : 0);
  cli_json_text(j, "library_build_type", "release");
  cli_json_open(j, "caches", '[');
  int64_t level[] = {m.l1d_bytes, m.l2_bytes, m.l3_bytes};
  for (int i = 0; known && i < 3; i++) {
    cli_json_open(j, NULL, '{');
    cli_json_text(j, "type", i ? "Unified" : "Data");
    cli_json_integer(j, "level", i + 1);
    cli_json_integer(j, "size", level[i]);
    cli_json_close(j, '}');
  }
  cli_json_close(j, ']');
  cli_json_close(j, '}');
}

static void json_time(cli_json *j, const bench_row *r, const char *who, cli_spread t, const char *what, double value) {
  char *run = cli_text("%s/%s", *r->name ? r->name : r->problem, who), *name = cli_text("%s_%s", run, what);
  cli_json_open(j, NULL, '{');
  cli_json_text(j, "name", name);
  cli_json_text(j, "run_name", run);
  cli_json_text(j, "run_type", "aggregate");
  cli_json_text(j, "aggregate_name", what);
  cli_json_text(j, "aggregate_unit", "time");
  cli_json_integer(j, "repetitions", r->rounds);
  cli_json_integer(j, "threads", r->threads);
  cli_json_integer(j, "iterations", r->rounds);
  cli_json_number(j, "real_time", 1e6 * value);
  cli_json_number(j, "cpu_time", 1e6 * value);
  cli_json_text(j, "time_unit", "us");
  cli_json_text(j, "problem", r->problem);
  cli_json_text(j, "layout", r->layout);
  if (!strcmp(who, "hankel")) {
    cli_json_text(j, "decision", r->decision);
    cli_json_number(j, "pct_peak", percent(r));
  }
  cli_json_number(j, "gflops", t.median > 0 ? 1e-9 * r->flops / t.median : 0);
  cli_json_number(j, "bytes_per_second", t.median > 0 ? r->bytes / t.median : 0);
  cli_json_close(j, '}');
  free(run);
  free(name);
}

void bench_json(const bench_sheet *s, const bench_row *rows, int count) {
  cli_json j = {.file = s->file};
  cli_json_open(&j, NULL, '{');
  json_context(&j);
  cli_json_open(&j, "benchmarks", '[');
  for (int i = 0; i < count; i++) {
    json_time(&j, &rows[i], "hankel", rows[i].ours, "median", rows[i].ours.median);
    json_time(&j, &rows[i], "hankel", rows[i].ours, "iqr", rows[i].ours.high - rows[i].ours.low);
    for (int k = 0; k < s->peers; k++)
      if (rows[i].peer[k].median > 0)
        json_time(&j, &rows[i], s->peer[k]->name, rows[i].peer[k], "median", rows[i].peer[k].median);
  }
  cli_json_close(&j, ']');
  cli_json_close(&j, '}');
}
