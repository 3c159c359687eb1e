/* Peers: other libraries timed beside hankel by `hankel bench --peer NAME`. A peer is a shared object
 * hankel_peer_NAME.so that exports hk_peer_get; it is looked for in $HANKEL_PEERS, then in ../lib/hankel/peers beside
 * the program. So the command itself depends on none of them. */
#ifndef CLI_PEER_H
#define CLI_PEER_H
#include "hankel.h"

#define HK_PEER_VERSION 1

/* One timed problem: operands are in plain memory with the problem's strides; y is the peer's own. */
typedef struct hk_peer_job {
  size_t size;
  const hk_problem *problem;
  const hk_epilogue *epilogue;
  int threads;
  const void *x, *f, *c, *scale, *bias; /* as hk_args has them */
  void *y;
} hk_peer_job;

typedef struct hk_peer {
  int version; /* HK_PEER_VERSION */
  const char *name;
  const char *about; /* library and version */
  /* Prepares everything that is not timed (packing weights, compiling, reordering them). Returns NULL and fills why
   * (200 bytes) when the peer cannot compute the problem as it lies. */
  void *(*make)(const hk_peer_job *job, char *why);
  void (*run)(void *state); /* computes job->y; timed */
  void (*destroy)(void *state);
} hk_peer;

typedef const hk_peer *(*hk_peer_get_fn)(void); /* exported as hk_peer_get */
#endif
