/* A loaded model: one block of memory that begins with this. */
#ifndef NAM_PLAY_H
#define NAM_PLAY_H
#include <stdatomic.h>

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
  hk_nam *weights;  /* the player whose memory holds the chains: itself, or the one that it is a clone of */
  atomic_int users; /* of its chains: itself and its clones */
  int32_t voices, active;
  int64_t in, out;
  hk_nam_facts facts;
  char architecture[SHORT_TEXT], version[SHORT_TEXT], name[SHORT_TEXT], modeled_by[SHORT_TEXT], gear[SHORT_TEXT];
  float *block; /* BLOCK frames of input, then of output: for doubles and planes */
  nam_voice voice[];
};

enum { NAM_ALIGN = 64 };
static inline size_t nam_aligned(size_t bytes) { return (bytes + NAM_ALIGN - 1) / NAM_ALIGN * NAM_ALIGN; }
size_t nam_head_bytes(int64_t channels, int32_t voices); /* of the player without its voices' memory */
/* The size that a value from 0 to 1 chooses. */
int32_t nam_size_at(const hk_nam *m, double value);
/* One size of m, whichever is active. */
hk_status nam_voice_play(const hk_nam *m, int32_t size, const float *x, int64_t n, float *y);
hk_status nam_voice_reset(const hk_nam *m, int32_t size);
#endif
