/* What the peers share: a problem read as the plain convolution that other libraries know. */
#ifndef PEERS_PLAIN_H
#define PEERS_PLAIN_H
#include <stdbool.h>

#include "bench/peer.h"

#define PEER_WHY 200

/* Sizes of a dense problem (rank 1 has h = r = p = 1, ranks 1 and 2 have d = t = o = 1), channels first or last. */
typedef struct plain_conv {
  bool last;
  int rank; /* 2, or 3 where the problem has three dimensions */
  int64_t n, c, k, groups;
  int64_t in[3], win[3], out[3], stride[3], lo[3], hi[3], dil[3];
  bool scale, bias, relu; /* scale: one per channel or one for all */
} plain_conv;

/* Fills *v, or says in why what about the problem or its epilogue is not plain. Types are the peer's to check. */
bool plain_read(const hk_peer_job *job, plain_conv *v, char *why);
/* The same for peers that know f32, two dimensions and an epilogue without scale. */
bool plain_read_f32(const hk_peer_job *job, plain_conv *v, char *why);
#endif
