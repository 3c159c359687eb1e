/* The steps of a model under construction, and the memory their weights live in until the chain has copied them. */
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "nam.h"

struct nam_chunk {
  nam_chunk *next;
  float at[];
};

void nam_net_free(nam_net *net) {
  while (net->chunks) {
    nam_chunk *next = net->chunks->next;
    free(net->chunks);
    net->chunks = next;
  }
  free(net->step);
  free(net->channels);
}

float *nam_floats(nam_net *net, size_t count) {
  nam_chunk *c = count < (size_t)MAX_BYTES ? malloc(sizeof *c + (count ? count : 1) * sizeof(float)) : NULL;
  if (!c) {
    nam_fail("no memory for %zu weights", count);
    return NULL;
  }
  c->next = net->chunks;
  net->chunks = c;
  return c->at;
}

bool nam_read_weights(nam_net *net, json_t *array, nam_weights *w) {
  if (!json_is_array(array)) return nam_fail("weights must be an array");
  const size_t count = json_array_size(array);
  float *to = nam_floats(net, count);
  if (!to) return false;
  for (size_t i = 0; i < count; i++) {
    json_t *v = json_array_get(array, i);
    if (!json_is_number(v)) return nam_fail("weights[%zu] is not a number", i);
    to[i] = (float)json_number_value(v);
    if (!isfinite(to[i])) return nam_fail("weights[%zu] does not fit f32", i);
  }
  *w = (nam_weights){to, count, count};
  return true;
}

bool nam_take(nam_weights *w, double count, const float **at) {
  if (count > (double)w->left) {
    return nam_fail("the file has %zu weights, too few: %.0f more are needed after %zu", w->total, count,
                    w->total - w->left);
  }
  *at = w->at;
  w->at += (size_t)count;
  w->left -= (size_t)count;
  return true;
}

bool nam_end(const nam_weights *w) {
  return !w->left || nam_fail("the file has %zu weights, %zu too many", w->total, w->left);
}

static bool grow(nam_net *net, int32_t room) {
  hk_step *steps = room > 2 * MAX_STEPS ? NULL : realloc(net->step, (size_t)room * sizeof *steps);
  if (steps) net->step = steps;
  int64_t *channels = steps ? realloc(net->channels, ((size_t)room + 2) * sizeof *channels) : NULL;
  if (!channels) return nam_fail("the model has too many layers, or memory is out");
  net->channels = channels;
  net->room = room;
  return true;
}

bool nam_net_start(nam_net *net, int64_t channels) {
  if (!grow(net, 64)) return false;
  net->channels[0] = 0;
  net->channels[1] = channels;
  return true;
}

int32_t nam_step(nam_net *net, const hk_step *step, int64_t channels) {
  if (net->count == net->room && !grow(net, 2 * net->room)) return 0;
  net->step[net->count] = *step;
  net->step[net->count].size = sizeof *step;
  net->channels[net->count + 2] = channels;
  return ++net->count + 1;
}

void nam_describe(nam_net *net, const char *format, ...) {
  va_list args;
  va_start(args, format);
  const size_t room = sizeof net->layers - net->layers_length;
  const int n = vsnprintf(net->layers + net->layers_length, room, format, args);
  va_end(args);
  if (n > 0) net->layers_length += (size_t)n < room ? (size_t)n : room - 1;
}

/* [out][in/groups][kernel] of the file, cut to the kept channels */
static bool cut(nam_net *net, const nam_conv *c, const float *f, const float *bias, hk_step *step) {
  float *to = nam_floats(net, (size_t)(c->keep_out * c->keep_in * c->kernel + c->keep_out));
  if (!to) return false;
  step->f = to;
  for (int64_t o = 0; o < c->keep_out; o++) {
    for (int64_t i = 0; i < c->keep_in; i++) {
      memcpy(to, f + (o * c->in + i) * c->kernel, (size_t)c->kernel * sizeof(float));
      to += c->kernel;
    }
  }
  step->bias = bias ? memcpy(to, bias, (size_t)c->keep_out * sizeof(float)) : NULL;
  return true;
}

bool nam_read_conv(nam_net *net, nam_weights *w, const nam_conv *given, hk_step *step) {
  nam_conv c = *given;
  if (!c.keep_in) c.keep_in = c.in;
  if (!c.keep_out) c.keep_out = c.out;
  if (c.groups < 1 || c.in % c.groups || c.out % c.groups) {
    return nam_fail("%lld groups do not divide %lld inputs and %lld outputs", (long long)c.groups, (long long)c.in,
                    (long long)c.out);
  }
  const bool all = c.keep_in == c.in && c.keep_out == c.out;
  if (!all && c.groups > 1) return nam_fail("a slimmable model with groups is not defined");
  const float *f = NULL, *bias = NULL;
  if (!nam_take(w, (double)c.out * (double)(c.in / c.groups) * (double)c.kernel, &f)) return false;
  if (c.bias && !nam_take(w, (double)c.out, &bias)) return false;
  step->k = c.keep_out;
  step->window = c.kernel;
  step->dilation = c.dilation;
  step->groups = c.groups;
  step->f = f;
  step->bias = bias;
  return all || cut(net, &c, f, bias, step);
}

int32_t nam_add(nam_net *net, int32_t a, int32_t b) {
  const hk_step s = {.kind = HK_STEP_MAP, .x = a, .residual = HK_RESIDUAL_AFTER, .add = b, .beta = 1.0f};
  return nam_step(net, &s, net->channels[a]);
}
