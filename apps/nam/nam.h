/* Inside libhankel-nam: from JSON to the steps of a chain.
 *
 *   parse.c     JSON to a tree of values
 *   json.c      fields of an object, checked: type, range, default
 *   net.c       the steps under construction, their weights, arena
 *   model.c     version, architecture, sizes; nested models
 *   layers.c    the configuration of WaveNet's layer arrays      wavenet.c   their steps
 *   plain.c     LSTM, ConvNet, Linear
 *   load.c      one allocation for everything      play.c   process, reset, size
 *   take.c      public structs by their size       clone.c  another player of the same weights */
#ifndef NAM_H
#define NAM_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "hankel_nam.h"

struct nam_net;

/* What a file may ask for (docs/nam.md, "Limits"); more is refused before it is allocated or computed.
 *   MAX_FILE    bytes of the text, checked before it is parsed
 *   MAX_LOAD    bytes that loading holds at once: text, values, weights on their way, steps, the model. Lowering a size
 *               to a chain takes up to 2.5 KiB per step besides; LOWERING of the budget is kept for that
 *   MAX_BYTES   bytes of the model, all sizes together
 *   MAX_PREWARM operations of prewarming, all sizes together: about 1 s at 40 GFLOP/s */
enum {
  MAX_CHANNELS = 4096,
  MAX_KERNEL = 1 << 20,
  MAX_DILATION = 1 << 20,
  MAX_LAYERS = 4096,
  MAX_DEPTH = 4,
  MAX_SIZES = 64,
  MAX_STEPS = 8192,
  MAX_FILE = 1 << 26,
  MAX_LOAD = 1 << 28,
  LOWERING = MAX_STEPS * 2560,
  MAX_BYTES = 1 << 27,
  LAYERS_TEXT = 4096,
  SHORT_TEXT = 128,
  BLOCK = 256
};
#define MAX_PREWARM 4e10

/* What is left of MAX_LOAD. Nothing is given back: what loading frees early it frees at its end. */
typedef struct nam_budget {
  size_t left;
} nam_budget;
bool nam_spend(nam_budget *budget, size_t bytes); /* false, with a sentence, when less is left */

/* parse.c: a tree in the order of the text. The elements of an array follow it; so do the members of an object, each a
 * text (the key) and its value. One block holds the tree and its texts: free(root). */
typedef enum nam_kind { NAM_NULL, NAM_FALSE, NAM_TRUE, NAM_NUMBER, NAM_TEXT, NAM_ARRAY, NAM_OBJECT } nam_kind;
typedef struct nam_value {
  nam_kind kind;
  uint32_t count; /* elements, members, or bytes of a text */
  union {
    double number;
    const char *text; /* UTF-8, ended by a zero byte */
    size_t span;      /* array, object: nodes of the tree, itself and all that it holds */
  };
} nam_value;
hk_status nam_parse(const char *text, size_t bytes, nam_budget *budget, nam_value **root);
/* All take NULL and values of other kinds, and then say false, NULL or 0. */
bool nam_is(const nam_value *v, nam_kind kind);
const nam_value *nam_get(const nam_value *object, const char *key);
const nam_value *nam_at(const nam_value *array, size_t index);
size_t nam_count(const nam_value *array);
const char *nam_text(const nam_value *v);
double nam_number(const nam_value *v);
const nam_value *nam_after(const nam_value *v); /* what follows in the tree; v is not NULL */

/* json.c; all set the error sentence and return false when the field is missing (without a default) or wrong */
bool nam_fail(const char *format, ...) __attribute__((format(printf, 1, 2))); /* always false; HK_INVALID */
bool nam_refuse(hk_status status, const char *format, ...) __attribute__((format(printf, 2, 3))); /* always false */
hk_status nam_failure(void);                                      /* the status of the sentence */
hk_status nam_status(hk_status status);                           /* keeps the sentence of a failed hk_ function */
const nam_value *nam_object(const nam_value *o, const char *key); /* NULL when absent or null; no error */
bool nam_int(const nam_value *o, const char *key, int64_t low, int64_t high, int64_t *value);
bool nam_int_or(const nam_value *o, const char *key, int64_t fallback, int64_t low, int64_t high, int64_t *value);
bool nam_bool_or(const nam_value *o, const char *key, bool fallback, bool *value);
bool nam_real_or(const nam_value *o, const char *key, double fallback, double *value); /* finite */
bool nam_as_int(const nam_value *v, const char *what, int64_t low, int64_t high, int64_t *value);
bool nam_activation(const nam_value *v, int64_t channels, int64_t full, bool rational, struct nam_net *net,
                    hk_step_act *act);

/* take.c: public structs of the size that the caller's header gives them. in copies one to `room` of `known` bytes, its
 * missing fields zero; out copies as much of `made` as the caller has room for and leaves its size. */
bool nam_struct_in(const void *given, void *room, size_t known, const char *name);
hk_status nam_struct_out(void *to, const void *made, size_t known, const char *name);

/* net.c */
typedef struct nam_chunk nam_chunk;
typedef struct nam_signal {
  int64_t channels, reach; /* reach: receptive field so far, in frames */
} nam_signal;
typedef struct nam_net {
  nam_budget *budget;
  hk_step *step;
  nam_signal *signal; /* [1] the input, then one per step */
  int32_t count, room;
  bool recurrent;
  double work;                      /* operations per frame, what no formula counts estimated: see nam_step */
  nam_chunk *chunks;                /* weights and slopes; freed with the net */
  bool rational, film_blended_only; /* hk_nam_options */
  double sample_rate;               /* of the outermost model */
  char layers[LAYERS_TEXT];
  size_t layers_length;
} nam_net;

typedef struct nam_weights { /* what is left of a model's flat array */
  const float *at;
  size_t left, total;
} nam_weights;

bool nam_net_start(nam_net *net, nam_budget *budget, int64_t channels); /* of the input; net is all zeros before */
void nam_net_free(nam_net *net);
float *nam_floats(nam_net *net, size_t count); /* arena; NULL when memory is out */
bool nam_read_weights(nam_net *net, const nam_value *array, nam_weights *w);
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
int32_t nam_add(nam_net *net, int32_t a, int32_t b); /* a + b */

/* model.c and the architectures: append to the net, signal of the output or 0 */
typedef struct nam_size { /* one size of a file */
  const nam_value *model;
  double below; /* chosen when the value is below this */
  double ratio; /* slimmable WaveNet: channels by this value */
} nam_size;
bool nam_sizes(const nam_value *root, nam_size *sizes, int32_t *count);
bool nam_version(const nam_value *root, const char **text);
int32_t nam_build(nam_net *net, const nam_value *model, int32_t input, double ratio, int depth);
bool nam_rate(const nam_value *model, double *rate); /* 0: unknown, else HK_NAM_MIN_RATE to _MAX_RATE */
int64_t nam_inputs(const nam_value *model);          /* channels of the input; 0: error */
int32_t nam_wavenet(nam_net *net, const nam_value *config, nam_weights *w, int32_t input, double ratio, int depth,
                    double rate);
bool nam_wavenet_sizes(const nam_value *config, const nam_value *model, nam_size *sizes, int32_t *count);
int32_t nam_lstm(nam_net *net, const nam_value *config, nam_weights *w, int32_t input);
int32_t nam_convnet(nam_net *net, const nam_value *config, nam_weights *w, int32_t input);
int32_t nam_linear(nam_net *net, const nam_value *config, nam_weights *w, int32_t input);
#endif
