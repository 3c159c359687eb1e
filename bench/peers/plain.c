/* Reading a problem as a plain convolution: f32, rank 1 or 2, dense in either layout, no input dilation, no filter
 * reversal, no batch groups; an epilogue of bias and relu at most. */
#include "plain.h"

#include <stdio.h>
#include <string.h>

static bool refuse(char *why, const char *text) {
  snprintf(why, PEER_WHY, "%s", text);
  return false;
}

/* Whether a tensor of n x c channels has these strides, given for two dimensions. */
static bool same(const hk_strides *a, const hk_strides *two, int rank, int64_t n, int64_t c) {
  if (a->offset) return false;
  if (n > 1 && a->outer != two->outer) return false;
  if (c > 1 && a->channel != two->channel) return false;
  if (rank == 1) return a->at[0] == two->at[1];
  return a->at[0] == two->at[0] && a->at[1] == two->at[1];
}

/* The dense strides of c channels of h x w in either layout. */
static hk_strides dense_strides(int64_t c, int64_t h, int64_t w, bool last) {
  if (last) return (hk_strides){.outer = h * w * c, .channel = 1, .at = {w * c, c}};
  return (hk_strides){.outer = c * h * w, .channel = h * w, .at = {w, 1}};
}

static bool dense(const hk_problem *p, const plain_conv *v, bool last) {
  const int64_t cg = v->c / v->groups, kg = v->k / v->groups;
  const hk_strides x = dense_strides(v->c, v->h, v->w, last), f = dense_strides(cg, v->r, v->s, last);
  const hk_strides y = dense_strides(v->k, v->p, v->q, last);
  return same(&p->x, &x, p->rank, v->n, cg) && same(&p->f, &f, p->rank, kg, cg) && same(&p->y, &y, p->rank, v->n, kg);
}

static bool read_epilogue(const hk_epilogue *e, plain_conv *v, char *why) {
  if (!e) return true;
  v->bias = e->bias != 0;
  v->relu = e->act == HK_ACT_RELU;
  if (e->scale || e->gate || e->residual || e->user || e->user2 || e->store || (e->act && !v->relu))
    return refuse(why, "only bias and relu");
  return true;
}

bool plain_read(const hk_peer_job *job, plain_conv *v, char *why) {
  const hk_problem *p = job->problem;
  if (p->rank > 2) return refuse(why, "rank 1 and 2 only");
  if (p->x_type != HK_F32 || p->f_type != HK_F32 || p->y_type != HK_F32) return refuse(why, "f32 only");
  if (p->batch_groups > 1) return refuse(why, "no batch groups");
  memset(v, 0, sizeof *v);
  v->n = p->n, v->c = p->c, v->k = p->k, v->groups = p->feature_groups ? p->feature_groups : 1;
  v->h = v->r = v->p = v->stride[0] = v->dil[0] = 1;
  for (int d = 0; d < p->rank; d++) {
    const int to = d + 2 - p->rank;
    if (p->in_dilation[d] > 1 || p->reverse[d] || p->pad_lo[d] < 0 || p->pad_hi[d] < 0)
      return refuse(why, "input dilation, reversal or cropping");
    *(to ? &v->w : &v->h) = p->in[d];
    *(to ? &v->s : &v->r) = p->window[d];
    v->stride[to] = p->stride[d], v->lo[to] = p->pad_lo[d], v->hi[to] = p->pad_hi[d], v->dil[to] = p->dilation[d];
  }
  v->p = (v->h + v->lo[0] + v->hi[0] - v->dil[0] * (v->r - 1) - 1) / v->stride[0] + 1;
  v->q = (v->w + v->lo[1] + v->hi[1] - v->dil[1] * (v->s - 1) - 1) / v->stride[1] + 1;
  v->last = dense(p, v, true);
  if (!v->last && !dense(p, v, false)) return refuse(why, "neither dense layout");
  return read_epilogue(job->epilogue, v, why);
}
