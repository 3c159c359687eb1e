/* The process's wisdom: one table behind a lock, filled from the files at first use. */
#include "tune/wisdom.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "cuda/cuda.h"
#include "tune/wisdom_file.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static hk_wisdom_table table;
static bool loaded;

static void epilogue_class(const hk_epi *epi, hk_text *t) {
  const hk_epilogue *e = &epi->e;
  static const char *const orders[] = {"", "+sum", "+presum"}, *const gates[] = {"", "+gated", "+blended"};
  hk_text_add(t, "%s%s%s+%s", e->scale ? "scale" : "plain", e->bias ? "+bias" : "", gates[e->gate],
              hk_act_name(e->act));
  if (e->gate) hk_text_add(t, "+%s", hk_act_name(e->act2));
  hk_text_add(t, "%s%s%s", orders[e->residual], e->user2 || e->cuda_user2 ? "+user2" : "",
              e->store || e->cuda_store ? "+store" : "");
}

/* machine, ISA and threads: on a GPU its name, the code's target, and no threads. A CPU's name stands for several
 * machines ("AMD EPYC" under a hypervisor), so its numbers and caches follow it. */
static void put_machine(const hk_task *task, hk_text *t) {
  hk_machine m = {.size = sizeof m};
  hk_cu_device here;
  if (task->options.device == HK_CUDA) {
    const bool present = !hk_cu_here(&here);
    hk_text_add(t, "%s\tcuda%d.%d\t0", present ? here.name : "no device", present ? here.major : 0,
                present ? here.minor : 0);
    return;
  }
  hk_cpu_describe(&m);
  hk_text_add(t, "%s, family %d, model %d, stepping %d, caches %lld %lld %lld", m.cpu, m.family, m.model, m.stepping,
              (long long)m.l1d_bytes, (long long)m.l2_bytes, (long long)m.l3_bytes);
  hk_text_add(t, "\t%s\t%d", hk_isa_name(task->isa), task->threads);
}

void hk_wisdom_key(const hk_task *task, char *key, size_t size) {
  char problem[1024];
  const hk_options *o = &task->options;
  hk_text t = {key, size, 0};
  hk_problem p = task->problem;
  if (task->epi.e.gate) p.y.group = 0; /* y is one run of channels: nothing reads it */
  hk_problem_print(&p, problem, sizeof problem, NULL);
  hk_text_add(&t, "%s\t", HK_VERSION_TEXT);
  put_machine(task, &t);
  hk_text_add(&t, "\tmath=%u,fnow=%d,state=%d,unaligned=%d,invariant=%d", o->math, task->f_now, o->stateful != 0,
              o->unaligned != 0, o->batch_invariant != 0);
  if (o->limit_workspace) hk_text_add(&t, ",workspace=%zu", o->workspace_limit_bytes);
  hk_text_add(&t, "\t%s\t", problem);
  epilogue_class(&task->epi, &t);
}

/* A file that cannot be used is said in the log and left alone: planning goes on without it. */
static void load_files(void) {
  char path[4096];
  const char *files[2] = {"/etc/hankel/wisdom", hk_wisdom_user_file(path, sizeof path) ? path : NULL};
  loaded = true;
  for (int i = 0; i < 2; i++)
    if (files[i] && hk_wisdom_read(&table, files[i], false))
      hk_log(HK_LOG_WARN, "hankel,warn,wisdom,%s", hk_last_error());
}

bool hk_wisdom_find(const char *key, char *decision, size_t size, double *seconds) {
  pthread_mutex_lock(&lock);
  if (!loaded) load_files();
  const hk_wisdom_entry *e = hk_table_find(&table, key);
  const bool found = e && strlen(e->decision) < size;
  if (found) {
    memcpy(decision, e->decision, strlen(e->decision) + 1);
    *seconds = e->seconds;
  }
  pthread_mutex_unlock(&lock);
  return found;
}

hk_status hk_wisdom_learn(const char *key, const char *decision, double seconds) {
  pthread_mutex_lock(&lock);
  const hk_status s = hk_table_put(&table, key, decision, seconds, true, false);
  pthread_mutex_unlock(&lock);
  return s;
}

/* Moves a parsed table into ours, all of it or nothing; what was learnt in this process stays. */
static hk_status take(hk_wisdom_table *from) {
  pthread_mutex_lock(&lock);
  const hk_status s = hk_table_take(&table, from);
  pthread_mutex_unlock(&lock);
  return s;
}

hk_status hk_wisdom_import(const char *text) {
  hk_wisdom_table t = {0};
  if (!text) return hk_fail(HK_INVALID, "text is NULL");
  hk_status s = hk_table_parse(&t, "text", text);
  if (!s) s = take(&t);
  hk_table_clear(&t);
  return s;
}

hk_status hk_wisdom_export(char *buffer, size_t size, size_t *length) {
  hk_text t = {buffer, size, 0};
  pthread_mutex_lock(&lock);
  if (!loaded) load_files();
  const hk_status s = hk_table_print(&table, &t);
  pthread_mutex_unlock(&lock);
  if (length) *length = t.length;
  return s;
}

hk_status hk_wisdom_load(const char *path) {
  hk_wisdom_table t = {0};
  if (!path) {
    pthread_mutex_lock(&lock);
    load_files();
    pthread_mutex_unlock(&lock);
    return HK_OK;
  }
  hk_status s = hk_wisdom_read(&t, path, true);
  if (!s) s = take(&t);
  hk_table_clear(&t);
  return s;
}

hk_status hk_wisdom_save(const char *path) {
  char own[4096];
  if (!path) {
    if (!hk_wisdom_user_file(own, sizeof own))
      return hk_fail(HK_IO, "there is no wisdom file: HANKEL_WISDOM is \"none\", or HOME is not set");
    path = own;
  }
  pthread_mutex_lock(&lock);
  const hk_status s = hk_wisdom_merge(&table, path);
  pthread_mutex_unlock(&lock);
  return s;
}

hk_status hk_wisdom_path(char *buffer, size_t size, size_t *length) {
  char path[4096] = "";
  hk_wisdom_user_file(path, sizeof path);
  hk_text t = {buffer, size, 0};
  hk_text_add(&t, "%s", path);
  if (length) *length = t.length;
  return HK_OK;
}

void hk_wisdom_forget(void) {
  pthread_mutex_lock(&lock);
  hk_table_clear(&table);
  loaded = true;
  pthread_mutex_unlock(&lock);
}

int64_t hk_wisdom_count(void) {
  pthread_mutex_lock(&lock);
  if (!loaded) load_files();
  const int64_t n = table.count;
  pthread_mutex_unlock(&lock);
  return n;
}
