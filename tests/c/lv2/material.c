/* See material.h. */
#include "material.h"

#include <dirent.h>
#include <math.h>
#include <sndfile.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "hankel_nam.h"
#include "support/check.h"

const char material_big[] = "tests/fuzz/corpus/nam/features.nam",
           material_small[] = "tests/fuzz/corpus/nam/wavenet.nam";

void material_absolute(const char *path, char absolute[MATERIAL_PATH]) {
  char *real = realpath(path, NULL);
  snprintf(absolute, MATERIAL_PATH, "%s", real ? real : path);
  free(real);
}

int material_models(char paths[MATERIAL_MODELS][MATERIAL_PATH]) {
  static const char *const all[] = {"tests/fuzz/corpus/nam/wavenet.nam",       "tests/fuzz/corpus/nam/features.nam",
                                    "tests/fuzz/corpus/nam/condition.nam",     "tests/fuzz/corpus/nam/slimmable.nam",
                                    "tests/fuzz/corpus/nam/container.nam",     "tests/fuzz/corpus/nam/lstm.nam",
                                    "tests/fuzz/corpus/nam/convnet.nam",       "tests/fuzz/corpus/nam/linear.nam",
                                    "../shared/nam/wavenet_a1_standard.nam",   "../shared/nam/A2.nam",
                                    "../shared/nam/wavenet_a2_max.nam",        "../shared/nam/lstm.nam",
                                    "../shared/nam/wavenet_condition_dsp.nam", "../shared/nam/slimmable_container.nam"};
  int count = 0;
  for (size_t i = 0; i < sizeof all / sizeof *all; i++)
    if (!access(all[i], R_OK)) material_absolute(all[i], paths[count++]);
  return count;
}

void material_signal(float *x, int64_t frames) {
  const double pi = 3.14159265358979323846;
  uint64_t seed = 7;
  for (int64_t i = 0; i < frames; i++) {
    const double t = (double)(i % 12000) / 48000;
    double sum = 0.02 * (double)hk_test_float(&seed) * exp(-60 * t);
    for (int k = 1; k <= 6; k++) sum += 0.3 / k * exp(-4 * t * k) * sin(2 * pi * 110 * k * t);
    x[i] = (float)sum;
  }
}

void material_play(const char *model, const float *x, int64_t frames, float *y) {
  hk_nam *m = NULL;
  CHECK(!hk_nam_load_file(&m, model, NULL) && !hk_nam_process(m, x, frames, y), "%s: %s", model, hk_nam_last_error());
  hk_nam_free(m);
}

static char folder[MATERIAL_PATH];

const char *material_folder(void) {
  if (*folder) return folder;
  const char *of = getenv("TMPDIR");
  snprintf(folder, sizeof folder, "%s/hankel-lv2-XXXXXX", of ? of : "/tmp");
  CHECK(mkdtemp(folder) != NULL, "no folder %s", folder);
  return folder;
}

static void remove_files(const char *of) {
  DIR *d = opendir(of);
  for (struct dirent *e; d && (e = readdir(d));) {
    char path[2 * MATERIAL_PATH];
    snprintf(path, sizeof path, "%s/%s", of, e->d_name);
    if (!strcmp(e->d_name, ".") || !strcmp(e->d_name, "..")) continue;
    if (unlink(path)) remove_files(path);
  }
  if (d) closedir(d);
  rmdir(of);
}

void material_end(void) {
  if (*folder) remove_files(folder);
}

void material_copy(const char *from, const char *name, char path[MATERIAL_PATH]) {
  static char bytes[1 << 16];
  snprintf(path, MATERIAL_PATH, "%.400s/%.100s", material_folder(), name);
  FILE *in = fopen(from, "rb"), *out = fopen(path, "wb");
  const size_t count = in ? fread(bytes, 1, sizeof bytes, in) : 0;
  CHECK(count && out && fwrite(bytes, 1, count, out) == count, "%s was not copied", from);
  if (in) fclose(in);
  if (out) fclose(out);
}

static void print_array(FILE *to, int input, int channels, int head, bool bias) {
  fprintf(to,
          "{\"input_size\":%d,\"condition_size\":1,\"head_size\":%d,\"channels\":%d,\"kernel_size\":3,\"dilations\":"
          "[1,2,4,8,16,32,64,128,256,512],\"activation\":\"Tanh\",\"gated\":false,\"head_bias\":%s}",
          input, head, channels, bias ? "true" : "false");
}

void material_amp(const char *name, int channels, char path[MATERIAL_PATH]) {
  const int c = channels, h = channels / 2;
  /* per array: the input's 1x1; per layer convolution, mix-in, 1x1; the head's 1x1. Then the scale of the head. */
  const int count = c + 10 * (4 * c * c + 3 * c) + c * h + h * c + 10 * (4 * h * h + 3 * h) + h + 1 + 1;
  uint64_t seed = 3;
  snprintf(path, MATERIAL_PATH, "%.400s/%.100s", material_folder(), name);
  FILE *to = fopen(path, "w");
  CHECK(to != NULL, "%s", path);
  if (!to) return;
  fputs("{\"version\":\"0.5.4\",\"architecture\":\"WaveNet\",\"sample_rate\":48000,\"config\":{\"head\":null,"
        "\"head_scale\":0.02,\"layers\":[",
        to);
  print_array(to, 1, c, h, false);
  fputc(',', to);
  print_array(to, c, h, 1, true);
  fputs("]},\"weights\":[", to);
  for (int i = 0; i < count; i++) fprintf(to, "%s%.5f", i ? "," : "", 0.3 * (double)hk_test_float(&seed));
  fputs("]}\n", to);
  fclose(to);
}

void material_cabinet(const char *name, int64_t frames, int channels, int rate, float *ir, char path[MATERIAL_PATH]) {
  float *samples = ir ? ir : malloc((size_t)(frames * channels) * sizeof *samples);
  uint64_t seed = (uint64_t)frames;
  for (int64_t i = 0; i < frames * channels; i++)
    samples[i] = 0.2f * hk_test_float(&seed) * (float)exp(-8.0 * (double)(i / channels) / (double)frames);
  snprintf(path, MATERIAL_PATH, "%.400s/%.100s", material_folder(), name);
  SF_INFO info = {.samplerate = rate, .channels = channels, .format = SF_FORMAT_WAV | SF_FORMAT_FLOAT};
  SNDFILE *file = sf_open(path, SFM_WRITE, &info);
  CHECK(file && sf_writef_float(file, samples, frames) == frames, "%s", path);
  sf_close(file);
  if (!ir) free(samples);
}
