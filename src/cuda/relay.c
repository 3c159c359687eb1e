/* x laid out for the copy engine in the plan's workspace: channels innermost, each group padded with zeros to whole 128-byte
 * runs (one group: to 16 bytes), input dilation filled in. Serves what im2col cannot walk where it lies: channels-first,
 * odd channel counts, narrow groups, batch groups, input dilation, negative or unaligned strides. */
#include "cuda/cuda.h"

#include <stdio.h>
#include <string.h>

/* The geometry that the igemm kernel then sees. */
static hk_geom relaid(const hk_geom *g) {
  hk_geom to = *g;
  const int64_t unit = (g->groups > 1 ? 128 : 16) / (int64_t)hk_type_bytes(g->x_type);
  to.c = hk_round_up(g->c, unit);
  to.gk = to.c * g->taps;
  to.batch_grouped = false;
  for (int d = 0; d < 3; ++d) to.in[d] = g->in_span[d], to.in_dil[d] = 1;
  to.x = (hk_strides){.group = to.c, .channel = 1};
  to.x.at[2] = to.c * g->groups;
  to.x.at[1] = to.x.at[2] * to.in[2];
  to.x.at[0] = to.x.at[1] * to.in[1];
  to.x.outer = to.x.at[0] * to.in[0];
  return to;
}

bool hk_cu_relay_takes(const hk_geom *g, hk_geom *to, size_t *bytes, char *why) {
  hk_cu_map map;
  int64_t pixels;
  *to = relaid(g);
  if (!hk_mul_checked(to->in[0] * to->in[1], to->in[2], &pixels) || pixels > INT32_MAX - 64)
    return snprintf(why, HK_CU_REASON, "an image of more than 2^31 pixels"), false;
  if (g->n * g->groups * hk_ceil_div(pixels, 64) * hk_ceil_div(to->c, 64) > INT32_MAX)
    return snprintf(why, HK_CU_REASON, "more tiles of x than 2^31"), false;
  *bytes = (size_t)(to->x.outer * g->n) * hk_type_bytes(g->x_type);
  return hk_cu_map_make(to, &map, why);
}

hk_status hk_cu_relay_build(hk_cu_relay_state *s, const hk_geom *g) {
  const hk_geom to = relaid(g);
  hk_cu_relay *p = &s->params;
  memset(s, 0, sizeof *s);
  p->view = (hk_cu_view){0, g->x.group, g->x.outer, g->x.channel, {g->x.at[0], g->x.at[1], g->x.at[2]}};
  p->n = g->n, p->groups = g->groups, p->cg = g->c, p->run = to.c;
  p->pixels = to.in[0] * to.in[1] * to.in[2];
  for (int d = 0; d < 3; ++d) p->in[d] = (int)g->in[d], p->span[d] = (int)to.in[d], p->dil[d] = (int)g->in_dil[d];
  p->bytes = (int)hk_type_bytes(g->x_type);
  p->c_inner = g->x.channel == 1;
  p->tiles = g->n * g->groups * hk_ceil_div(p->pixels, 64) * hk_ceil_div(p->run, 64);
  s->blocks = hk_min64(p->tiles, 132 * 8);
  return hk_cu_kernel_find("pack", p->bytes == 1 ? "hk_relay_1" : p->bytes == 2 ? "hk_relay_2" : "hk_relay_4", 0, &s->kernel);
}

hk_status hk_cu_relay_run(const hk_cu_relay_state *s, const void *x, void *to, void *stream) {
  hk_cu_relay p = s->params;
  p.x = x;
  p.to = to;
  return hk_cu_kernel_run(s->kernel, s->blocks, 256, 1, 0, stream, &p);
}
