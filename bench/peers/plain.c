/* Reading a problem as a plain convolution: dense in either layout, no input dilation, no filter reversal, no batch
 * groups; an epilogue of scale, bias and relu at most. */
#include "plain.h"

#include <stdio.h>
#include <string.h>

static bool refuse(char *why, const char *text) {
  snprintf(why, PEER_WHY, "%s", text);
  return false;
}

/* Whether a tensor of n x c channels has these strides, given for three dimensions. */
static bool same(const hk_strides *a, const hk_strides *three, int rank, int64_t n, int64_t c) {
  if (a->offset) return false;
  if (n > 1 && a->outer != three->outer) return false;
  if (c > 1 && a->channel != three->channel) return false;
  for (int d = 0; d < rank; d++)
    if (a->at[d] != three->at[d + 3 - rank]) return false;
  return true;
}

/* The dense strides of c channels of this size in either layout. */
static hk_strides dense_strides(int64_t c, const int64_t *size, bool last) {
  const int64_t row = last ? c : 1, w = size[2], plane = size[1] * w;
  hk_strides s = {.outer = size[0] * plane * c, .channel = last ? 1 : size[0] * plane};
  s.at[0] = plane * row, s.at[1] = w * row, s.at[2] = row;
  return s;
}

static bool dense(const hk_problem *p, const plain_conv *v, bool last) {
  const int64_t cg = v->c / v->groups, kg = v->k / v->groups;
  const hk_strides x = dense_strides(v->c, v->in, last), f = dense_strides(cg, v->win, last);
  const hk_strides y = dense_strides(v->k, v->out, last);
  return same(&p->x, &x, p->rank, v->n, cg) && same(&p->f, &f, p->rank, kg, cg) && same(&p->y, &y, p->rank, v->n, kg);
}

static bool read_epilogue(const hk_epilogue *e, plain_conv *v, char *why) {
  if (!e) return true;
  v->scale = e->scale != 0;
  v->bias = e->bias != 0;
  v->relu = e->act == HK_ACT_RELU;
  if (e->gate || e->residual || e->user || e->user2 || e->store || (e->act && !v->relu))
    return refuse(why, "only scale, bias and relu");
  return true;
}

bool plain_read(const hk_peer_job *job, plain_conv *v, char *why) {
  const hk_problem *p = job->problem;
  if (p->batch_groups > 1) return refuse(why, "no batch groups");
  memset(v, 0, sizeof *v);
  v->rank = p->rank < 3 ? 2 : 3;
  v->n = p->n, v->c = p->c, v->k = p->k, v->groups = p->feature_groups ? p->feature_groups : 1;
  for (int d = 0; d < 3; d++) v->in[d] = v->win[d] = v->stride[d] = v->dil[d] = 1;
  for (int d = 0; d < p->rank; d++) {
    const int to = d + 3 - p->rank;
    if (p->in_dilation[d] > 1 || p->reverse[d] || p->pad_lo[d] < 0 || p->pad_hi[d] < 0)
      return refuse(why, "input dilation, reversal or cropping");
    v->in[to] = p->in[d], v->win[to] = p->window[d];
    v->stride[to] = p->stride[d], v->lo[to] = p->pad_lo[d], v->hi[to] = p->pad_hi[d], v->dil[to] = p->dilation[d];
  }
  for (int d = 0; d < 3; d++)
    v->out[d] = (v->in[d] + v->lo[d] + v->hi[d] - v->dil[d] * (v->win[d] - 1) - 1) / v->stride[d] + 1;
  v->last = dense(p, v, true);
  if (!v->last && !dense(p, v, false)) return refuse(why, "neither dense layout");
  return read_epilogue(job->epilogue, v, why);
}

bool plain_read_f32(const hk_peer_job *job, plain_conv *v, char *why) {
  const hk_problem *p = job->problem;
  if (p->x_type != HK_F32 || p->f_type != HK_F32 || p->y_type != HK_F32) return refuse(why, "f32 only");
  if (p->rank > 2) return refuse(why, "rank 1 and 2 only");
  if (!plain_read(job, v, why)) return false;
  return !v->scale || refuse(why, "only bias and relu");
}
