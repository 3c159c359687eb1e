/* The configuration of a WaveNet's layer arrays, read and checked. */
#ifndef NAM_LAYERS_H
#define NAM_LAYERS_H
#include "nam.h"

enum { CONV_PRE, CONV_POST, MIXIN_PRE, MIXIN_POST, ACT_PRE, ACT_POST, LAYER1X1_POST, HEAD1X1_POST, FILMS };

typedef struct film {
  bool active, shift;
  int64_t groups;
} film;

typedef struct layer_array {
  const nam_value *config;
  int64_t input, condition, channels, bottleneck, layers; /* as in the file */
  int64_t groups_input, groups_mixin, layer1x1_groups, head1x1_groups, head1x1_out;
  bool layer1x1, head1x1, head_bias;
  int64_t head_out, head_kernel, head_dilation;
  film films[FILMS];
  int64_t allowed[MAX_SIZES]; /* slimmable: channel counts, ascending; the last is channels */
  int32_t allowed_count;
  /* what is kept of it at the size in question */
  int64_t keep_input, keep_channels, keep_bottleneck, keep_head_out;
} layer_array;

typedef struct layer { /* one of an array */
  int64_t kernel, dilation;
  hk_gate gate;
  hk_step_act act, act2;
  const char *act_name;
} layer;

bool layers_read(const nam_value *config, layer_array *arrays, int32_t *count, int32_t room);
void layers_keep(layer_array *arrays, int32_t count, double ratio);
bool layer_read(const layer_array *a, int64_t index, nam_net *net, layer *l);
#endif
