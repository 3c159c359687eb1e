/* The path of a decision's text, "rewrite / rewrite / algo". Where the words are right and their places wrong, the
 * refusal writes the path that was meant. */
#include <string.h>

#include "plan/rewrite/rewrite.h"

static const hk_algo *find_algo(const char *name, hk_device device) {
  for (int i = 0; hk_algos[i]; i++)
    if (hk_algos[i]->device == device && !strcmp(hk_algos[i]->name, name)) return hk_algos[i];
  return NULL;
}

static const hk_rewrite *find_rewrite(const char *name, hk_device device) {
  for (int i = 0; hk_rewrites[i]; i++)
    if (hk_rewrites[i]->device == device && !strcmp(hk_rewrites[i]->name, name)) return hk_rewrites[i];
  return NULL;
}

/* As they are printed: each once, in rising order. */
static void sort_path(hk_decision *d) {
  int count = 0;
  for (int i = 0; i < d->depth; i++) {
    const hk_rewrite *r = d->path[i];
    int at = count;
    while (at && d->path[at - 1]->order > r->order) at--;
    if (at && d->path[at - 1]->order == r->order) continue;
    memmove(&d->path[at + 1], &d->path[at], sizeof *d->path * (size_t)(count++ - at));
    d->path[at] = r;
  }
  d->depth = count;
}

static hk_status misplaced(const char *text, const hk_decision *d, int at) {
  char meant[HK_DECISION_TEXT];
  hk_text t = {meant, sizeof meant, 0};
  hk_decision sorted = *d;
  sort_path(&sorted);
  hk_decision_print_name(&t, &sorted);
  return hk_fail(
      HK_UNSUPPORTED,
      "decision \"%.120s\": %s cannot follow %s: paths go state, gate or finish, convert, transpose, phase or "
      "polyphase, each once, then the algorithm: \"%s\"",
      text, d->path[at]->name, d->path[at - 1]->name, meant);
}

static hk_status no_rewrite(const char *text, const char *word, hk_device device) {
  if (find_algo(word, device))
    return hk_fail(HK_SYNTAX, "decision \"%.120s\": no rewrite \"%.60s\": it is an algorithm, which ends a path", text,
                   word);
  return hk_fail(HK_SYNTAX, "decision \"%.120s\": no rewrite \"%.60s\" for this device", text, word);
}

static hk_status no_algo(const char *text, const char *word, hk_device device) {
  if (find_rewrite(word, device))
    return hk_fail(HK_SYNTAX,
                   "decision \"%.120s\": no algorithm \"%.60s\": it is a rewrite; write the algorithm behind it, "
                   "\"%s / ALGORITHM\"",
                   text, word, word);
  if (strchr(word, '/') && word[1])
    return hk_fail(HK_SYNTAX, "decision \"%.120s\": no algorithm \"%.60s\": a path has a blank on each side of \"/\"",
                   text, word);
  return hk_fail(HK_SYNTAX, "decision \"%.120s\": no algorithm \"%.60s\" for this device", text, word);
}

hk_status hk_path_parse(const hk_task *task, const char *text, char **save, hk_decision *d) {
  const hk_device device = task->options.device;
  char *word = strtok_r(*save, " ", save), *next = *save;
  for (; word && !strncmp(next, "/ ", 2); word = strtok_r(next + 2, " ", save), next = *save) {
    const hk_rewrite *r = find_rewrite(word, device);
    if (!r) return no_rewrite(text, word, device);
    if (d->depth == HK_DEPTH)
      return hk_fail(HK_SYNTAX, "decision \"%.120s\": a path has at most %d rewrites", text, HK_DEPTH);
    d->path[d->depth++] = r;
  }
  if (!word || !(d->algo = find_algo(word, device))) return no_algo(text, word ? word : "", device);
  for (int i = 1; i < d->depth; i++)
    if (d->path[i]->order <= d->path[i - 1]->order) return misplaced(text, d, i);
  return HK_OK;
}
