/* Inside libhankel-nam: from JSON to the steps of a chain.
 *
 *   json.c      fields of an object, checked: type, range, default
 *   net.c       the steps under construction, their weights, arena
 *   model.c     version, architecture, sizes; nested models
 *   layers.c    the configuration of WaveNet's layer arrays      wavenet.c   their steps
 *   plain.c     LSTM, ConvNet, Linear
 *   load.c      one allocation for everything      play.c   process, reset, size */
#ifndef NAM_H
#define NAM_H
#include <jansson.h>
#include <stdbool.h>

#include "hankel_nam.h"

struct nam_net;

/* What a file may ask for; larger is refused before anything is allocated. */
enum { MAX_CHANNELS = 4096, MAX_KERNEL = 1 << 20, MAX_DILATION = 1 << 20, MAX_LAYERS = 4096, MAX_DEPTH = 4, MAX_SIZES = 64,
       MAX_BYTES = 1 << 27, MAX_STEPS = 60000, LAYERS_TEXT = 4096, SHORT_TEXT = 128, BLOCK = 256 };

/* json.c; all set the error sentence and return false when the field is missing (without a default) or wrong */
bool nam_fail(const char *format, ...) __attribute__((format(printf, 1, 2))); /* always false */
hk_status nam_status(hk_status status);       /* keeps the sentence of a failed hk_ function */
json_t *nam_object(json_t *o, const char *key);   /* NULL when absent or null; no error */
bool nam_int(json_t *o, const char *key, int64_t low, int64_t high, int64_t *value);
bool nam_int_or(json_t *o, const char *key, int64_t fallback, int64_t low, int64_t high, int64_t *value);
bool nam_bool_or(json_t *o, const char *key, bool fallback, bool *value);
bool nam_real_or(json_t *o, const char *key, double fallback, double *value); /* finite */
bool nam_as_int(json_t *v, const char *what, int64_t low, int64_t high, int64_t *value);
bool nam_activation(json_t *v, int64_t channels, int64_t full, bool rational, struct nam_net *net, hk_step_act *act);

/* net.c */
typedef struct nam_chunk nam_chunk;
typedef struct nam_net {
  hk_step *step;
  int64_t *channels;      /* of every signal; [1] the input */
  int32_t count, room;
  nam_chunk *chunks;      /* weights and slopes; freed with the net */
  bool rational;
  double sample_rate;     /* of the outermost model */
  char layers[LAYERS_TEXT];
  size_t layers_length;
} nam_net;

typedef struct nam_weights { /* what is left of a model's flat array */
  const float *at;
  size_t left, total;
} nam_weights;

bool nam_net_start(nam_net *net, int64_t channels);   /* of the input; net is all zeros before */
void nam_net_free(nam_net *net);
float *nam_floats(nam_net *net, size_t count);       /* arena; NULL when memory is out */
bool nam_read_weights(nam_net *net, json_t *array, nam_weights *w);
bool nam_take(nam_weights *w, double count, const float **at);
bool nam_end(const nam_weights *w);
/* Appends a step; its signal, or 0. channels: of the result. */
int32_t nam_step(nam_net *net, const hk_step *step, int64_t channels);
void nam_describe(nam_net *net, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* A convolution as the file stores it, and how much of it is kept (slimmable models keep the first channels). */
typedef struct nam_conv {
  int64_t in, out, kernel, dilation, groups; /* in the file */
  int64_t keep_in, keep_out;                 /* 0: all */
  bool bias;
} nam_conv;
/* Reads its weights into step->f and step->bias, and sets k, window, dilation, groups. */
bool nam_read_conv(nam_net *net, nam_weights *w, const nam_conv *c, hk_step *step);
int32_t nam_add(nam_net *net, int32_t a, int32_t b);  /* a + b */

/* model.c and the architectures: append to the net, signal of the output or 0 */
typedef struct nam_size { /* one size of a file */
  json_t *model;
  double below;           /* chosen when the value is below this */
  double ratio;           /* slimmable WaveNet: channels by this value */
} nam_size;
bool nam_sizes(json_t *root, nam_size *sizes, int32_t *count);
bool nam_version(json_t *root, const char **text);
int32_t nam_build(nam_net *net, json_t *model, int32_t input, double ratio, int depth);
bool nam_rate(json_t *model, double *rate);           /* 0: unknown */
int64_t nam_inputs(json_t *model);                    /* channels of the input; 0: error */
int32_t nam_wavenet(nam_net *net, json_t *config, nam_weights *w, int32_t input, double ratio, int depth, double rate);
bool nam_wavenet_sizes(json_t *config, json_t *model, nam_size *sizes, int32_t *count);
int32_t nam_lstm(nam_net *net, json_t *config, nam_weights *w, int32_t input);
int32_t nam_convnet(nam_net *net, json_t *config, nam_weights *w, int32_t input);
int32_t nam_linear(nam_net *net, json_t *config, nam_weights *w, int32_t input);
#endif
