/* hankel-nam info: what a file holds. */
#include <stdio.h>

#include "program.h"

static void level(const char *name, int has, double value, const char *unit) {
  if (has) printf("%-16s %.2f %s\n", name, value, unit);
}

int verb_info(const arguments *a) {
  hk_nam_facts f;
  hk_nam *m = program_load(a, &f);
  if (!m) return 1;
  printf("%-16s %s, version %s\n", "architecture", f.architecture, f.version);
  if (*f.name) printf("%-16s %s\n", "name", f.name);
  if (*f.modeled_by) printf("%-16s %s\n", "modeled by", f.modeled_by);
  if (*f.gear) printf("%-16s %s\n", "gear", f.gear);
  if (f.sample_rate > 0) printf("%-16s %g Hz\n", "sample rate", f.sample_rate);
  else printf("%-16s not given: any file's rate is used\n", "sample rate");
  printf("%-16s %d in, %d out\n", "channels", f.in_channels, f.out_channels);
  if (f.sizes > 1) printf("%-16s %d; this is number %d\n", "sizes", f.sizes, f.at_size + 1);
  level("loudness", f.has_loudness, f.loudness, "dB");
  level("input level", f.has_input_level, f.input_level_dbu, "dBu");
  level("output level", f.has_output_level, f.output_level_dbu, "dBu");
  printf("%-16s %lld frames%s\n", "receptive field", (long long)f.receptive_field,
         f.recurrent ? " (and a recurrent state)" : "");
  printf("%-16s %.0f multiply-adds per frame\n", "work", f.flops / 2);
  printf("%-16s %zu bytes, kernels for %s\n", "memory", f.bytes, f.isa);
  fputs(f.layers, stdout);
  hk_nam_free(m);
  return 0;
}
