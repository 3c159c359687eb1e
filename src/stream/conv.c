/* A chain of one convolution from a problem: the stream computes what a plan of the same problem computes over the
 * whole signal. Refuses what has no meaning block by block (other ranks and types, batches, padding that is not causal,
 * input dilation, user functions) and channels without a constant stride. */
#include <string.h>

#include "stream/stream.h"

static hk_status check_problem(const hk_geom *g, const hk_epi *epi, const hk_options *o) {
  if (g->rank != 1) return hk_fail(HK_UNSUPPORTED, "rank is %d; a stream is one-dimensional", g->rank);
  if (g->x_type != HK_F32 || g->f_type != HK_F32 || g->y_type != HK_F32) {
    return hk_fail(HK_UNSUPPORTED, "x, f and y of a stream are f32, not %s, %s, %s", hk_type_name(g->x_type),
                   hk_type_name(g->f_type), hk_type_name(g->y_type));
  }
  if (g->batch_grouped || g->n != 1)
    return hk_fail(HK_UNSUPPORTED, "a stream has a batch of 1, not %lld", (long long)g->n);
  if (g->in_dil[2] != 1)
    return hk_fail(HK_UNSUPPORTED, "in_dilation is %lld; a stream takes 1", (long long)g->in_dil[2]);
  if (g->lo[2] != g->dil[2] * (g->win[2] - 1) || g->hi[2] != 0) {
    return hk_fail(HK_UNSUPPORTED, "padding is %lld, %lld; a stream is causal: dilation*(window-1) = %lld, 0",
                   (long long)g->lo[2], (long long)g->hi[2], (long long)(g->dil[2] * (g->win[2] - 1)));
  }
  if (g->x.offset || g->y.offset) return hk_fail(HK_UNSUPPORTED, "x and y of a stream have no offset");
  const hk_epilogue *e = &epi->e;
  if (e->act == HK_ACT_USER || e->act2 == HK_ACT_USER || e->user2 || e->store) {
    return hk_fail(HK_UNSUPPORTED, "user functions do not run inside a stream");
  }
  if (e->c_strided) return hk_fail(HK_UNSUPPORTED, "the residual of a stream is its own input: c_strided must be 0");
  if (o && o->device != HK_CPU) return hk_fail(HK_UNSUPPORTED, "streams run on the CPU");
  return HK_OK;
}

/* Returns the constant stride between channels, across groups too. */
static bool channel_distance(const hk_strides *s, int64_t groups, int64_t per_group, int64_t *distance) {
  *distance = per_group > 1 ? s->channel : groups > 1 ? s->group : 1;
  return groups == 1 || per_group == 1 || s->group == s->channel * per_group;
}

/* f in the order of hk_step, scaled: act(acc*scale + bias) is the same with the scale folded into f. */
static void gather_weights(const hk_geom *g, const hk_epi *epi, const hk_weights *w, float *f) {
  const float *from = (const float *)w->f + g->f.offset, *scale = w->scale;
  for (int64_t k = 0; k < g->k * g->groups; k++) {
    const float factor = epi->e.scale == 2 ? scale[k] : epi->e.scale == 1 ? scale[0] : 1.0f;
    const float *row = from + k / g->k * g->f.group + k % g->k * g->f.outer;
    for (int64_t c = 0; c < g->c; c++) {
      for (int64_t s = 0; s < g->win[2]; s++) *f++ = factor * row[c * g->f.channel + s * g->f.at[2]];
    }
  }
}

static hk_status create(hk_chain **chain, const hk_geom *g, const hk_epi *epi, const hk_options *o,
                        const hk_weights *w) {
  const hk_epilogue *e = &epi->e;
  if (!w || !w->f) return hk_fail(HK_INVALID, "weights.f is missing; a stream takes its weights at creation");
  if ((e->scale && !w->scale) || (e->bias && !w->bias))
    return hk_fail(HK_INVALID, "weights.scale or weights.bias is missing");
  hk_chain_desc d = {.size = sizeof d,
                     .channels = g->c * g->groups,
                     .max_block = g->in[2],
                     .count = 1,
                     .isa = o ? o->isa : HK_ISA_BEST,
                     .x_time = g->x.at[2],
                     .y_time = g->y.at[2]};
  const bool halved = g->y_channels != g->k * g->groups;
  if (!channel_distance(&g->x, g->groups, g->c, &d.x_channel) ||
      !channel_distance(&g->y, halved ? 1 : g->groups, halved ? g->y_channels : g->k, &d.y_channel)) {
    return hk_fail(HK_UNSUPPORTED, "the channels of x or y do not lie at one distance");
  }
  hk_step step = {.size = sizeof step,
                  .kind = HK_STEP_CONV,
                  .x = 1,
                  .k = g->k * g->groups,
                  .window = g->win[2],
                  .dilation = g->dil[2],
                  .stride = g->stride[2],
                  .groups = g->groups,
                  .f = w->f, /* until they are gathered: sizes are checked first */
                  .bias = e->bias ? w->bias : NULL,
                  .act = {.act = e->act, .a = e->a, .b = e->b, .slopes = w->slopes},
                  .act2 = {.act = e->act2, .a = e->a2, .b = e->b2, .slopes = w->slopes},
                  .gate = e->gate,
                  .residual = e->residual,
                  .add = e->residual ? 1 : 0,
                  .beta = e->beta};
  d.steps = &step;
  hk_status status = hk_chain_measure(&d, NULL, NULL);
  if (status) return status;
  float *f = hk_alloc((size_t)(g->k * g->groups * g->c * g->win[2]) * sizeof(float));
  if (!f) return hk_fail(HK_NO_MEMORY, "no memory to gather the weights");
  gather_weights(g, epi, w, f);
  step.f = f;
  status = hk_chain_create(chain, &d, NULL, 0);
  hk_free(f);
  return status;
}

HK_API hk_status hk_chain_create_conv(hk_chain **chain, const hk_problem *problem, const hk_epilogue *epilogue,
                                      const hk_options *options, const hk_weights *weights) {
  if (!chain) return hk_fail(HK_INVALID, "chain is NULL");
  hk_problem room;
  hk_epilogue room_e;
  hk_options room_o;
  hk_weights room_w;
  if (!(problem = hk_take(problem, &room, sizeof room, "problem")) ||
      (epilogue && !(epilogue = hk_take(epilogue, &room_e, sizeof room_e, "epilogue"))) ||
      (options && !(options = hk_take(options, &room_o, sizeof room_o, "options"))) ||
      (weights && !(weights = hk_take(weights, &room_w, sizeof room_w, "weights"))))
    return HK_INVALID;
  hk_geom g;
  hk_epi epi;
  hk_status e = hk_geom_make(&g, problem, epilogue && epilogue->gate != HK_GATE_NONE);
  if (!e) e = hk_epi_make(&epi, epilogue, problem);
  if (!e) e = check_problem(&g, &epi, options);
  if (!e && weights) e = hk_weights_check(&g, weights);
  if (!e)
    g.stride[2] = problem->stride[0]; /* the stride of the stream, not of one block, which may have a single output */
  return e ? e : create(chain, &g, &epi, options, weights);
}
