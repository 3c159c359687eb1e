/* Loading of peers: see peer.h. */
#include <dlfcn.h>
#include <libgen.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli.h"
#include "bench/bench.h"

/* What holds each library to an instruction set; read by it when it is loaded, so it is said before that. XNNPACK has
 * no variable of its own: its peer reads HANKEL_PEER_ISA. What the caller has set stands. */
void bench_peers_hold(hk_isa isa) {
  static const char *const avx2[][2] = {
      {"ONEDNN_MAX_CPU_ISA", "AVX2"}, {"OPENBLAS_CORETYPE", "Haswell"}, {"HANKEL_PEER_ISA", "avx2"}};
  for (size_t i = 0; isa == HK_ISA_AVX2 && i < sizeof avx2 / sizeof *avx2; i++) setenv(avx2[i][0], avx2[i][1], 0);
}

static const hk_peer *open_at(const char *path) {
  void *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  hk_peer_get_fn get = NULL;
  if (!handle) return NULL;
  *(void **)&get = dlsym(handle, "hk_peer_get");
  const hk_peer *peer = get ? get() : NULL;
  if (peer && peer->version == HK_PEER_VERSION) return peer;
  cli_error("%s is no peer of version %d", path, HK_PEER_VERSION);
  return NULL;
}

/* A name is looked up in the two places; anything with a slash is a path. */
const hk_peer *bench_peer_open(const char *name) {
  char path[4096], program[2048];
  if (strchr(name, '/')) {
    const hk_peer *peer = open_at(name);
    if (!peer) cli_error("--peer %s: %s", name, dlerror());
    return peer;
  }
  const char *folder = getenv("HANKEL_PEERS");
  if (folder && snprintf(path, sizeof path, "%s/hankel_peer_%s.so", folder, name) < (int)sizeof path &&
      !access(path, R_OK))
    return open_at(path);
  ssize_t length = readlink("/proc/self/exe", program, sizeof program - 1);
  if (length > 0) {
    program[length] = 0;
    snprintf(path, sizeof path, "%s/../lib/hankel/peers/hankel_peer_%s.so", dirname(program), name);
    if (!access(path, R_OK)) return open_at(path);
  }
  cli_error("--peer %s: no hankel_peer_%s.so in $HANKEL_PEERS or beside the program", name, name);
  return NULL;
}
