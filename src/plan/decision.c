/* Decisions as text: "algo kernel=name knob=value ...". */
#include <stdio.h>
#include <string.h>

#include "core/text.h"
#include "plan/plan.h"

void hk_decision_print(hk_text *t, const hk_decision *d) {
  hk_text_add(t, "%s", d->algo->name);
  if (d->kernel) hk_text_add(t, " kernel=%s", d->kernel->name);
  const char *const *knobs = hk_algo_knobs(d->algo);
  for (int i = 0; i < HK_KNOBS && knobs[i]; i++) hk_text_add(t, " %s=%lld", knobs[i], (long long)d->knob[i]);
}

static const hk_algo *find_algo(const char *name) {
  for (int i = 0; hk_algos[i]; i++)
    if (!strcmp(hk_algos[i]->name, name)) return hk_algos[i];
  return NULL;
}

static const hk_kernel *find_kernel(hk_family family, const char *name) {
  for (int i = 0; i < hk_kernel_count; i++)
    if (hk_kernels[i].family == family && (!name || !strcmp(hk_kernels[i].name, name))) return &hk_kernels[i];
  return NULL;
}

static bool set_knob(hk_decision *d, const char *key, const char *value) {
  const char *const *knobs = hk_algo_knobs(d->algo);
  for (int i = 0; i < HK_KNOBS && knobs[i]; i++)
    if (!strcmp(knobs[i], key)) return hk_text_number(&value, &d->knob[i]) && *value == 0;
  return false;
}

bool hk_algo_tames(const hk_algo *a, const hk_task *t, char *why) {
  if (!t->wild || a->steps_over || a->device != HK_CPU) return true;
  snprintf(why, HK_REASON, "weights hold Inf or NaN, and taps in the padding would be multiplied by zero");
  return false;
}

/* The kernel named, or the first of the family that offers itself. */
static hk_status offer_named(const hk_task *task, const char *text, const char *kernel, hk_decision *d) {
  char why[HK_REASON] = "no kernel of its family is in this build";
  if (d->algo->family == HK_FAMILY_NONE) {
    if (kernel) return hk_fail(HK_SYNTAX, "decision \"%.120s\": %s has no kernels", text, d->algo->name);
    if (d->algo->offer(task, d, why)) return HK_OK;
    return hk_fail(HK_UNSUPPORTED, "decision \"%.120s\": %s", text, why);
  }
  if (kernel && !find_kernel(d->algo->family, kernel))
    return hk_fail(HK_SYNTAX, "decision \"%.120s\": no kernel \"%.60s\" for %s", text, kernel, d->algo->name);
  for (int i = 0; i < hk_kernel_count; i++) {
    if (hk_kernels[i].family != d->algo->family || (kernel && strcmp(hk_kernels[i].name, kernel))) continue;
    d->kernel = &hk_kernels[i];
    if (!hk_cpu_has(d->kernel->isa)) snprintf(why, sizeof why, "this CPU lacks %s", hk_isa_name(d->kernel->isa));
    else if (d->algo->offer(task, d, why)) return HK_OK;
  }
  return hk_fail(HK_UNSUPPORTED, "decision \"%.120s\": %s", text, why);
}

hk_status hk_decision_parse(const hk_task *task, const char *text, hk_decision *d) {
  char copy[512], *save = NULL;
  memset(d, 0, sizeof *d);
  if (strlen(text) >= sizeof copy) return hk_fail(HK_SYNTAX, "decision text is longer than %zu characters", sizeof copy - 1);
  memcpy(copy, text, strlen(text) + 1);
  char *word = strtok_r(copy, " ", &save);
  if (!word || !(d->algo = find_algo(word)) || d->algo->device != task->options.device)
    return hk_fail(HK_SYNTAX, "decision \"%.120s\": no algorithm \"%.60s\" for this device", text, word ? word : "");
  char *words[HK_KNOBS + 1], *kernel = NULL;
  int count = 0;
  while ((word = strtok_r(NULL, " ", &save))) {
    if (!strncmp(word, "kernel=", 7)) kernel = word + 7;
    else if (count < HK_KNOBS) words[count++] = word;
    else return hk_fail(HK_SYNTAX, "decision \"%.120s\" has too many words", text);
  }
  hk_status s = offer_named(task, text, kernel, d);
  for (int i = 0; i < count && !s; i++) {
    char *eq = strchr(words[i], '=');
    if (eq) *eq++ = 0;
    if (!eq || !set_knob(d, words[i], eq))
      s = hk_fail(HK_SYNTAX, "decision \"%.120s\": cannot read \"%.60s\"", text, words[i]);
  }
  char why[HK_REASON] = "";
  if (!s && !hk_algo_tames(d->algo, task, why)) s = hk_fail(HK_UNSUPPORTED, "decision \"%.120s\": %s", text, why);
  if (!s && d->algo->check && !d->algo->check(task, d, why))
    s = hk_fail(HK_UNSUPPORTED, "decision \"%.120s\": %s", text, why);
  return s;
}
