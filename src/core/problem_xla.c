/* Problems from XLA's dimension numbers: specs name the axes, tensors are dense in spec order. */
#include <string.h>

#include "core/core.h"

typedef struct spec {
  int outer, channel, at[HK_MAX_RANK]; /* positions of the axes */
  int64_t step[HK_MAX_RANK + 2];       /* dense strides by position */
} spec;

/* Reads "NHWC" against the spatial letters of x; fills positions. letters: the spatial letters in x's order. */
static hk_status read_spec(const char *name, const char *text, char outer, char channel, const char *letters, spec *s) {
  const int rank = (int)strlen(letters);
  if (!text || (int)strlen(text) != rank + 2)
    return hk_fail(HK_INVALID, "%s = \"%s\" must have %d letters", name, text ? text : "(null)", rank + 2);
  const char *o = strchr(text, outer), *c = strchr(text, channel);
  if (!o || !c) return hk_fail(HK_INVALID, "%s = \"%s\" must hold %c and %c", name, text, outer, channel);
  s->outer = (int)(o - text), s->channel = (int)(c - text);
  for (int i = 0; i < rank; i++) {
    const char *at = strchr(text, letters[i]);
    if (!at || strrchr(text, letters[i]) != at)
      return hk_fail(HK_INVALID, "%s = \"%s\" must hold the spatial letter %c once", name, text, letters[i]);
    s->at[i] = (int)(at - text);
  }
  return HK_OK;
}

static bool dense_steps(spec *s, const int64_t *shape, int count) {
  int64_t step = 1;
  for (int i = count - 1; i >= 0; i--) {
    s->step[i] = step;
    if (!hk_mul_checked(step, hk_max64(shape[i], 1), &step)) return false;
  }
  return true;
}

static void lay(hk_strides *t, const spec *s, int rank) {
  memset(t, 0, sizeof *t);
  t->outer = s->step[s->outer];
  t->channel = s->step[s->channel];
  for (int i = 0; i < rank; i++) t->at[i] = s->step[s->at[i]];
}

static hk_status spatial_letters(const char *x_spec, char *letters) {
  int n = 0;
  for (const char *s = x_spec; s && *s; s++)
    if (*s != 'N' && *s != 'C') {
      if (n == HK_MAX_RANK) return hk_fail(HK_INVALID, "x_spec = \"%s\" has more than 3 spatial letters", x_spec);
      letters[n++] = *s;
    }
  letters[n] = 0;
  if (n < 1) return hk_fail(HK_INVALID, "x_spec = \"%s\" must have 1 to 3 spatial letters", x_spec ? x_spec : "(null)");
  return HK_OK;
}

static void fill(hk_problem *p, const hk_xla_desc *d, const spec *x, const spec *f, int rank) {
  memset(p, 0, sizeof *p);
  p->size = sizeof *p;
  p->rank = rank;
  p->x_type = d->x_type, p->f_type = d->f_type, p->y_type = d->y_type;
  p->feature_groups = d->feature_group_count ? d->feature_group_count : 1;
  p->batch_groups = d->batch_group_count ? d->batch_group_count : 1;
  p->n = d->x_shape[x->outer], p->c = d->x_shape[x->channel], p->k = d->f_shape[f->outer];
  for (int i = 0; i < rank; i++) {
    p->in[i] = d->x_shape[x->at[i]], p->window[i] = d->f_shape[f->at[i]];
    p->stride[i] = d->strides ? d->strides[i] : 1;
    p->dilation[i] = d->rhs_dilation ? d->rhs_dilation[i] : 1;
    p->in_dilation[i] = d->lhs_dilation ? d->lhs_dilation[i] : 1;
    if (d->padding) p->pad_lo[i] = d->padding[2 * i], p->pad_hi[i] = d->padding[2 * i + 1];
  }
}

hk_status hk_problem_xla(hk_problem *made, const hk_xla_desc *d) {
  hk_problem q, *p = &q; /* the caller's is written only when all is well */
  char letters[HK_MAX_RANK + 1];
  spec x, f, y;
  hk_status s;
  if (!made) return hk_fail(HK_INVALID, "problem is NULL");
  hk_xla_desc room;
  if (!(d = hk_take(d, &room, sizeof room, "desc"))) return HK_INVALID;
  if (!d->x_shape || !d->f_shape) return hk_fail(HK_INVALID, "x_shape and f_shape must not be NULL");
  if ((s = spatial_letters(d->x_spec, letters)) || (s = read_spec("x_spec", d->x_spec, 'N', 'C', letters, &x)) ||
      (s = read_spec("f_spec", d->f_spec, 'O', 'I', letters, &f)) ||
      (s = read_spec("y_spec", d->y_spec, 'N', 'C', letters, &y)))
    return s;
  const int rank = (int)strlen(letters);
  fill(p, d, &x, &f, rank);
  int64_t out[HK_MAX_RANK], n_out, y_shape[HK_MAX_RANK + 2];
  if ((s = hk_problem_output(p, out, &n_out))) return s;
  if (d->f_shape[f.channel] < 0 || p->c % p->feature_groups || p->c / p->feature_groups != d->f_shape[f.channel])
    return hk_fail(HK_INVALID, "the I size %lld of f times feature_group_count %lld must be c = %lld",
                   (long long)d->f_shape[f.channel], (long long)p->feature_groups, (long long)p->c);
  y_shape[y.outer] = n_out, y_shape[y.channel] = p->k;
  for (int i = 0; i < rank; i++) y_shape[y.at[i]] = out[i];
  if (!dense_steps(&x, d->x_shape, rank + 2) || !dense_steps(&f, d->f_shape, rank + 2) ||
      !dense_steps(&y, y_shape, rank + 2))
    return hk_fail(HK_INVALID, "the number of elements of a tensor overflows 63 bits");
  lay(&p->x, &x, rank), lay(&p->f, &f, rank), lay(&p->y, &y, rank);
  const int64_t groups = p->feature_groups * p->batch_groups;
  if (groups > 1) {
    p->x.group = p->batch_groups > 1 ? n_out * p->x.outer : p->c / groups * p->x.channel;
    p->f.group = p->k / groups * p->f.outer;
    p->y.group = p->k / groups * p->y.channel;
  }
  if ((s = hk_problem_check(p))) return s;
  *made = q;
  return HK_OK;
}
