/* `hankel bench --html FILE`: the results as one self-contained page. The page is report.html, built into the program;
 * its @DATA@ is replaced by the rows as JSON. */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "bench/bench.h"

/* report.html between two symbols */
__asm__(".section .rodata\n"
        ".global cli_report_page\n"
        ".type cli_report_page, %object\n"
        "cli_report_page:\n"
        ".incbin \"" HK_REPORT_HTML "\"\n"
        ".byte 0\n"
        ".size cli_report_page, . - cli_report_page\n"
        ".previous\n");
extern const char cli_report_page[];

static void put_context(cli_json *j, const bench_sheet *s, const bench_row *rows, int count) {
  hk_machine m = {.size = sizeof m};
  hk_gpu gpu = {.size = sizeof gpu};
  char when[64] = "";
  time_t now = time(NULL);
  struct tm local;
  if (localtime_r(&now, &local)) strftime(when, sizeof when, "%Y-%m-%d %H:%M", &local);
  const bool known = !hk_machine_info(&m), device = s->device == HK_CUDA && !hk_gpu_info(&gpu);
  cli_json_open(j, "context", '{');
  cli_json_text(j, "cpu", device ? gpu.name : known ? m.cpu : "unknown");
  cli_json_integer(j, "threads", count ? rows[0].threads : 1);
  cli_json_number(j, "peak", count ? rows[0].peak : hk_measure_peak(HK_ISA_BEST, HK_F32));
  cli_json_number(j, "bandwidth", device ? gpu.bytes_per_s : hk_measure_bandwidth((size_t)256 << 20));
  cli_json_text(j, "version", hk_version());
  cli_json_text(j, "commit", HK_COMMIT);
  cli_json_text(j, "date", when);
  cli_json_close(j, '}');
}

static void put_row(cli_json *j, const bench_sheet *s, const bench_row *r) {
  const int best = bench_best_peer(s, r);
  const double us = 1e6 * r->ours.median;
  cli_json_open(j, NULL, '{');
  cli_json_text(j, "name", r->name);
  cli_json_text(j, "problem", r->problem);
  cli_json_text(j, "layout", r->layout);
  cli_json_text(j, "decision", r->decision);
  cli_json_number(j, "us", us);
  cli_json_number(j, "spread", us > 0 ? 50e6 * (r->ours.high - r->ours.low) / us : 0);
  cli_json_number(j, "flops", r->flops);
  cli_json_number(j, "bytes", r->bytes);
  cli_json_number(j, "peak", r->peak);
  cli_json_number(j, "pct", r->peak > 0 && us > 0 ? 1e8 * r->flops / us / r->peak : 0);
  cli_json_open(j, "peer", '{');
  for (int i = 0; i < s->peers; i++)
    if (r->peer[i].median > 0) cli_json_number(j, s->peer[i]->name, 1e6 * r->peer[i].median);
  cli_json_close(j, '}');
  if (best >= 0) {
    cli_json_text(j, "best", s->peer[best]->name);
    cli_json_number(j, "ratio", r->peer[best].median / r->ours.median);
  }
  cli_json_close(j, '}');
}

/* A text may hold "</script>": in JSON a '<' is as good as its escape. */
static void copy_escaped(FILE *from, FILE *to) {
  for (int c; (c = getc(from)) != EOF;)
    if (c == '<') fputs("\\u003c", to);
    else putc(c, to);
}

int bench_html(const bench_sheet *s, const bench_row *rows, int count, const char *path) {
  const char *mark = strstr(cli_report_page, "@DATA@");
  FILE *data = tmpfile(), *file = mark && data ? fopen(path, "w") : NULL;
  if (!file) {
    cli_error("%s cannot be written", path);
    if (data) fclose(data);
    return CLI_FAILED;
  }
  cli_json j = {.file = data};
  cli_json_open(&j, NULL, '{');
  put_context(&j, s, rows, count);
  cli_json_open(&j, "peers", '[');
  for (int i = 0; i < s->peers; i++) cli_json_text(&j, NULL, s->peer[i]->name);
  cli_json_close(&j, ']');
  cli_json_open(&j, "rows", '[');
  for (int i = 0; i < count; i++) put_row(&j, s, &rows[i]);
  cli_json_close(&j, ']');
  cli_json_close(&j, '}');
  rewind(data);
  fwrite(cli_report_page, 1, (size_t)(mark - cli_report_page), file);
  copy_escaped(data, file);
  fputs(mark + strlen("@DATA@"), file);
  fclose(data);
  const bool bad = ferror(file);
  if (fclose(file) || bad) {
    cli_error("%s could not be written whole", path);
    return CLI_FAILED;
  }
  cli_note("the report is in %s", path);
  return CLI_OK;
}
