/* Problem strings in benchdnn's form: g4mb1_ic8ih10_oc8oh10_kh3sh1dh0ph1n"name". '_' is ignored, dilation counts from
 * 0, mb is 2 when absent, g divides ic and oc. A dimension that is not given is like the next slower one that is (kh
 * alone means square); the output size is deduced from the padding or the padding from the output size; the padding at
 * the end is what the output size asks for. A deconvolution becomes the input gradient of its forward problem. */
#include <string.h>

#include "core/core.h"
#include "core/text.h"

enum { D, H, W };
typedef struct dims {
  int64_t i, o, k, s, p, d;
  bool any, has_p;
} dims;
typedef struct parse {
  int64_t g, mb, ic, oc;
  dims at[3];
} parse;

static bool token(parse *q, const char **at) {
  static const struct {
    const char *key;
    int kind;
  } whole[] = {{"mb", 0}, {"ic", 1}, {"oc", 2}, {"g", 3}};
  const char *s = *at;
  for (int i = 0; i < HK_COUNT(whole); i++) {
    const size_t n = strlen(whole[i].key);
    if (strncmp(s, whole[i].key, n)) continue;
    s += n;
    int64_t *const to[] = {&q->mb, &q->ic, &q->oc, &q->g};
    if (!hk_text_number(&s, to[whole[i].kind])) return false;
    *at = s;
    return true;
  }
  if (!s[0] || !strchr("iokspd", s[0]) || !s[1] || !strchr("dhw", s[1])) return false;
  dims *d = &q->at[s[1] == 'd' ? D : s[1] == 'h' ? H : W];
  const char kind = s[0];
  int64_t v;
  s += 2;
  if (!hk_text_number(&s, &v)) return false;
  d->any = true;
  switch (kind) {
  case 'i': d->i = v; break;
  case 'o': d->o = v; break;
  case 'k': d->k = v; break;
  case 's': d->s = v; break;
  case 'd': d->d = v; break;
  default: d->p = v, d->has_p = true;
  }
  *at = s;
  return true;
}

static hk_status missing(const char *text, const char *what) {
  return hk_fail(HK_SYNTAX, "benchdnn problem \"%.200s\": %s", text, what);
}

/* Fills in o or p; in a deconvolution i and o change places in the forward formula. */
static hk_status deduce(dims *d, bool deconv, const char *text) {
  int64_t reach, far;
  if (d->i < 1 || d->k < 1) return missing(text, "input and kernel sizes must be given and positive");
  if (d->s < 1 || d->d < 0) return missing(text, "strides must be >= 1 and dilations >= 0");
  if (d->d == INT64_MAX || !hk_mul_checked(d->k - 1, d->d + 1, &reach) || !hk_add_checked(reach, 1, &reach))
    return missing(text, "(k-1)*(d+1)+1 overflows 63 bits");
  if (d->o < 0) return missing(text, "the output size must be positive");
  if (d->p > INT64_MAX / 4 || d->p < -(INT64_MAX / 4)) return missing(text, "padding overflows 63 bits");
  if (!d->o) {
    if (deconv) {
      if (!hk_mul_checked(d->i - 1, d->s, &far) || !hk_add_checked(far, reach, &far) ||
          !hk_add_checked(far, -2 * d->p, &d->o))
        return missing(text, "the output size overflows 63 bits");
    } else {
      if (!hk_add_checked(d->i, 2 * d->p, &far)) return missing(text, "the padded size overflows 63 bits");
      if (far < reach) return missing(text, "the window is larger than the padded input");
      d->o = (far - reach) / d->s + 1;
    }
    if (d->o < 1) return missing(text, "the output size must be positive");
  } else if (!d->has_p) {
    const int64_t small = deconv ? d->i : d->o, large = deconv ? d->o : d->i;
    if (!hk_mul_checked(small - 1, d->s, &far) || !hk_add_checked(far, -large, &far) ||
        !hk_add_checked(far, reach, &far))
      return missing(text, "the padding overflows 63 bits");
    d->p = far / 2;
  }
  return HK_OK;
}

static hk_status build(hk_problem *out, const parse *q, int first, bool deconv, const char *text) {
  hk_problem p;
  memset(&p, 0, sizeof p);
  p.size = sizeof p;
  p.rank = 3 - first;
  p.n = q->mb, p.feature_groups = q->g, p.batch_groups = 1;
  p.c = deconv ? q->oc : q->ic, p.k = deconv ? q->ic : q->oc;
  for (int i = 0; i < p.rank; i++) {
    const dims *d = &q->at[first + i];
    const int64_t in = deconv ? d->o : d->i, o = deconv ? d->i : d->o;
    int64_t far, reach = 0;
    if (d->k < 1 || !hk_mul_checked(d->k - 1, d->d + 1, &reach) || !hk_mul_checked(o - 1, d->s, &far) ||
        !hk_add_checked(far, reach + 1, &far) || !hk_add_checked(far, -in, &far) || !hk_add_checked(far, -d->p, &far))
      return missing(text, "the padding overflows 63 bits");
    p.in[i] = in, p.window[i] = d->k, p.stride[i] = d->s, p.dilation[i] = d->d + 1, p.in_dilation[i] = 1;
    p.pad_lo[i] = d->p, p.pad_hi[i] = far;
  }
  hk_status s = hk_problem_dense(&p, HK_CHANNELS_FIRST);
  if (s || (s = hk_problem_check(&p))) return s;
  if (deconv) return hk_problem_grad_input(&p, out);
  *out = p;
  return HK_OK;
}

hk_status hk_problem_parse_benchdnn(hk_problem *p, const char *text, bool deconv) {
  parse q = {.g = 1, .mb = 2};
  for (int d = 0; d < 3; d++) q.at[d].s = 1;
  for (const char *s = text; *s && *s != '\n';) {
    if (*s == '_' || *s == ' ' || *s == '\t' || *s == '\r') s++;
    else if (*s == 'n' && s[1] == '"') break;
    else if (!token(&q, &s)) return hk_fail(HK_SYNTAX, "benchdnn problem \"%.200s\": cannot read \"%.40s\"", text, s);
  }
  if (q.ic < 1 || q.oc < 1) return missing(text, "ic and oc must be given and positive");
  const int first = q.at[D].any ? D : q.at[H].any ? H : W;
  if (!q.at[D].any && !q.at[H].any && !q.at[W].any) return missing(text, "no spatial size is given");
  for (int d = first; d < 3; d++) {
    if (!q.at[d].any) { /* square: like the slower dimension, already complete */
      q.at[d] = q.at[d - 1];
      continue;
    }
    const hk_status s = deduce(&q.at[d], deconv, text);
    if (s) return s;
  }
  return build(p, &q, first, deconv, text);
}
