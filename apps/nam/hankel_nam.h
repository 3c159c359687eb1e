/* libhankel-nam: plays Neural Amp Modeler files (.nam, versions 0.5.0 to 0.7.x) block by block. C11 and C++.
 *
 * A model is one allocation, made by load and freed by free; nothing else stays live. process and process_double never
 * allocate, lock or call the system; one thread at a time may use a model. Samples are f32; a model with several input
 * or output channels takes and gives them interleaved. */
#ifndef HANKEL_NAM_H
#define HANKEL_NAM_H

#include "hankel.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct hk_nam hk_nam;

/* Sample rates of models, in Hz; files with others are refused. docs/nam.md lists all limits. */
enum { HK_NAM_MIN_RATE = 8000, HK_NAM_MAX_RATE = 768000 };

/* All zeros are the defaults. */
typedef struct hk_nam_options {
  size_t size;
  int32_t rational_tanh; /* nonzero: the short rational tanh (within 3e-3) in place of the accurate one */
  hk_isa isa;            /* cap */
} hk_nam_options;

/* options may be NULL. The loaded model has its largest size, is prewarmed and ready to play. Without enough memory
 * these return HK_NO_MEMORY; loading never holds more than 256 MiB, including the text of the file. */
HK_API hk_status hk_nam_load_file(hk_nam **model, const char *path, const hk_nam_options *options);
HK_API hk_status hk_nam_load_memory(hk_nam **model, const void *text, size_t bytes, const hk_nam_options *options);
/* The bytes that load_memory would allocate for the model. */
HK_API hk_status hk_nam_measure(const void *text, size_t bytes, const hk_nam_options *options, size_t *model_bytes);
HK_API void hk_nam_free(hk_nam *model);
/* Resets to the state after load, at the present size. Allocates nothing, but takes longer than a block. */
HK_API hk_status hk_nam_reset(hk_nam *model);
/* n frames of any count; y may equal x when in_channels == out_channels. */
HK_API hk_status hk_nam_process(hk_nam *model, const float *x, int64_t n, float *y);
HK_API hk_status hk_nam_process_double(hk_nam *model, const double *x, int64_t n, double *y);
/* Containers and slimmable models: value 0 is the smallest, 1 the largest; another size starts prewarmed. Returns
 * HK_INVALID for a value outside 0 to 1 and keeps the size. */
HK_API hk_status hk_nam_set_size(hk_nam *model, double value);

typedef struct hk_nam_facts {
  size_t size;
  const char *architecture, *version, *name, *modeled_by, *gear; /* "" when the file says nothing */
  const char *layers;                                            /* one line per layer array, for people */
  double sample_rate;                                            /* 0 when the file says nothing */
  int32_t in_channels, out_channels;
  int32_t sizes, at_size; /* how many sizes there are, and which is active, from 0 */
  int32_t has_loudness, has_input_level, has_output_level;
  double loudness, input_level_dbu, output_level_dbu; /* metadata; process applies no gain */
  int64_t receptive_field;                            /* frames */
  int32_t recurrent;
  double flops; /* per frame */
  size_t bytes; /* of the one allocation */
  const char *isa;
} hk_nam_facts;
/* Of the active size. The texts live as long as the model. */
HK_API hk_status hk_nam_info(const hk_nam *model, hk_nam_facts *facts);
/* The sentence of this thread's last failure of an hk_nam function. */
HK_API const char *hk_nam_last_error(void);

#ifdef __cplusplus
}
#endif
#endif
