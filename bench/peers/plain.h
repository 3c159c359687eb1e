/* What the peers share: a problem read as the plain f32 convolution that other libraries know. */
#ifndef PEERS_PLAIN_H
#define PEERS_PLAIN_H
#include <stdbool.h>

#include "bench/peer.h"

#define PEER_WHY 200

/* Sizes of a dense f32 problem of rank 1 or 2 (rank 1 has h = r = p = 1), channels first or last. */
typedef struct plain_conv {
  bool last;
  int64_t n, c, h, w, k, r, s, p, q, groups;
  int64_t stride[2], lo[2], hi[2], dil[2];
  bool bias, relu;
} plain_conv;

/* Fills *v, or says in why what about the problem or its epilogue is not plain. */
bool plain_read(const hk_peer_job *job, plain_conv *v, char *why);
#endif
