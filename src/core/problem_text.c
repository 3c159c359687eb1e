/* Problem strings in hankel's own form: tokens joined by '_', rank first.
 *
 *   2d_n1_c64_i56x56_k64_w3x3_s2_p1_d2_g4_f32_last
 *   i input, w window, s stride, p padding (1, 1x2, 1:2x0:-1 as lo:hi), d dilation, l input dilation, g feature groups,
 *   b batch groups, flip or flip0x1, types f32 or s8:s8:s32 (one stands for three, but s8 alone is a stride), xz3 fz1
 *   yz-4 zero points, first or last, or strides xs=offset.group.outer.channel.at0.at1 (fs, ys likewise), a name in
 *   double quotes.
 * Defaults: n1, s1, p0, d1, l1, g1, b1, f32, first. A text that does not start with "1d", "2d" or "3d" is read as
 * benchdnn's form (problem_benchdnn.c). */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "core/core.h"
#include "core/text.h"

#define MAX_TEXT 4096

bool hk_text_number(const char **at, int64_t *value) {
  char *end;
  const char *s = *at + (**at == '-');
  if (*s < '0' || *s > '9') return false;
  errno = 0;
  const long long v = strtoll(*at, &end, 10);
  if (errno) return false;
  *value = v;
  *at = end;
  return true;
}

/* "3", "3x5": rank values; one value stands for all */
static bool numbers(const char *s, int rank, int64_t *v) {
  int n = 0;
  for (;; s++) {
    if (n == rank || !hk_text_number(&s, &v[n++])) return false;
    if (*s != 'x') break;
  }
  for (int i = n; n == 1 && i < rank; i++) v[i] = v[0];
  return *s == 0 && (n == 1 || n == rank);
}

static bool paddings(const char *s, int rank, int64_t *lo, int64_t *hi) {
  int n = 0;
  for (;; s++) {
    if (n == rank || !hk_text_number(&s, &lo[n])) return false;
    hi[n] = lo[n];
    if (*s == ':' && (s++, !hk_text_number(&s, &hi[n]))) return false;
    n++;
    if (*s != 'x') break;
  }
  for (int i = n; n == 1 && i < rank; i++) lo[i] = lo[0], hi[i] = hi[0];
  return *s == 0 && (n == 1 || n == rank);
}

static bool strides(const char *s, int rank, hk_strides *t) {
  int64_t v[4 + HK_MAX_RANK] = {0};
  for (int i = 0; i < 4 + rank; i++) {
    if (i && *s++ != '.') return false;
    if (!hk_text_number(&s, &v[i])) return false;
  }
  *t = (hk_strides){v[0], v[1], v[2], v[3], {v[4], v[5], v[6]}};
  return *s == 0;
}

static bool type_of(const char *s, size_t n, hk_type *t) {
  for (int i = 0; hk_type_valid((hk_type)i); i++)
    if (strlen(hk_type_name((hk_type)i)) == n && !strncmp(hk_type_name((hk_type)i), s, n)) {
      *t = (hk_type)i;
      return true;
    }
  return false;
}

static bool types(const char *s, hk_problem *p) {
  hk_type t[3];
  int n = 0;
  for (;;) {
    const size_t len = strcspn(s, ":");
    if (n == 3 || !type_of(s, len, &t[n++])) return false;
    if (!s[len]) break;
    s += len + 1;
  }
  if (n == 2 || (n == 1 && (t[0] == HK_S8 || t[0] == HK_S32))) return false; /* "s8" alone is a stride */
  p->x_type = t[0], p->f_type = n == 1 ? t[0] : t[1], p->y_type = n == 1 ? t[0] : t[2];
  return true;
}

static bool zero(const char *s, int32_t *z) {
  int64_t v;
  if (!hk_text_number(&s, &v) || *s || v < INT32_MIN || v > INT32_MAX) return false;
  *z = (int32_t)v;
  return true;
}

typedef struct parse {
  hk_problem *p;
  hk_layout layout;
  bool seen_i, seen_w, seen_c, seen_k, xs, fs, ys;
} parse;

static bool flips(const char *s, hk_problem *p) {
  int64_t v[HK_MAX_RANK] = {1, 1, 1};
  if (*s && !numbers(s, p->rank, v)) return false;
  for (int i = 0; i < p->rank; i++) p->reverse[i] = v[i] != 0;
  return true;
}

static bool one(const char *s, int64_t *v) { return hk_text_number(&s, v) && *s == 0; }

static bool token(parse *q, const char *s) {
  hk_problem *p = q->p;
  const int r = p->rank;
  if (!strcmp(s, "first") || !strcmp(s, "last")) {
    q->layout = *s == 'l' ? HK_CHANNELS_LAST : HK_CHANNELS_FIRST;
    return true;
  }
  if (!strncmp(s, "flip", 4)) return flips(s + 4, p);
  if (!strncmp(s, "xs=", 3)) return q->xs = strides(s + 3, r, &p->x);
  if (!strncmp(s, "fs=", 3)) return q->fs = strides(s + 3, r, &p->f);
  if (!strncmp(s, "ys=", 3)) return q->ys = strides(s + 3, r, &p->y);
  if (!strncmp(s, "xz", 2)) return zero(s + 2, &p->x_zero);
  if (!strncmp(s, "fz", 2)) return zero(s + 2, &p->f_zero);
  if (!strncmp(s, "yz", 2)) return zero(s + 2, &p->y_zero);
  if (types(s, p)) return true;
  switch (*s) {
  case 'n': return one(s + 1, &p->n);
  case 'c': return q->seen_c = one(s + 1, &p->c);
  case 'k': return q->seen_k = one(s + 1, &p->k);
  case 'g': return one(s + 1, &p->feature_groups);
  case 'b': return one(s + 1, &p->batch_groups);
  case 'i': return q->seen_i = numbers(s + 1, r, p->in);
  case 'w': return q->seen_w = numbers(s + 1, r, p->window);
  case 's': return numbers(s + 1, r, p->stride);
  case 'd': return numbers(s + 1, r, p->dilation);
  case 'l': return numbers(s + 1, r, p->in_dilation);
  case 'p': return paddings(s + 1, r, p->pad_lo, p->pad_hi);
  }
  return false;
}

static hk_status parse_own(hk_problem *out, const char *text) {
  char copy[MAX_TEXT];
  hk_problem p;
  parse q = {.p = &p};
  memset(&p, 0, sizeof p);
  p.size = sizeof p;
  p.rank = text[0] - '0';
  p.n = p.feature_groups = p.batch_groups = 1;
  for (int i = 0; i < HK_MAX_RANK; i++) p.stride[i] = p.dilation[i] = p.in_dilation[i] = p.window[i] = 1;
  memcpy(copy, text, strlen(text) + 1);
  char *name = strchr(copy, '"');
  if (name) *name = 0;
  char *save = NULL;
  for (char *t = strtok_r(copy + 2, "_ \t\r\n", &save); t; t = strtok_r(NULL, "_ \t\r\n", &save))
    if (!token(&q, t)) return hk_fail(HK_SYNTAX, "problem \"%.200s\": cannot read token \"%.60s\"", text, t);
  if (!q.seen_i || !q.seen_w || !q.seen_c || !q.seen_k)
    return hk_fail(HK_SYNTAX, "problem \"%.200s\": c, i, k and w must be given", text);
  const hk_strides x = p.x, f = p.f, y = p.y;
  if (!(q.xs && q.fs && q.ys)) {
    const hk_status s = hk_problem_dense(&p, q.layout);
    if (s) return s;
  }
  if (q.xs) p.x = x;
  if (q.fs) p.f = f;
  if (q.ys) p.y = y;
  hk_geom g;
  const hk_status s = hk_geom_make_either(&g, &p);
  if (s) return s;
  *out = p;
  return HK_OK;
}

hk_status hk_problem_parse(hk_problem *p, const char *text) {
  if (!p || !text) return hk_fail(HK_INVALID, "problem and text must not be NULL");
  while (*text == ' ' || *text == '\t') text++;
  if (strlen(text) >= MAX_TEXT) return hk_fail(HK_SYNTAX, "problem text is longer than %d characters", MAX_TEXT - 1);
  const bool own = text[0] >= '1' && text[0] <= '3' && text[1] == 'd' && (text[2] == '_' || text[2] == ' ');
  return own ? parse_own(p, text) : hk_problem_parse_benchdnn(p, text, false);
}

hk_status hk_problem_parse_deconv(hk_problem *p, const char *text) {
  if (!p || !text) return hk_fail(HK_INVALID, "problem and text must not be NULL");
  if (strlen(text) >= MAX_TEXT) return hk_fail(HK_SYNTAX, "problem text is longer than %d characters", MAX_TEXT - 1);
  return hk_problem_parse_benchdnn(p, text, true);
}

static void put_numbers(hk_text *t, const char *key, int rank, const int64_t *v, int64_t skip, bool always) {
  bool same = true;
  for (int i = 1; i < rank; i++) same = same && v[i] == v[0];
  if (same && v[0] == skip && !always) return;
  hk_text_add(t, "_%s", key);
  const int n = same && !always ? 1 : rank;
  for (int i = 0; i < n; i++) hk_text_add(t, "%s%lld", i ? "x" : "", (long long)v[i]);
}

static void put_padding(hk_text *t, const hk_problem *p) {
  bool any = false, same = true;
  for (int i = 0; i < p->rank; i++) {
    any = any || p->pad_lo[i] || p->pad_hi[i];
    same = same && p->pad_lo[i] == p->pad_lo[0] && p->pad_hi[i] == p->pad_hi[0];
  }
  if (!any) return;
  for (int i = 0; i < (same ? 1 : p->rank); i++) {
    hk_text_add(t, "%s%lld", i ? "x" : "_p", (long long)p->pad_lo[i]);
    if (p->pad_hi[i] != p->pad_lo[i]) hk_text_add(t, ":%lld", (long long)p->pad_hi[i]);
  }
}

static void put_strides(hk_text *t, const char *key, int rank, const hk_strides *s) {
  hk_text_add(t, "_%s=%lld.%lld.%lld.%lld", key, (long long)s->offset, (long long)s->group, (long long)s->outer,
              (long long)s->channel);
  for (int i = 0; i < rank; i++) hk_text_add(t, ".%lld", (long long)s->at[i]);
}

static void put_flips(hk_text *t, const hk_problem *p) {
  int64_t v[HK_MAX_RANK];
  int count = 0;
  for (int i = 0; i < p->rank; i++) count += v[i] = p->reverse[i] != 0;
  if (count == p->rank) hk_text_add(t, "_flip");
  else if (count) put_numbers(t, "flip", p->rank, v, 0, true);
}

/* Strides that nothing reads are printed in their canonical form, so that one text stands for all problems alike. */
static void put_layout(hk_text *t, const hk_problem *p) {
  hk_problem q = *p;
  hk_problem_settle(&q);
  if (hk_problem_is_dense(&q, HK_CHANNELS_FIRST)) {
    hk_text_add(t, "_first");
  } else if (hk_problem_is_dense(&q, HK_CHANNELS_LAST)) {
    hk_text_add(t, "_last");
  } else {
    put_strides(t, "xs", q.rank, &q.x);
    put_strides(t, "fs", q.rank, &q.f);
    put_strides(t, "ys", q.rank, &q.y);
  }
}

hk_status hk_problem_print(const hk_problem *p, char *buffer, size_t size, size_t *length) {
  hk_problem room;
  if (!(p = hk_take(p, &room, sizeof room, "problem"))) return HK_INVALID;
  if (p->rank < 1 || p->rank > 3) return hk_fail(HK_INVALID, "rank = %d must be 1, 2 or 3", p->rank);
  if (!hk_type_valid(p->x_type) || !hk_type_valid(p->f_type) || !hk_type_valid(p->y_type))
    return hk_fail(HK_INVALID, "x_type, f_type and y_type must be hk_type values");
  hk_text t = {buffer, size, 0};
  hk_text_add(&t, "%dd_n%lld_c%lld", p->rank, (long long)p->n, (long long)p->c);
  put_numbers(&t, "i", p->rank, p->in, 0, true);
  hk_text_add(&t, "_k%lld", (long long)p->k);
  put_numbers(&t, "w", p->rank, p->window, 0, true);
  put_numbers(&t, "s", p->rank, p->stride, 1, false);
  put_padding(&t, p);
  put_numbers(&t, "d", p->rank, p->dilation, 1, false);
  put_numbers(&t, "l", p->rank, p->in_dilation, 1, false);
  if (p->feature_groups != 1) hk_text_add(&t, "_g%lld", (long long)p->feature_groups);
  if (p->batch_groups != 1) hk_text_add(&t, "_b%lld", (long long)p->batch_groups);
  put_flips(&t, p);
  hk_text_add(&t, "_%s", hk_type_name(p->x_type));
  if (p->f_type != p->x_type || p->y_type != p->x_type || p->x_type == HK_S8 || p->x_type == HK_S32)
    hk_text_add(&t, ":%s:%s", hk_type_name(p->f_type), hk_type_name(p->y_type));
  if (p->x_zero) hk_text_add(&t, "_xz%d", p->x_zero);
  if (p->f_zero) hk_text_add(&t, "_fz%d", p->f_zero);
  if (p->y_zero) hk_text_add(&t, "_yz%d", p->y_zero);
  put_layout(&t, p);
  if (length) *length = t.length;
  return HK_OK;
}
