/* User functions: the igemm kernel of one row, or the pass over staged sums, compiled at plan creation with the
 * caller's CUDA source in its epilogue.
 *
 * The caller's texts are function definitions, starting with the return type:
 *   cuda_user   float hk_user(hk_at at, float v, const void *user)        where act is HK_ACT_USER
 *   cuda_user2  float hk_user2(hk_at at, float v, const void *user)       after everything, before the conversion
 *   cuda_store  void hk_user_store(hk_at at, float v, void *user)         instead of the store
 * at.n, at.k (over all groups) and at.p[3] (outer first, unused ones 0) identify the value; user is hk_args.user.
 * The kernel sources are embedded as text. The result is cached in $XDG_CACHE_HOME/hankel/cubin under a hash of all
 * inputs: the texts, the options, the versions of the compiler and of the library. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cuda/cuda.h"

typedef struct text {
  const char *file, *from, *to;
} text;

#ifdef HK_HAVE_CUDA_KERNELS
#define TEXT(name, file) extern const char hk_text_##name[], hk_text_##name##_end[];
#include "cuda/driver/texts.inc"
#undef TEXT
#endif

static const text texts[] = {
#ifdef HK_HAVE_CUDA_KERNELS
#define TEXT(name, file) {file, hk_text_##name, hk_text_##name##_end},
#include "cuda/driver/texts.inc"
#undef TEXT
#endif
    {NULL, NULL, NULL}};
enum { TEXTS = sizeof texts / sizeof texts[0] - 1 };

typedef struct compiler {
  int (*version)(int *major, int *minor);
  int (*create)(void **p, const char *source, const char *name, int count, const char *const *texts,
                const char *const *names);
  int (*compile)(void *p, int count, const char *const *options);
  int (*log_size)(void *p, size_t *size);
  int (*log)(void *p, char *log);
  int (*cubin_size)(void *p, size_t *size);
  int (*cubin)(void *p, char *cubin);
  int (*destroy)(void **p);
} compiler;

static bool compiler_load(compiler *c) {
  static const char *const names[] = {"libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so"};
  void *lib = NULL;
  for (int i = 0; i < HK_COUNT(names) && !lib; ++i) lib = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
  if (!lib) return false;
  const struct { void *to; const char *name; } all[] = {
      {&c->version, "nvrtcVersion"}, {&c->create, "nvrtcCreateProgram"}, {&c->compile, "nvrtcCompileProgram"},
      {&c->log_size, "nvrtcGetProgramLogSize"}, {&c->log, "nvrtcGetProgramLog"}, {&c->cubin_size, "nvrtcGetCUBINSize"},
      {&c->cubin, "nvrtcGetCUBIN"}, {&c->destroy, "nvrtcDestroyProgram"}};
  for (int i = 0; i < HK_COUNT(all); ++i)
    if (!(*(void **)all[i].to = dlsym(lib, all[i].name))) return false;
  return true;
}

static bool text_is(const char *t) { return t && *t; }

/* The kernel itself, after the caller's functions: hk_wgmma_<type>_<tag> as hk_wgmma_user; the pass needs none. */
static bool kernel_text(const char *row, char *to, size_t size) {
  static const char *const device[][2] = {{"bf16", "HK_CU_BF16"}, {"f16", "HK_CU_F16"}, {"tf32", "HK_CU_F32"},
                                          {"split", "HK_CU_F32"}, {"f8", "HK_CU_F8"}};
  const char *type = NULL, *tag = row;
  const hk_cu_row *r = NULL;
  for (int i = 0; i < HK_COUNT(device); ++i) {
    const size_t n = strlen(device[i][0]);
    if (!strncmp(row + 9, device[i][0], n) && row[9 + n] == '_') type = device[i][1], tag = row + 10 + n;
  }
  for (int i = 0; i < hk_cu_row_count; ++i)
    if (!strcmp(hk_cu_rows[i].name, row)) r = &hk_cu_rows[i];
  if (!r || !type) return false;
  snprintf(
      to, size,
      "extern \"C\" __global__ void __launch_bounds__(%d, 1) hk_wgmma_user(const __grid_constant__ hk_cu_launch P) {\n"
      "  const igemm_tile t = {%d, %d, %d, %d, %d, %d, %d, %d, %d, %d};\n  igemm_body(&P, %s, t);\n}\n/* %s */\n",
      128 * (r->nc + 1), r->mi, r->nc, r->bn, r->stages, r->cm, r->cn, r->split, r->chunk, r->parts, r->wgs, type, tag);
  return true;
}

char *hk_cu_user_source(const char *row, const hk_epilogue *e) {
  const struct {
    const char *text, *name;
  } functions[] = {{e->cuda_user, "HK_USER"}, {e->cuda_user2, "HK_USER2"}, {e->cuda_store, "HK_USER_STORE"}};
  char kernel[1024] = "";
  size_t size = sizeof kernel + 1024;
  if (row && !kernel_text(row, kernel, sizeof kernel)) return NULL;
  for (int i = 0; i < HK_COUNT(functions); ++i) size += functions[i].text ? strlen(functions[i].text) : 0;
  char *source = hk_alloc(size);
  if (!source) return NULL;
  hk_text t = {source, size, 0};
  hk_text_add(&t, "#define INFINITY __int_as_float(0x7f800000)\n#define hk_at hk_cu_at\n");
  for (int i = 0; i < HK_COUNT(functions); ++i)
    if (text_is(functions[i].text)) hk_text_add(&t, "#define %s 1\n", functions[i].name);
  hk_text_add(&t, "#include \"%s\"\n", row ? "cuda/igemm/igemm.cuh" : "cuda/passes/staged.cuh");
  for (int i = 0; i < HK_COUNT(functions); ++i)
    if (text_is(functions[i].text)) hk_text_add(&t, "HK_DEV %s\n", functions[i].text);
  hk_text_add(&t, "%s", kernel);
  return source;
}

static uint64_t hash(uint64_t h, const char *from, size_t n) {
  for (size_t i = 0; i < n; ++i) h = (h ^ (unsigned char)from[i]) * 0x100000001b3ull;
  return h;
}

static void cache_path(char *path, size_t size, const char *source, int major, int minor) {
  const char *root = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
  uint64_t a = 0xcbf29ce484222325ull, b = 0x84222325cbf29ce4ull;
  for (int i = 0; i < TEXTS; ++i) {
    a = hash(a, texts[i].from, (size_t)(texts[i].to - texts[i].from));
    b = hash(b, texts[i].from, (size_t)(texts[i].to - texts[i].from));
  }
  a = hash(a, source, strlen(source)), b = hash(b, source, strlen(source));
  a = hash(a, HK_VERSION_TEXT, sizeof HK_VERSION_TEXT);
  char folder[512];
  snprintf(folder, sizeof folder, "%.200s%s/hankel",
           root && *root ? root
           : home        ? home
                         : "/tmp",
           root && *root ? "" : "/.cache");
  for (char *s = folder + 1; *s; ++s)
    if (*s == '/') *s = 0, mkdir(folder, 0777), *s = '/';
  mkdir(folder, 0777);
  snprintf(path, size, "%s/cubin", folder);
  mkdir(path, 0777);
  snprintf(path, size, "%s/cubin/%016llx%016llx-%d.%d", folder, (unsigned long long)a, (unsigned long long)b, major,
           minor);
}

static char *file_read(const char *path, size_t *size) {
  FILE *f = fopen(path, "rb");
  char *data = NULL;
  if (!f) return NULL;
  if (!fseek(f, 0, SEEK_END) && (*size = (size_t)ftell(f)) > 0 && (data = hk_alloc(*size))) {
    rewind(f);
    if (fread(data, 1, *size, f) != *size) hk_free(data), data = NULL;
  }
  fclose(f);
  return data;
}

/* Writes under a temporary name first, so that no reader sees a partial file. A failure to cache is ignored. */
static void file_keep(const char *path, const char *data, size_t size) {
  char part[700];
  snprintf(part, sizeof part, "%s.%ld", path, (long)getpid());
  FILE *f = fopen(part, "wb");
  if (!f) return;
  const bool whole = fwrite(data, 1, size, f) == size;
  if (fclose(f) || !whole || rename(part, path)) remove(part);
}

static hk_status compile(const compiler *c, const char *source, char **cubin, size_t *size) {
  static const char *const options[] = {"--gpu-architecture=sm_90a", "--std=c++17"};
  const char *bodies[TEXTS + 1], *names[TEXTS + 1];
  char *copies[TEXTS + 1] = {0};
  void *program = NULL;
  hk_status s = HK_OK;
  for (int i = 0; i < TEXTS && !s; ++i) {
    const size_t n = (size_t)(texts[i].to - texts[i].from);
    if (!(copies[i] = hk_alloc(n + 1))) s = hk_fail(HK_NO_MEMORY, "no memory for the kernel's source");
    else memcpy(copies[i], texts[i].from, n), copies[i][n] = 0;
    bodies[i] = copies[i];
    names[i] = texts[i].file;
  }
  if (!s && c->create(&program, source, "hankel_user.cu", TEXTS, bodies, names))
    s = hk_fail(HK_DEVICE, "device: NVRTC did not start");
  if (!s && c->compile(program, HK_COUNT(options), options)) {
    char log[4096] = "";
    size_t n = 0;
    if (!c->log_size(program, &n) && n < sizeof log) c->log(program, log);
    s = hk_fail(HK_DEVICE, "cuda_user: the CUDA source does not compile: %.300s", log);
  }
  if (!s && (c->cubin_size(program, size) || !(*cubin = hk_alloc(*size)) || c->cubin(program, *cubin)))
    s = hk_fail(HK_DEVICE, "device: NVRTC returned no code");
  if (program) c->destroy(&program);
  for (int i = 0; i < TEXTS; ++i) hk_free(copies[i]);
  return s;
}

hk_status hk_cu_user_kernel(const char *row, const hk_epilogue *e, int shared_bytes, hk_cu_lib *lib,
                            hk_cu_kernel *kernel) {
  compiler c;
  const hk_cu_driver *cu = hk_cu();
  int major = 0, minor = 0;
  char path[640], *cubin = NULL;
  size_t size = 0;
  if (!cu) return HK_DEVICE;
  if (!compiler_load(&c) || c.version(&major, &minor))
    return hk_fail(HK_DEVICE, "cuda_user: user functions need NVRTC; libnvrtc.so.13 or .12 cannot be loaded");
  char *source = hk_cu_user_source(row, e);
  if (!source) return hk_fail(HK_NO_MEMORY, "no memory for the kernel's source");
  cache_path(path, sizeof path, source, major, minor);
  hk_status s = HK_OK;
  cubin = file_read(path, &size);
  if (!cubin) {
    s = compile(&c, source, &cubin, &size);
    if (!s) file_keep(path, cubin, size);
  }
  if (!s) s = hk_cu_check(cu->lib_load(lib, cubin, NULL, NULL, 0, NULL, NULL, 0), "loading a compiled user function");
  if (!s)
    s = hk_cu_check(cu->lib_kernel(kernel, *lib, row ? "hk_wgmma_user" : "hk_direct_staged"),
                    "finding a compiled user function");
  if (!s) s = hk_cu_kernel_prepare(*kernel, shared_bytes);
  hk_free(cubin);
  hk_free(source);
  return s;
}
