/* The table of wisdom and its text:
 *
 *   hankel-wisdom 2
 *   version <tab> machine <tab> isa <tab> threads <tab> options <tab> problem <tab> epilogue <tab> decision <tab> us
 *   end <number of lines between>
 * A text is taken whole or refused whole: head, tail count and every field are checked. Format 1 named machines by
 * their marketing name alone and problems by strides that nothing reads: its lines would be found on the wrong machine
 * or not at all, so none is used. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/text.h"
#include "tune/wisdom.h"

#define FIELDS 9
static const char head[] = "hankel-wisdom 2\n", old_head[] = "hankel-wisdom 1\n";

static uint64_t hash(const char *s) {
  uint64_t h = 1469598103934665603ull;
  for (; *s; s++) h = (h ^ (unsigned char)*s) * 1099511628211ull;
  return h;
}

static hk_wisdom_entry *slot(const hk_wisdom_table *t, const char *key) {
  for (uint64_t i = hash(key);; i++) {
    hk_wisdom_entry *e = &t->entry[i & (uint64_t)(t->slots - 1)];
    if (!e->key || !strcmp(e->key, key)) return e;
  }
}

const hk_wisdom_entry *hk_table_find(const hk_wisdom_table *t, const char *key) {
  if (!t->slots) return NULL;
  const hk_wisdom_entry *e = slot(t, key);
  return e->key ? e : NULL;
}

static hk_status no_memory(void) { return hk_fail(HK_NO_MEMORY, "no memory for wisdom"); }

/* Makes room for that many entries; at most half of the slots are taken. */
static hk_status reserve(hk_wisdom_table *t, int64_t count) {
  hk_wisdom_table bigger = {.slots = t->slots ? t->slots : 64, .count = t->count};
  if (2 * count <= t->slots) return HK_OK;
  while (2 * count > bigger.slots) bigger.slots *= 2;
  bigger.entry = hk_alloc_zero((size_t)bigger.slots * sizeof *bigger.entry);
  if (!bigger.entry) return no_memory();
  for (int64_t i = 0; i < t->slots; i++)
    if (t->entry[i].key) *slot(&bigger, t->entry[i].key) = t->entry[i];
  hk_free(t->entry);
  *t = bigger;
  return HK_OK;
}

hk_status hk_table_put(hk_wisdom_table *t, const char *key, const char *decision, double seconds, bool learnt,
                       bool keep) {
  const size_t k = strlen(key) + 1, d = strlen(decision) + 1;
  const hk_status s = reserve(t, t->count + 1);
  if (s) return s;
  hk_wisdom_entry *e = slot(t, key);
  if (e->key && keep) return HK_OK;
  char *copy = hk_alloc(k + d);
  if (!copy) return no_memory();
  memcpy(copy, key, k);
  memcpy(copy + k, decision, d);
  if (e->key) hk_free(e->key);
  else t->count++;
  *e = (hk_wisdom_entry){copy, copy + k, seconds, learnt};
  return HK_OK;
}

hk_status hk_table_take(hk_wisdom_table *t, hk_wisdom_table *from) {
  const hk_status s = reserve(t, t->count + from->count);
  if (s) return s;
  for (int64_t i = 0; i < from->slots; i++) {
    hk_wisdom_entry *theirs = &from->entry[i];
    if (!theirs->key) continue;
    hk_wisdom_entry *mine = slot(t, theirs->key);
    if (mine->key && mine->learnt) continue;
    if (mine->key) hk_free(mine->key);
    else t->count++;
    *mine = *theirs;
    theirs->key = NULL; /* moved: hk_table_clear of what is left frees the rest */
  }
  return HK_OK;
}

void hk_table_clear(hk_wisdom_table *t) {
  for (int64_t i = 0; i < t->slots; i++) hk_free(t->entry[i].key);
  hk_free(t->entry);
  *t = (hk_wisdom_table){0};
}

static int by_key(const void *a, const void *b) {
  return strcmp((*(hk_wisdom_entry *const *)a)->key, (*(hk_wisdom_entry *const *)b)->key);
}

hk_status hk_table_print(const hk_wisdom_table *t, hk_text *text) {
  hk_wisdom_entry **order = hk_alloc((size_t)t->count * sizeof *order + 1);
  if (!order) return no_memory();
  int64_t n = 0;
  for (int64_t i = 0; i < t->slots; i++)
    if (t->entry[i].key) order[n++] = &t->entry[i];
  qsort(order, (size_t)n, sizeof *order, by_key);
  hk_text_add(text, "%s", head);
  for (int64_t i = 0; i < n; i++)
    hk_text_add(text, "%s\t%s\t%.9g\n", order[i]->key, order[i]->decision, order[i]->seconds * 1e6);
  hk_text_add(text, "end %lld\n", (long long)n);
  hk_free(order);
  return HK_OK;
}

static bool printable(const char *s) {
  if (!*s) return false;
  for (; *s; s++)
    if ((unsigned char)*s < 32 || *s == 127) return false;
  return true;
}

/* Cuts a line at its tabs; says what is wrong, or NULL. */
static const char *check_line(char *line, char **field) {
  int n = 0;
  for (char *s = line; s; n++) {
    if (n == FIELDS) return "has too many fields";
    field[n] = s;
    s = strchr(s, '\t');
    if (s) *s++ = 0;
    if (!printable(field[n])) return "has an empty or unprintable field";
  }
  if (n != FIELDS) return "has too few fields";
  int64_t threads;
  const char *at = field[3];
  hk_problem p;
  char *end;
  const double us = strtod(field[8], &end);
  if (field[0][0] < '0' || field[0][0] > '9') return "does not start with a version";
  if (!hk_text_number(&at, &threads) || *at || threads < 0 || threads > 4096) return "has a bad thread count";
  if (hk_problem_parse(&p, field[5])) return "has a bad problem";
  if (*end || !isfinite(us) || us < 0) return "has a bad time";
  return NULL;
}

static hk_status put_line(hk_wisdom_table *t, char **field) {
  char key[HK_WISDOM_KEY];
  hk_text k = {key, sizeof key, 0};
  for (int i = 0; i < 7; i++) hk_text_add(&k, "%s%s", i ? "\t" : "", field[i]);
  if (k.length >= sizeof key) return hk_fail(HK_SYNTAX, "a wisdom key is longer than %d characters", HK_WISDOM_KEY - 1);
  return hk_table_put(t, key, field[7], strtod(field[8], NULL) * 1e-6, false, false);
}

static hk_status refuse(const char *name, int64_t line, const char *what) {
  return hk_fail(HK_SYNTAX, "wisdom %.200s: line %lld %s; nothing of it is used", name, (long long)line, what);
}

bool hk_table_is_old(const char *text) { return !strncmp(text, old_head, sizeof old_head - 1); }

hk_status hk_table_parse(hk_wisdom_table *t, const char *name, const char *text) {
  if (hk_table_is_old(text))
    return hk_fail(HK_SYNTAX,
                   "wisdom %.200s is of format 1, which neither tells machines of one name apart nor names "
                   "rewrites: it is passed over; tune again to replace it",
                   name);
  if (strncmp(text, head, sizeof head - 1)) return refuse(name, 1, "is not \"hankel-wisdom 2\"");
  const char *s = text + sizeof head - 1;
  char copy[HK_WISDOM_KEY + 1024], *field[FIELDS];
  for (int64_t line = 2;; line++) {
    const char *newline = strchr(s, '\n');
    if (!newline) return refuse(name, line, "is cut off");
    const size_t n = (size_t)(newline - s);
    if (n >= sizeof copy) return refuse(name, line, "is too long");
    memcpy(copy, s, n);
    copy[n] = 0;
    s = newline + 1;
    if (!strncmp(copy, "end ", 4)) {
      const char *at = copy + 4;
      int64_t count;
      if (!hk_text_number(&at, &count) || *at || count != line - 2)
        return refuse(name, line, "does not count its lines");
      return *s ? refuse(name, line + 1, "follows the end") : HK_OK;
    }
    const char *wrong = check_line(copy, field);
    if (wrong) return refuse(name, line, wrong);
    const hk_status status = put_line(t, field);
    if (status) return status;
  }
}
