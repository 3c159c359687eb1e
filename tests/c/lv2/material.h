/* What the tests of the plugin play: models of the fuzz corpus and, where they lie beside the checkout, real ones; a
 * signal like a plucked string; impulse responses in files. */
#ifndef LV2_TEST_MATERIAL_H
#define LV2_TEST_MATERIAL_H
#include <stddef.h>
#include <stdint.h>

enum { MATERIAL_MODELS = 16, MATERIAL_PATH = 512 };
extern const char material_big[], material_small[]; /* WaveNets of the corpus */
/* Absolute paths, since the host changes nothing but a plugin may. Returns how many. */
int material_models(char paths[MATERIAL_MODELS][MATERIAL_PATH]);
/* A copy in the folder. */
void material_copy(const char *from, const char *name, char path[MATERIAL_PATH]);
void material_absolute(const char *path, char absolute[MATERIAL_PATH]);
void material_signal(float *x, int64_t frames);
/* The output of a model at its largest size, from the state after loading. */
void material_play(const char *model, const float *x, int64_t frames, float *y);
/* A folder of its own under the system's, removed by material_end with the files in it. */
const char *material_folder(void);
void material_end(void);
/* Writes a WaveNet of NAM's standard form, two arrays of ten layers, with `channels` and half of them, and weights that
 * mean nothing. */
void material_amp(const char *name, int channels, char path[MATERIAL_PATH]);
/* Writes name in the folder: a decaying noise; the samples are also left in ir (frames x channels), if it is not NULL.
 */
void material_cabinet(const char *name, int64_t frames, int channels, int rate, float *ir, char path[MATERIAL_PATH]);
#endif
