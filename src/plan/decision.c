/* Decisions as text: "rewrite / rewrite / algo kernel=name isa=name knob=value ...". */
#include <stdio.h>
#include <string.h>

#include "core/text.h"
#include "plan/rewrite/rewrite.h"

bool hk_refuse(char *why, const char *reason) {
  const size_t n = strlen(reason);
  memcpy(why, reason, n < HK_REASON ? n + 1 : HK_REASON - 1);
  why[HK_REASON - 1] = 0;
  return false;
}

void hk_decision_print_name(hk_text *t, const hk_decision *d) {
  for (int i = 0; i < d->depth; i++) hk_text_add(t, "%s%s", i ? " / " : "", d->path[i]->name);
  if (d->algo) hk_text_add(t, "%s%s", d->depth ? " / " : "", d->algo->name);
  if (d->kernel) hk_text_add(t, " kernel=%s", d->kernel->name);
}

/* Activations are passes that every ISA with any has; the reference alone has neither kernels nor passes. */
hk_isa hk_decision_isa(const hk_task *t, const hk_algo *algo, int depth) {
  if (algo->fallback && algo->family == HK_FAMILY_NONE && !depth) return HK_ISA_SCALAR;
  return hk_kernel_best(HK_FAMILY_ACT, t->isa)->isa;
}

/* The ISA that a text without one means: the kernel's. */
static bool shows_isa(const hk_decision *d) {
  return d->algo->device == HK_CPU && d->isa != (d->kernel ? d->kernel->isa : HK_ISA_SCALAR);
}

static void print_knobs(hk_text *t, const hk_decision *d, bool derived) {
  const hk_knob *knobs = d->algo->knobs;
  hk_decision_print_name(t, d);
  if (shows_isa(d)) hk_text_add(t, " isa=%s", hk_isa_name(d->isa));
  for (int i = 0; i < HK_KNOBS && knobs[i].name; i++)
    if (derived || knobs[i].kind != HK_DERIVED) hk_text_add(t, " %s=%lld", knobs[i].name, (long long)d->knob[i]);
}

void hk_decision_print(hk_text *t, const hk_decision *d) { print_knobs(t, d, true); }

static const hk_kernel *find_kernel(const hk_algo *algo, const char *name) {
  const hk_kernel *k = NULL;
  while ((k = hk_algo_next_row(algo, k)) && strcmp(k->name, name)) continue;
  return k;
}

static bool set_knob(hk_decision *d, const char *key, const char *value) {
  const hk_knob *knobs = d->algo->knobs;
  for (int i = 0; i < HK_KNOBS && knobs[i].name; i++)
    if (!strcmp(knobs[i].name, key)) return hk_text_number(&value, &d->knob[i]) && *value == 0;
  return false;
}

void hk_decision_derive(hk_decision *d) {
  const hk_knob *knobs = d->algo->knobs;
  for (int i = 0; i < HK_KNOBS && knobs[i].name; i++)
    if (knobs[i].kind != HK_GIVEN) d->knob[i] = HK_KNOB_AUTO;
}

void hk_decision_renew(hk_decision *d) {
  const hk_knob *knobs = d->algo->knobs;
  for (int i = 0; i < HK_KNOBS && knobs[i].name; i++)
    if (knobs[i].kind == HK_DERIVED) d->knob[i] = HK_KNOB_AUTO;
}

bool hk_decision_allowed(const hk_task *t, const hk_decision *d, char *why) {
  const hk_isa isa = d->kernel ? d->kernel->isa : HK_ISA_SCALAR;
  if (d->algo->device != t->options.device) snprintf(why, HK_REASON, "is for another device");
  else if (!hk_cpu_has(isa))
    snprintf(why, HK_REASON, "this CPU lacks %s%s", hk_isa_name(isa),
             isa == HK_ISA_AMX ? ", or Linux refuses its tile state (arch_prctl ARCH_REQ_XCOMP_PERM)" : "");
  else if (isa > t->isa) snprintf(why, HK_REASON, "%s is above the ISA cap %s", hk_isa_name(isa), hk_isa_name(t->isa));
  else if (d->kernel && !hk_cpu_has_feature(d->kernel->needs))
    snprintf(why, HK_REASON, "needs %s, which this CPU lacks or HANKEL_WITHOUT takes away",
             hk_feature_name(d->kernel->needs));
  else if (d->isa > t->isa || !hk_cpu_has(d->isa))
    snprintf(why, HK_REASON, "isa = %s is above the ISA cap %s", hk_isa_name(d->isa), hk_isa_name(t->isa));
  else if (d->algo->fallback && t->options.forbid_fallback)
    snprintf(why, HK_REASON, "is a slow path and forbid_fallback is set");
  else if (t->vast && !d->algo->fallback && d->algo->device == HK_CPU)
    snprintf(why, HK_REASON,
             "more than 2^56 products, 2^50 elements, 2^40 positions or 2^24 weights whose strides repeat them 16 "
             "times are for ref alone");
  else return true;
  return false;
}

/* The size that bounds a knob, rounded up to whole tiles: no kernel's tile has more than 256 of anything. */
static int64_t bound_of(const hk_geom *g, hk_knob_of of) {
  const int64_t size[] = {
      [HK_OF_NOTHING] = INT64_MAX / 2, [HK_OF_POSITIONS] = g->gm, [HK_OF_C] = g->c,           [HK_OF_K] = g->k,
      [HK_OF_GROUPS] = g->groups,      [HK_OF_ROWS] = g->out[1],  [HK_OF_COLUMNS] = g->out[2]};
  return hk_round_up(hk_max64(size[of], 1), 256);
}

bool hk_decision_check_algo(const hk_task *t, hk_decision *d, char *why) {
  const hk_knob *knobs = d->algo->knobs;
  for (int i = 0; i < HK_KNOBS && knobs[i].name; i++) {
    const int64_t most = hk_min64(knobs[i].most, bound_of(&t->geom, knobs[i].of));
    if (knobs[i].kind != HK_GIVEN && d->knob[i] == HK_KNOB_AUTO) continue;
    if (d->knob[i] >= knobs[i].least && d->knob[i] <= most) continue;
    snprintf(why, HK_REASON, "%s = %lld must be %lld..%lld", knobs[i].name, (long long)d->knob[i],
             (long long)knobs[i].least, (long long)most);
    return false;
  }
  return d->algo->check(t, d, why);
}

/* A refusal that the options make keeps the status that creation by the planner would return. */
static hk_status refused(const hk_task *task, const hk_decision *d, const char *text, const char *why) {
  const hk_status s = d->algo->fallback && task->options.forbid_fallback ? HK_FALLBACK : HK_UNSUPPORTED;
  return hk_fail(s, "decision \"%.120s\": %s", text, why);
}

/* What a text says behind its path. */
typedef struct words {
  const char *text, *kernel, *isa; /* whole; NULL: not named */
  char *knob[HK_KNOBS];            /* "name=value" */
  int count;
} words;

static hk_status set_knobs(const words *w, hk_decision *d) {
  for (int i = 0; i < w->count; i++) {
    char name[64];
    const char *value = strchr(w->knob[i], '=');
    snprintf(name, sizeof name, "%.*s", value ? (int)(value - w->knob[i]) : 0, w->knob[i]);
    if (!value || !set_knob(d, name, value + 1))
      return hk_fail(HK_SYNTAX, "decision \"%.120s\": cannot read \"%.60s\"", w->text, w->knob[i]);
  }
  return HK_OK;
}

/* True when a text leaves out nothing that an offer would have to fill in. */
static bool names_all(const words *w, const hk_algo *algo) {
  bool all = true;
  for (int i = 0; i < HK_KNOBS && algo->knobs[i].name; i++) {
    const size_t n = strlen(algo->knobs[i].name);
    bool named = algo->knobs[i].kind != HK_GIVEN;
    for (int j = 0; j < w->count; j++) named |= !strncmp(w->knob[j], algo->knobs[i].name, n) && w->knob[j][n] == '=';
    all &= named;
  }
  return all;
}

/* The decision with d's kernel: what the algorithm offers, then the knobs that are named. An offer that this machine
 * would not make does not matter where all of them are. */
static hk_status attempt(const hk_task *task, const hk_path *p, const words *w, hk_decision *d) {
  char why[HK_REASON] = "";
  if (!hk_decision_allowed(task, d, why) || !(hk_path_suggest(p, d, why) || names_all(w, d->algo)))
    return refused(task, d, w->text, why);
  hk_decision_derive(d);
  const hk_status s = set_knobs(w, d);
  return s || hk_decision_check(task, d, why) ? s : refused(task, d, w->text, why);
}

/* The kernel named, or of those that take the decision the one with the least predicted time. */
static hk_status choose_kernel(const hk_task *task, const words *w, hk_decision *d) {
  char why[HK_REASON] = "no kernel of its family is in this build";
  hk_path p;
  hk_isa isa = HK_ISA_BEST;
  if (d->algo->family == HK_FAMILY_NONE && w->kernel)
    return hk_fail(HK_SYNTAX, "decision \"%.120s\": %s has no kernels", w->text, d->algo->name);
  if (w->kernel && !find_kernel(d->algo, w->kernel))
    return hk_fail(HK_SYNTAX, "decision \"%.120s\": no kernel \"%.60s\" for %s", w->text, w->kernel, d->algo->name);
  if (w->isa && (!hk_isa_parse(w->isa, &isa) || isa == HK_ISA_BEST || d->algo->device != HK_CPU))
    return hk_fail(HK_SYNTAX, "decision \"%.120s\": no ISA \"%.60s\" for this device", w->text, w->isa);
  if (!hk_path_make(&p, task, d, why)) return refused(task, d, w->text, why);
  d->isa = isa ? isa : hk_decision_isa(task, d->algo, d->depth);
  if (d->algo->family == HK_FAMILY_NONE) return attempt(task, &p, w, d);
  hk_status s = refused(task, d, w->text, why);
  hk_decision best;
  bool any = false;
  for (const hk_kernel *k = NULL; (k = hk_algo_next_row(d->algo, k));) {
    if (w->kernel && strcmp(k->name, w->kernel)) continue;
    hk_decision one = *d;
    one.kernel = k;
    one.isa = isa ? isa : k->isa;
    s = attempt(task, &p, w, &one);
    if (s == HK_SYNTAX) return s;
    if (s || (any && one.predicted_s >= best.predicted_s)) continue;
    best = one;
    any = true;
  }
  if (any) *d = best;
  return any ? HK_OK : s;
}

/* The decision in a line that a plan prints: "decision   igemm kernel=...  (estimate)". */
static char *strip(char *line) {
  static const char *const sources[] = {"(wisdom)", "(estimate)", "(measured)", "(forced)"};
  line += strspn(line, " ");
  if (!strncmp(line, "decision ", 9)) line += 9 + strspn(line + 9, " ");
  size_t n = strlen(line);
  while (n && strchr(" \n", line[n - 1])) line[--n] = 0;
  for (int i = 0; i < HK_COUNT(sources); i++) {
    const size_t last = strlen(sources[i]);
    if (n > last && line[n - last - 1] == ' ' && !strcmp(line + n - last, sources[i])) line[n - last - 1] = 0;
  }
  return line;
}

hk_status hk_decision_parse(const hk_task *task, const char *text, hk_decision *d) {
  char copy[HK_DECISION_TEXT], *save, *word;
  memset(d, 0, sizeof *d);
  if (strlen(text) >= sizeof copy)
    return hk_fail(HK_SYNTAX, "decision text is longer than %zu characters", sizeof copy - 1);
  memcpy(copy, text, strlen(text) + 1);
  save = strip(copy);
  hk_status s = hk_path_parse(task, text, &save, d);
  if (s) return s;
  words w = {.text = text};
  while ((word = strtok_r(NULL, " ", &save))) {
    if (!strncmp(word, "kernel=", 7)) w.kernel = word + 7;
    else if (!strncmp(word, "isa=", 4)) w.isa = word + 4;
    else if (w.count < HK_KNOBS) w.knob[w.count++] = word;
    else return hk_fail(HK_SYNTAX, "decision \"%.120s\" has too many words", text);
  }
  return choose_kernel(task, &w, d);
}

hk_status hk_decision_adapt(const hk_task *task, const hk_decision *from, hk_decision *d) {
  char text[HK_DECISION_TEXT];
  hk_text t = {text, sizeof text, 0};
  print_knobs(&t, from, false);
  return hk_decision_parse(task, text, d);
}
