/* What a real-time thread may rely on: process, reset and set_size make no allocation and take no lock, and process
 * makes no system call at all: a child under strict seccomp, which the kernel kills for any, plays a model. A loaded
 * model is one allocation; loading a model of any kind with the n-th allocation failing says so and leaves nothing
 * behind. */
#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
#ifdef __linux__
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#endif

#include "hankel_nam.h"
#include "support/allocs.h"
#include "support/check.h"

static long locks;

/* Stands before libc's for the whole program. */
int pthread_mutex_lock(pthread_mutex_t *m) {
  static int (*real)(pthread_mutex_t *);
  if (!real) *(void **)&real = dlsym(RTLD_NEXT, "pthread_mutex_lock");
  locks++;
  return real(m);
}

enum { FRAMES = 4000 };
static float x[FRAMES], y[FRAMES];
static double xd[FRAMES], yd[FRAMES];
static char json[1 << 18];

/* A container of a WaveNet with most features and an LSTM. */
static void make_json(void) {
  size_t n = (size_t)snprintf(json, sizeof json,
                              "{\"version\":\"0.7.0\",\"architecture\":\"SlimmableContainer\",\"weights\":[],"
                              "\"config\":{\"submodels\":[{\"max_value\":0.5,\"model\":"
                              "{\"version\":\"0.5.4\",\"architecture\":\"LSTM\",\"sample_rate\":48000,\"config\":{"
                              "\"num_layers\":1,\"input_size\":1,\"hidden_size\":3},\"weights\":[");
  for (int i = 0; i < 70; i++)
    n += (size_t)snprintf(json + n, sizeof json - n, "%s%g", i ? "," : "", (i % 13 - 6) * 0.1);
  n += (size_t)snprintf(json + n, sizeof json - n,
                        "]}},{\"max_value\":1.0,\"model\":{\"version\":\"0.6.0\",\"architecture\":\"WaveNet\",\"sample_"
                        "rate\":48000,\"config\":{\"head_scale\":1,\"layers\":[{"
                        "\"input_size\":1,\"condition_size\":1,\"channels\":6,\"kernel_size\":3,\"dilations\":[1,7,300]"
                        ",\"activation\":\"Tanh\",\"gating_mode\":\"gated\","
                        "\"conv_pre_film\":{},\"head_size\":1,\"head_bias\":true}]},\"weights\":[");
  /* rechannel 6; per layer conv 12*6*3+12, mixin 12, layer1x1 36+6, film 12+12; head 6+1; scale */
  const int count = 6 + 3 * (12 * 6 * 3 + 12 + 12 + 42 + 24) + 7 + 1;
  for (int i = 0; i < count; i++)
    n += (size_t)snprintf(json + n, sizeof json - n, "%s%g", i ? "," : "", (i * 7 % 13 - 6) * 0.05);
  snprintf(json + n, sizeof json - n, "]}}]}}");
}

static void play(hk_nam *m) {
  const int64_t blocks[] = {1, 16, 37, 64, 256, 1000, 300};
  for (int64_t at = 0, i = 0; at < FRAMES; i++) {
    const int64_t n = blocks[i % 7] < FRAMES - at ? blocks[i % 7] : FRAMES - at;
    hk_nam_process(m, x + at, n, y + at);
    at += n;
  }
}

static void test_quiet(hk_nam *m) {
  made = locks = 0;
  play(m);
  CHECK(made == 0 && locks == 0, "process: %ld allocations, %ld locks", made, locks);
  hk_nam_process_double(m, xd, FRAMES, yd);
  CHECK(made == 0 && locks == 0, "process_double: %ld allocations, %ld locks", made, locks);
  hk_nam_set_size(m, 0.1);
  play(m);
  hk_nam_reset(m);
  hk_nam_set_size(m, 1.0);
  CHECK(made == 0 && locks == 0, "set_size and reset: %ld allocations, %ld locks", made, locks);
}

/* Strict mode allows read, write, exit and sigreturn; the child ends by the plain exit, which is one of them. */
static void test_no_system_call(hk_nam *m) {
#if defined(__linux__) && !defined(HK_SANITIZED)
  const pid_t child = fork();
  if (!child) {
    play(m); /* what is bound lazily is bound now */
    if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT)) _exit(3);
    play(m);
    syscall(SYS_exit, 0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  if (WIFEXITED(status) && WEXITSTATUS(status) == 3) return; /* the kernel has no seccomp */
  CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0, "the child ended with %x: a system call in process",
        (unsigned)status);
#else
  (void)m;
#endif
}

typedef enum way { MEMORY, FILE_PATH, MEASURE, WAYS } way;

static hk_status load(way how, const char *path, const char *text, hk_nam **m) {
  size_t bytes = 0;
  if (how == MEMORY) return hk_nam_load_memory(m, text, strlen(text), NULL);
  return how == FILE_PATH ? hk_nam_load_file(m, path, NULL) : hk_nam_measure(text, strlen(text), NULL, &bytes);
}

/* With the n-th allocation failing, and with all from the n-th on, until nothing fails: HK_NO_MEMORY with a sentence,
 * nothing left behind, and the model as good as ever afterwards. */
static void test_failing_loads(way how, const char *path, const char *text) {
  for (fail_rest = 0; fail_rest < 2; fail_rest++) {
    for (long n = 1; n < 1000; n++) {
      hk_nam *m = NULL;
      const long before = live;
      refused = 0;
      fail_at = n;
      const hk_status e = load(how, path, text, &m);
      fail_at = 0;
      if (!refused) {
        CHECK(!e, "%s: %s", path, hk_nam_last_error());
        CHECK(live == before + (how != MEASURE), "%s: a loaded model keeps %ld blocks", path, live - before);
        if (m) play(m);
        hk_nam_free(m);
        CHECK(live == before, "%s: free leaves %ld blocks", path, live - before);
        CHECK(n > 5, "%s: only %ld allocations were seen", path, n);
        break;
      }
      CHECK(e == HK_NO_MEMORY && !m && live == before, "%s: allocation %ld failed: status %s, %ld blocks left", path, n,
            hk_status_name(e), live - before);
      CHECK(strstr(hk_nam_last_error(), "no memory"), "%s: allocation %ld failed: \"%s\"", path, n,
            hk_nam_last_error());
    }
  }
  fail_rest = 0;
}

/* One file of every kind. Read into memory with the true functions, so that nothing here counts. */
static void test_every_kind(void) {
  static const char *const kinds[] = {"wavenet", "features", "condition", "slimmable",
                                      "lstm",    "convnet",  "linear",    "container"};
  static char text[1 << 16];
  for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
    char path[64];
    snprintf(path, sizeof path, "tests/fuzz/corpus/nam/%s.nam", kinds[i]);
    FILE *file = fopen(path, "rb");
    CHECK(file != NULL, "%s is missing", path);
    if (!file) continue;
    text[fread(text, 1, sizeof text - 1, file)] = 0;
    fclose(file);
    for (way how = 0; how < WAYS; how++) test_failing_loads(how, path, text);
  }
}

int main(void) {
  make_json();
  for (int i = 0; i < FRAMES; i++) x[i] = (float)(xd[i] = (i * 37 % 101 - 50) * 0.01);
  hk_nam *m = NULL;
  CHECK(!hk_nam_load_memory(&m, json, strlen(json), NULL), "%s", hk_nam_last_error());
  if (!m) return hk_test_end();
  test_quiet(m);
  test_no_system_call(m);
  hk_nam_free(m);
  test_failing_loads(MEMORY, "the container", json);
  test_every_kind();
  return hk_test_end();
}
