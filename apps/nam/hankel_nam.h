/* libhankel-nam: plays Neural Amp Modeler files (.nam, versions 0.5.0 to 0.7.x) block by block. C11 and C++. Structs
 * with a field `size` start with it and follow the rule of hankel.h: set it to sizeof of the struct.
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
  int32_t rational_tanh;     /* nonzero: the short rational tanh (within 3e-3) in place of the accurate one */
  hk_isa isa;                /* cap */
  int32_t film_blended_only; /* nonzero: layer1x1_post_film only where the gating is blended, as NAM Core 0.4.0 to 0.5.x
                                computes it; the trainer applies it always, and so does zero */
} hk_nam_options;

/* options may be NULL. The loaded model has its largest size, is prewarmed and ready to play. Without enough memory
 * these return HK_NO_MEMORY; loading never holds more than 256 MiB, including the text of the file. */
HK_API hk_status hk_nam_load_file(hk_nam **model, const char *path, const hk_nam_options *options);
HK_API hk_status hk_nam_load_memory(hk_nam **model, const void *text, size_t bytes, const hk_nam_options *options);
/* The bytes that load_memory would allocate for the model. */
HK_API hk_status hk_nam_measure(const void *text, size_t bytes, const hk_nam_options *options, size_t *model_bytes);
/* Another player of the same weights, with histories of its own, prewarmed, at the size that model has now: for a
 * second channel or thread. It takes one allocation (facts.bytes of it). No other call on model may be running;
 * afterwards the two are independent, and they may be freed in any order: the weights go with the last of their
 * players. */
HK_API hk_status hk_nam_clone(hk_nam **clone, const hk_nam *model);
HK_API void hk_nam_free(hk_nam *model);
/* Resets to the state after load, at the present size. Allocates nothing, but takes longer than a block. */
HK_API hk_status hk_nam_reset(hk_nam *model);
/* n frames of any count; y may equal x when in_channels == out_channels. */
HK_API hk_status hk_nam_process(hk_nam *model, const float *x, int64_t n, float *y);
HK_API hk_status hk_nam_process_double(hk_nam *model, const double *x, int64_t n, double *y);
/* The same with a row of memory per channel; y[c] may equal any x[c]. */
HK_API hk_status hk_nam_process_planar(hk_nam *model, const float *const *x, int64_t n, float *const *y);
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

/* ------------------------------------------------------------------ rig
 * What a guitarist plays through, for a host of any sample rate and block size: input gain, noise gate, amp, cabinet,
 * output gain; one channel, or two that share the weights of one amp. Parts (an amp, a cabinet) are made away from the
 * audio thread, handed to it, and faded in over the part they replace; the replaced part comes back to be freed.
 *
 *   any thread but the audio thread   create, free, load_amp, load_cabinet, part_free
 *   audio thread                      set, retired, process, reset, latency: no allocation, no lock, no system call
 * load_* read only what never changes in a rig, so they may run while the audio thread processes. */
typedef struct hk_rig hk_rig;
typedef struct hk_rig_part hk_rig_part;

typedef struct hk_rig_options {
  size_t size;
  double sample_rate;  /* of the host, HK_NAM_MIN_RATE to HK_NAM_MAX_RATE */
  int32_t channels;    /* 1 or 2 */
  double fade_seconds; /* 0: 0.02 */
  hk_isa isa;          /* cap */
} hk_rig_options;
HK_API hk_status hk_rig_create(hk_rig **rig, const hk_rig_options *options);
HK_API void hk_rig_free(hk_rig *rig); /* with the parts that it holds */

typedef enum hk_rig_slot { HK_RIG_AMP = 0, HK_RIG_CABINET = 1 } hk_rig_slot;

/* An amp plays at the rate of its file (48 kHz if the file says nothing) between two resamplers where the host has
 * another rate. Only mono models fit a rig. options may be NULL. */
HK_API hk_status hk_rig_load_amp(hk_rig_part **part, const hk_rig *rig, const char *path,
                                 const hk_nam_options *options);
/* An impulse response: frames x channels interleaved samples at their rate, resampled to the host's. One channel serves
 * both channels of the rig, two serve one each; four are left-left, left-right, right-left, right-right (true stereo).
 * A mono rig plays the first channel. At most 10 seconds, and HK_FIR_WINDOW_MAX frames of the host. */
HK_API hk_status hk_rig_load_cabinet(hk_rig_part **part, const hk_rig *rig, const float *samples, int64_t frames,
                                     int32_t channels, double sample_rate);
HK_API void hk_rig_part_free(hk_rig_part *part);
typedef struct hk_rig_part_facts {
  size_t size;
  hk_rig_slot slot;
  int64_t frames;  /* of a cabinet, at the host's rate */
  int64_t latency; /* frames of the host, added by resampling */
  size_t bytes;
  hk_nam_facts amp; /* of an amp; the last field, since it may grow */
} hk_rig_part_facts;
HK_API hk_status hk_rig_part_info(const hk_rig_part *part, hk_rig_part_facts *facts);

/* part is one that no rig holds. The rig now owns part and fades to it; NULL fades to nothing in the slot (the signal
 * passes). While a fade is under way the newest part waits for its end, and one that waited before it is retired
 * unheard. */
HK_API void hk_rig_set(hk_rig *rig, hk_rig_slot slot, hk_rig_part *part);
/* A part that is not heard any more, for the caller to free away from the audio thread; NULL: none. */
HK_API hk_rig_part *hk_rig_retired(hk_rig *rig);

/* How the amp's output level is set, before output_db. Without the figure in the file the level stays raw. */
typedef enum hk_rig_level {
  HK_RIG_RAW = 0,        /* as the model gives it */
  HK_RIG_NORMALIZED = 1, /* to -18 dB by the file's loudness */
  HK_RIG_CALIBRATED = 2  /* by the file's output_level_dbu, relative to interface_dbu */
} hk_rig_level;
/* What may change with every call; gains glide to their values without clicks. All zeros: everything passes at unity
 * gain. */
typedef struct hk_rig_controls {
  size_t size;
  double input_db, output_db;
  double gate_db; /* threshold of the noise gate in dB of full scale; 0 or above: no gate */
  int32_t bypass; /* nonzero: x, delayed by the latency */
  int32_t resize; /* nonzero: play model_size, 0 to 1, of an amp of several sizes; zero: the size it was loaded with */
  double model_size;
  hk_rig_level level;
  double interface_dbu; /* CALIBRATED: dBu of the audio interface at full scale; also calibrates the input if the file
                           has input_level_dbu */
} hk_rig_controls;
/* n frames of any count of each channel; y[c] may equal x[c]. controls may be NULL. */
HK_API hk_status hk_rig_process(hk_rig *rig, const hk_rig_controls *controls, const float *const *x, int64_t n,
                                float *const *y);
HK_API void hk_rig_reset(hk_rig *rig);            /* silence before the next frame; parts stay */
HK_API int64_t hk_rig_latency(const hk_rig *rig); /* frames of the host, of the parts that are heard */

#ifdef __cplusplus
}
#endif
#endif
