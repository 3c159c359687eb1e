/* Texts of the plan fuzzer: decisions and wisdom. A refused text is fine. */
#include <stdlib.h>
#include <string.h>

#include "plan/rewrite/rewrite.h"
#include "plan_fuzz.h"
#include "tune/wisdom.h"

/* ---- decisions */
enum { CANDIDATES = 96 };
typedef struct texts {
  int count, usable;
  char *at[CANDIDATES];
} texts;

static void keep(void *context, const hk_candidate *c) {
  texts *t = context;
  if (t->count < CANDIDATES) t->at[t->count++] = strdup(c->decision);
  t->usable += c->refusal == NULL && t->count > t->usable;
}

/* The usable candidates come first. A refused one is taken now and then: to force it is what a person may do. */
static void candidate_draw(fuzz *f, int of, const hk_options *o, char text[FUZZ_TEXT]) {
  texts t = {0};
  hk_options all = *o;
  all.rigor = fuzz_chance(f, 4) ? HK_PATIENT : HK_ESTIMATE;
  all.decision = NULL;
  bool refused = fuzz_chance(f, 10);
  int64_t which = fuzz_draw(f, 256);
  hk_plan_candidates(&f->t[of].p, &f->t[of].e, &all, keep, &t);
  int count = refused || !t.usable ? t.count : t.usable;
  if (count) snprintf(text, FUZZ_TEXT, "%s", t.at[which % count]);
  for (int i = 0; i < t.count; i++) free(t.at[i]);
}

/* A number as knobs may be told: near the old one, a multiple or part of it, one whose small multiples wrap to those of
 * the old, around a power of two, at the ends of 64 bits, or any. */
static int64_t number_draw(fuzz *f, int64_t old) {
  static const int64_t ends[] = {0, -1, INT64_MAX, INT64_MIN, INT32_MAX, (int64_t)INT32_MAX + 1, INT64_MAX / 2 + 1, 1};
  const uint64_t o = (uint64_t)old;
  switch (fuzz_draw(f, 8)) {
  case 0: return ends[fuzz_draw(f, 8)];
  case 1: return (int64_t)(((uint64_t)1 << fuzz_draw(f, 64)) + (uint64_t)fuzz_draw(f, 5) - 2);
  case 2: return (int64_t)(o + ((uint64_t)(1 + fuzz_draw(f, 7)) << (52 + fuzz_draw(f, 12))));
  case 3: return old / (2 + fuzz_draw(f, 8));
  case 4:
  case 5: return (int64_t)(o + (uint64_t)fuzz_draw(f, 17) - 8);
  case 6: return (int64_t)(o * (uint64_t)(2 + fuzz_draw(f, 8)));
  default: {
    uint64_t v = 0;
    for (int i = 0; i < 8; i++) v = v << 8 | (uint64_t)fuzz_draw(f, 256);
    return (int64_t)v;
  }
  }
}

/* Gives one knob another value, now and then several; the names stay. */
static void knobs_mutate(fuzz *f, char text[FUZZ_TEXT]) {
  char old[FUZZ_TEXT], *rest = NULL;
  snprintf(old, sizeof old, "%s", text);
  size_t length = 0;
  int64_t knob = 0, one = fuzz_draw(f, 6), several = fuzz_chance(f, 4);
  for (char *word = strtok_r(old, " ", &rest); word; word = strtok_r(NULL, " ", &rest)) {
    char *eq = strchr(word, '=');
    bool change = eq && strncmp(word, "kernel=", 7) && (several ? fuzz_chance(f, 2) : knob++ == one);
    if (change)
      length += (size_t)snprintf(text + length, FUZZ_TEXT - length, "%s%.*s=%lld", length ? " " : "", (int)(eq - word),
                                 word, (long long)number_draw(f, atoll(eq + 1)));
    else length += (size_t)snprintf(text + length, FUZZ_TEXT - length, "%s%s", length ? " " : "", word);
    if (length >= FUZZ_TEXT) return; /* cut: as good as any */
  }
}

/* Up to three rewrites and an algorithm of the tables, any kernel or one of its family, its knobs with any numbers. */
static void table_draw(fuzz *f, char text[FUZZ_TEXT]) {
  int algos = 0, rewrites = 0;
  while (hk_algos[algos]) algos++;
  while (hk_rewrites[rewrites]) rewrites++;
  const hk_algo *a = hk_algos[fuzz_draw(f, algos)];
  size_t length = 0;
  for (int64_t i = fuzz_draw(f, 4); i > 0; i--)
    length += (size_t)snprintf(text + length, FUZZ_TEXT - length, "%s / ", hk_rewrites[fuzz_draw(f, rewrites)]->name);
  length += (size_t)snprintf(text + length, FUZZ_TEXT - length, "%s", a->name);
  const hk_kernel *k = &hk_kernels[fuzz_draw(f, hk_kernel_count)];
  if (!fuzz_chance(f, 8))
    for (int i = 0; i < hk_kernel_count && k->family != a->family; i++) k = &hk_kernels[i];
  if (a->family != HK_FAMILY_NONE && fuzz_chance(f, 2))
    length += (size_t)snprintf(text + length, FUZZ_TEXT - length, " kernel=%s", k->name);
  const hk_knob *knobs = a->knobs;
  for (int i = 0; i < HK_KNOBS && knobs[i].name; i++)
    if (fuzz_chance(f, 2))
      length += (size_t)snprintf(text + length, FUZZ_TEXT - length, " %s=%lld", knobs[i].name,
                                 (long long)number_draw(f, 1 + fuzz_draw(f, 64)));
}

static void bytes_draw(fuzz *f, char *text, size_t size) {
  size_t n = (size_t)fuzz_draw(f, 64);
  if (n >= size) n = size - 1;
  for (size_t i = 0; i < n; i++) text[i] = (char)(1 + fuzz_draw(f, 255));
  text[n] = 0;
}

void fuzz_decision(fuzz *f, int of, const hk_options *o, char text[FUZZ_TEXT]) {
  text[0] = 0;
  int64_t how = fuzz_draw(f, 16);
  if (fuzz_without("knobs")) how = 0;
  if (how < 13) candidate_draw(f, of, o, text);
  if (how >= 5 && how < 13) knobs_mutate(f, text);
  if (how == 13 || how == 14) table_draw(f, text);
  if (how == 15) bytes_draw(f, text, FUZZ_TEXT);
}

/* ---- wisdom */
/* What was taken prints, and its print gives it back. */
static void round_trip(const fuzz *f) {
  size_t length = 0;
  int64_t count = hk_wisdom_count();
  if (hk_wisdom_export(NULL, 0, &length)) return;
  char *text = malloc(length + 1);
  if (text && !hk_wisdom_export(text, length + 1, NULL)) {
    hk_wisdom_forget();
    if (hk_wisdom_import(text) || hk_wisdom_count() != count)
      fuzz_found(f, "exported wisdom does not import: %s", text);
  }
  free(text);
}

void fuzz_wisdom(fuzz *f, int of, const hk_options *o) {
  char decision[FUZZ_TEXT], key[HK_WISDOM_KEY] = "", junk[80] = "", text[HK_WISDOM_KEY + 2 * FUZZ_TEXT];
  const hk_weights w = fuzz_weights(f);
  hk_task task;
  fuzz_decision(f, of, o, decision);
  if (hk_task_make(&task, &f->t[of].p, &f->t[of].e, o, &w)) return;
  hk_wisdom_key(&task, key, sizeof key);
  int64_t how = fuzz_draw(f, 16);
  if (how < 3) bytes_draw(f, junk, sizeof junk);
  const char *before = how == 0 ? junk : "", *between = how == 1 ? junk : "", *after = how == 2 ? junk : "";
  const char *us = (const char *[]){"1.5", "0", "1e300", "-1", "nan"}[how < 8 ? 0 : fuzz_draw(f, 5)];
  snprintf(text, sizeof text, "%shankel-wisdom 2\n%s\t%s%s\t%s\nend 1\n%s", before, key, between, decision, us, after);
  fuzz_note("hk_wisdom_import(\"%s\")", text);
  int64_t had = hk_wisdom_count();
  hk_status status = hk_wisdom_import(text);
  if (status && (!*hk_last_error() || hk_wisdom_count() != had))
    fuzz_found(f, "a refused wisdom text left something or said nothing");
  fuzz_note("  -> %s", status ? hk_last_error() : "ok");
  if (fuzz_chance(f, 4)) round_trip(f);
}
