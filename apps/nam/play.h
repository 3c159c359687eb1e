/* A loaded model: one block of memory that begins with this. */
#ifndef NAM_PLAY_H
#define NAM_PLAY_H
#include "nam.h"

typedef struct nam_voice { /* one size */
  double below;
  hk_chain *chain;
  hk_stream *stream;
  void *warm; /* recurrent only: the state after prewarming */
  size_t warm_bytes;
  hk_chain_facts facts;
  char layers[LAYERS_TEXT];
} nam_voice;

struct hk_nam {
  void *memory; /* what to free: the model lies 64-byte aligned inside */
  size_t bytes;
  int32_t voices, active;
  int64_t in, out;
  hk_nam_facts facts;
  char architecture[SHORT_TEXT], version[SHORT_TEXT], name[SHORT_TEXT], modeled_by[SHORT_TEXT], gear[SHORT_TEXT];
  float *block; /* BLOCK frames of input, then of output: for doubles */
  nam_voice voice[];
};
#endif
