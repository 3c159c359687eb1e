/* What the audio thread may rely on: run() makes no allocation and takes no lock, whatever it is asked for, and makes
 * no system call at all: a child under strict seccomp, which the kernel kills for any, plays through a change of the
 * amp and the cabinet. Every run of the other tests of the plugin is counted too. */
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
#ifdef __linux__
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#endif

#include "host.h"
#include "material.h"
#include "support/check.h"
#include "watch.h"

enum { FRAMES = 48000 };
static float x[FRAMES], y[2 * FRAMES];
static char model[MATERIAL_PATH], other[MATERIAL_PATH], cabinet[MATERIAL_PATH];

static void play(host *h, int64_t frames) { host_play(h, x, frames, 300, y); }

/* Everything that a host may do between two blocks. */
static void test_quiet(bool stereo, double rate, worker_kind worker) {
  host *h = host_open(&(host_options){.stereo = stereo, .rate = rate, .worker = worker}, NULL);
  watched_allocations = watched_locks = 0;
  for (int round = 0; round < 6; round++) {
    host_set(h, 17, AMP_MODEL, round == 5 ? "/nowhere" : round % 2 ? other : model);
    host_set(h, 18, AMP_CABINET, round == 3 ? "" : cabinet);
    host_get(h, NULL);
    play(h, 500);
    h->control[2] = (float)round;
    h->control[3] = -(float)round;
    h->control[4] = round % 2 ? -60 : -100;
    h->control[5] = (float)(round % 3);
    h->control[7] = round % 2 ? 0.1f : 1;
    h->control[8] = round != 4;
    play(h, 500);
    if (worker == WORKER_BY_HAND) host_work(h);
    play(h, FRAMES);
  }
  CHECK(h->told > 6 && h->errors == 1, "told %d, %d errors: \"%s\"", h->told, h->errors, h->log);
  CHECK(watched_allocations == 0 && watched_locks == 0, "run: %ld allocations, %ld locks", watched_allocations,
        watched_locks);
  host_close(h);
}

/* The counters count: the host's own allocation, as if it were the plugin's. */
static void test_counters(void) {
#if defined(__GLIBC__) && !defined(HK_SANITIZED)
  static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
  watched_allocations = watched_locks = 0;
  watched = true;
  free(strdup("counted in libc as well"));
  pthread_mutex_lock(&mutex);
  watched = false;
  pthread_mutex_unlock(&mutex);
  CHECK(watched_allocations == 2 && watched_locks == 1, "%ld allocations, %ld locks", watched_allocations,
        watched_locks);
#endif
}

/* Strict mode allows read, write, exit and sigreturn; the child ends by the plain exit, which is one of them. The parts
 * were loaded before; the child hears of them, fades to them, retires the old ones and tells the host. */
static void test_no_system_call(void) {
#if defined(__linux__) && !defined(HK_SANITIZED)
  host *h = host_open(&(host_options){.stereo = true, .rate = 44100, .worker = WORKER_BY_HAND}, NULL);
  host_load(h, AMP_MODEL, model);
  host_load(h, AMP_CABINET, cabinet);
  play(h, FRAMES);
  host_set(h, 0, AMP_MODEL, other);
  host_set(h, 0, AMP_CABINET, "");
  play(h, 100);
  const pid_t child = fork();
  if (!child) {
    host_work(h);
    if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT)) _exit(3);
    host_set(h, 5, AMP_MODEL, model);
    host_get(h, NULL);
    h->control[4] = -50;
    play(h, FRAMES);
    syscall(SYS_exit, strcmp(h->model, other) || *h->cabinet ? 4 : 0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  host_close(h);
  if (WIFEXITED(status) && WEXITSTATUS(status) == 3) return; /* the kernel has no seccomp */
  CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0, "the child ended with %x: a system call in run (9), or not told",
        (unsigned)status);
#endif
}

int main(void) {
  material_absolute(material_small, model);
  material_absolute("tests/fuzz/corpus/nam/slimmable.nam", other);
  material_cabinet("cabinet.wav", 900, 1, 48000, NULL, cabinet);
  material_signal(x, FRAMES);
  test_counters();
  for (int stereo = 0; stereo < 2; stereo++) {
    for (worker_kind k = WORKER_AT_ONCE; k <= WORKER_BY_HAND; k++) {
      test_quiet(stereo, 48000, k);
      test_quiet(stereo, 44100, k);
    }
  }
  test_no_system_call();
  host_end();
  material_end();
  return hk_test_end();
}
