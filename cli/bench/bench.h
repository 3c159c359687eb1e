/* What `hankel bench` measures and how it is printed. */
#ifndef CLI_BENCH_H
#define CLI_BENCH_H
#include "cli.h"
#include "bench/peer.h"

enum { BENCH_PEERS = 8, BENCH_ROUNDS = 200 };
typedef struct bench_row {
  char *name, *problem, *layout, *decision;
  int threads, iterations, rounds;
  double flops, bytes;
  cli_spread ours; /* seconds a call */
  cli_spread peer[BENCH_PEERS];
  char refusal[BENCH_PEERS][200]; /* why a peer has no time */
  double peak;                    /* flop/s of the threads, measured in this run; of a GPU by its clocks */
} bench_row;

typedef struct bench_sheet {
  const hk_peer *peer[BENCH_PEERS];
  int peers;
  hk_device device;
  bool cold;
  FILE *file;
} bench_sheet;

int bench_stream(int64_t block, hk_isa isa, bool csv); /* bench/stream.c */
/* bench/stream_list.c: CSV of the lone convolutions in a file, interleaved. */
int bench_stream_list(const char *path, int64_t block, hk_isa isa);

/* audit.c: every candidate of a problem is timed. */
typedef struct bench_audit_options {
  bool csv, all;  /* a line per problem, a line per candidate; else one per miss */
  double seconds; /* for the rounds of a problem */
} bench_audit_options;
void bench_audit_head(const bench_audit_options *o, const hk_epilogue *e, const hk_options *options);
/* Sets log_ratio to log(time of the estimate's choice / time of the best). */
int bench_audit_one(const bench_audit_options *o, const cli_item *item, const hk_epilogue *e, const hk_options *options,
                    double *log_ratio);

const hk_peer *bench_peer_open(const char *name);
/* Holds peers that are opened after this to isa where it is less than theirs (AVX2). */
void bench_peers_hold(hk_isa isa);
int bench_best_peer(const bench_sheet *s, const bench_row *r); /* -1: none */
void bench_csv_head(const bench_sheet *s);
void bench_csv_row(const bench_sheet *s, const bench_row *r);
void bench_table_head(const bench_sheet *s, cli_table *t);
void bench_table_row(const bench_sheet *s, const bench_row *r, cli_table *t);
int bench_html(const bench_sheet *s, const bench_row *rows, int count, const char *path); /* bench/html.c */
void bench_json(const bench_sheet *s, const bench_row *rows, int count);
#endif
