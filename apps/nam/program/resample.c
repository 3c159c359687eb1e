/* Converts the rate of a whole sound (sinc.h); the result has at most MAX_SAMPLES. */
#include <stdlib.h>

#include "program.h"
#include "sinc.h"

int resample(const float *in, int64_t *frames, int channels, int from, int to, float **out) {
  sinc_bank b = sinc_plan(from, to, SINC_WHOLE);
  const int64_t count = sinc_frames(&b, *frames);
  if (sinc_taps(&b) > SINC_MAX_TAPS)
    return program_fail("converting %d Hz to %d Hz needs %lld filter taps; at most %d are supported", from, to,
                        (long long)sinc_taps(&b), SINC_MAX_TAPS);
  if (count > MAX_SAMPLES / channels)
    return program_fail("at %d Hz the sound has %lld frames of %d channels; at most %lld samples are supported", to,
                        (long long)count, channels, (long long)MAX_SAMPLES);
  b.taps = malloc((size_t)sinc_taps(&b) * sizeof *b.taps);
  *out = malloc((size_t)(count * channels + 1) * sizeof **out);
  if (!b.taps || !*out) {
    free(b.taps);
    free(*out);
    return program_fail("no memory to convert %lld frames", (long long)*frames);
  }
  sinc_fill(&b);
  sinc_convert(&b, in, *frames, channels, *out);
  free(b.taps);
  *frames = count;
  return 0;
}
