/* What the audio thread may rely on: set, retired, process, reset and latency make no allocation, take no lock, and,
 * set to play under strict seccomp, make no system call, through changes of every kind. And parts short of memory: with
 * the n-th allocation failing, loading says so and leaves nothing behind. */
#include <dlfcn.h>
#include <math.h>
#include <pthread.h>
#include <sys/wait.h>
#ifdef __linux__
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#endif

#include "support/allocs.h"
#include "support/rig.h"

enum { FRAMES = 12000, PARTS = 4 };
static float x[2][FRAMES], y[2][FRAMES];
static float *const in[2] = {x[0], x[1]}, *const out[2] = {y[0], y[1]};
static long locks;

/* Stands before libc's for the whole program. */
int pthread_mutex_lock(pthread_mutex_t *m) {
  static int (*real)(pthread_mutex_t *);
  if (!real) *(void **)&real = dlsym(RTLD_NEXT, "pthread_mutex_lock");
  locks++;
  return real(m);
}

/* Every change there is; the parts come back one by one. */
static void play(hk_rig *r, hk_rig_part *part[PARTS]) {
  int count = 0;
  hk_rig_controls c = {.size = sizeof c};
  for (int i = 0; i < 2 * PARTS; i++) {
    if (i < PARTS) hk_rig_set(r, i % 2 ? HK_RIG_CABINET : HK_RIG_AMP, part[i]);
    else hk_rig_set(r, i % 2 ? HK_RIG_CABINET : HK_RIG_AMP, NULL);
    c = (hk_rig_controls){sizeof c, .input_db = i, .output_db = -i, .gate_db = i % 2 ? -30 : 0, .bypass = i % 3 == 1};
    c.resize = 1;
    c.model_size = i % 4 / 4.0;
    c.level = (hk_rig_level)(i % 3);
    rig_play(r, &c, in, FRAMES, out, i % 2 ? 64 : 0);
    while (hk_rig_retired(r)) count++;
  }
  c.input_db = NAN; /* a refusal too */
  hk_rig_process(r, &c, (const float *const *)in, 1, out);
  hk_rig_reset(r);
  hk_rig_latency(r);
  if (count != PARTS) exit(4);
}

static void test_quiet(double rate) {
  hk_rig *r = rig_of(rate, 2);
  const float h[8] = {1, 2, 3, 4, 4, 3, 2, 1};
  hk_rig_part *part[PARTS] = {rig_amp(r, RIG_MODELS "container.nam"), rig_cabinet(r, h, 4, 2, 44100),
                              rig_amp(r, RIG_MODELS "slimmable.nam"), rig_cabinet(r, h, 2, 4, 48000)};
  made = locks = 0;
  play(r, part);
  CHECK(made == 0 && locks == 0, "%g Hz: %ld allocations, %ld locks", rate, made, locks);
#if defined(__linux__) && !defined(HK_SANITIZED)
  const pid_t child = fork();
  if (!child) { /* strict mode allows read, write, exit and sigreturn */
    if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT)) _exit(3);
    play(r, part);
    syscall(SYS_exit, 0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  CHECK(WIFEXITED(status) && (WEXITSTATUS(status) == 0 || WEXITSTATUS(status) == 3),
        "the child ended with %x: a system call", (unsigned)status);
#endif
  for (int i = 0; i < PARTS; i++) hk_rig_part_free(part[i]);
  hk_rig_free(r);
}

static hk_status load(int kind, const hk_rig *r, hk_rig_part **p, hk_rig **other) {
  static float h[4000];
  if (kind == 0) return hk_rig_load_amp(p, r, RIG_MODELS "container.nam", NULL);
  if (kind == 1) return hk_rig_load_cabinet(p, r, h, 1000, 4, 44100);
  const hk_rig_options o = {.size = sizeof o, .sample_rate = 48000, .channels = 2};
  return hk_rig_create(other, &o);
}

static void test_failing(int kind) {
  hk_rig *r = rig_of(96000, 2);
  for (fail_rest = 0; fail_rest < 2; fail_rest++) {
    for (long n = 1; n < 1000; n++) {
      hk_rig_part *p = NULL;
      hk_rig *other = NULL;
      const long before = live;
      refused = 0;
      fail_at = n;
      const hk_status e = load(kind, r, &p, &other);
      fail_at = 0;
      if (refused)
        CHECK(e == HK_NO_MEMORY && !p && !other && strstr(hk_nam_last_error(), "no memory"),
              "kind %d, allocation %ld: %s \"%s\"", kind, n, hk_status_name(e), hk_nam_last_error());
      else CHECK(!e, "kind %d: %s", kind, hk_nam_last_error());
      hk_rig_part_free(p);
      hk_rig_free(other);
      CHECK(live == before, "kind %d, allocation %ld: %ld blocks left", kind, n, live - before);
      if (!refused) break;
    }
  }
  fail_rest = 0;
  hk_rig_free(r);
}

int main(void) {
  uint64_t seed = 4;
  for (int c = 0; c < 2; c++)
    for (int i = 0; i < FRAMES; i++) x[c][i] = 0.3f * hk_test_float(&seed);
  test_quiet(48000);
  test_quiet(44100);
  for (int kind = 0; kind < 3; kind++) test_failing(kind);
  return hk_test_end();
}
