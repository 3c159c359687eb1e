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
  free(net->signal);
}

float *nam_floats(nam_net *net, size_t count) {
  const size_t bytes = count < (size_t)MAX_LOAD ? sizeof(nam_chunk) + (count ? count : 1) * sizeof(float) : SIZE_MAX;
  if (!nam_spend(net->budget, bytes)) return NULL;
  nam_chunk *c = malloc(bytes);
  if (!c) {
    nam_refuse(HK_NO_MEMORY, "no memory for %zu weights", count);
    return NULL;
  }
  c->next = net->chunks;
  net->chunks = c;
  return c->at;
}

bool nam_read_weights(nam_net *net, const nam_value *array, nam_weights *w) {
  if (!nam_is(array, NAM_ARRAY)) return nam_fail("weights must be an array");
  const size_t count = nam_count(array);
  float *to = nam_floats(net, count);
  if (!to) return false;
  const nam_value *v = array + 1;
  for (size_t i = 0; i < count; i++, v = nam_after(v)) {
    if (!nam_is(v, NAM_NUMBER)) return nam_fail("weights[%zu] is not a number", i);
    to[i] = (float)nam_number(v);
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
  if (room > MAX_STEPS)
    return nam_fail("the model has more than %d steps (convolutions, sums, activations)", MAX_STEPS);
  if (!nam_spend(net->budget, (size_t)(room - net->room) * (sizeof *net->step + sizeof *net->signal))) return false;
  hk_step *steps = realloc(net->step, (size_t)room * sizeof *steps);
  if (steps) net->step = steps;
  nam_signal *signals = steps ? realloc(net->signal, ((size_t)room + 2) * sizeof *signals) : NULL;
  if (!signals) return nam_refuse(HK_NO_MEMORY, "no memory for a model of %d steps", room);
  net->signal = signals;
  net->room = room;
  return true;
}

bool nam_net_start(nam_net *net, nam_budget *budget, int64_t channels) {
  net->budget = budget;
  if (!grow(net, 64)) return false;
  net->signal[0] = (nam_signal){0, 0};
  net->signal[1] = (nam_signal){channels, 1};
  return true;
}

static int64_t or_one(int64_t v) { return v ? v : 1; }
static int64_t larger(int64_t a, int64_t b) { return a > b ? a : b; }

/* Operations per frame: products and sums as hk_chain_facts counts them, 20 per channel for activations and sums, and
 * per step what a kernel call costs (an LSTM makes three per frame, the others few per 64 frames). */
static double step_work(const nam_net *net, const hk_step *s, int64_t channels) {
  const double in = (double)net->signal[s->x].channels, k = (double)s->k;
  double work = 20.0 * (double)channels + (s->kind == HK_STEP_LSTM ? 2000.0 : 50.0);
  if (s->kind == HK_STEP_LSTM) work += 8.0 * k * (in + k);
  if (s->kind == HK_STEP_CONV) {
    work += 2.0 * k * in * (double)or_one(s->window) / (double)or_one(s->groups);
    if (s->mix) work += 2.0 * k * (double)net->signal[s->mix].channels / (double)or_one(s->mix_groups);
  }
  return work;
}

static int64_t step_reach(const nam_net *net, const hk_step *s) {
  int64_t reach = net->signal[s->x].reach;
  if (s->kind == HK_STEP_CONV) reach += or_one(s->dilation) * (or_one(s->window) - 1);
  return larger(larger(reach, net->signal[s->mix].reach), larger(net->signal[s->x2].reach, net->signal[s->add].reach));
}

int32_t nam_step(nam_net *net, const hk_step *step, int64_t channels) {
  if (net->count == net->room && !grow(net, 2 * net->room)) return 0;
  net->step[net->count] = *step;
  net->step[net->count].size = sizeof *step;
  net->signal[net->count + 2] = (nam_signal){channels, step_reach(net, step)};
  net->work += step_work(net, step, channels);
  net->recurrent |= step->kind == HK_STEP_LSTM;
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
  return nam_step(net, &s, net->signal[a].channels);
}
