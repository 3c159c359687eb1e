/* The device code: one fatbin per row of images.inc, in libhankel-cuda.so.0, which is opened when a plan first asks
 * for a device. A fatbin is loaded into the driver when one of its kernels is first needed. Libraries and kernels are
 * process-wide and stay loaded, so plans never unload each other's code. */
#include "cuda/driver/driver.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "cuda/cuda.h"
#include "cuda/driver/images.h"

#define TEXT_OF(number) TEXT(number)
#define TEXT(number) #number
#define LIBRARY "libhankel-cuda.so." TEXT_OF(HK_VERSION_MAJOR)
#define IMAGE(name, source, type) {#name, NULL, NULL},

typedef struct image {
  const char *name;
  const unsigned char *code;
  hk_cu_lib lib;
} image;

static image images[] = {
#include "cuda/driver/images.inc"
    {NULL, NULL, NULL}};
static char missing[HK_CU_REASON]; /* why there is no device code */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_once_t opened = PTHREAD_ONCE_INIT;

/* Opens the library beside this one, else where the system's linker finds it. */
static void *open_library(void) {
  char path[1024];
  Dl_info here;
  void *library = NULL;
  if (dladdr(images, &here) && here.dli_fname && strrchr(here.dli_fname, '/')) {
    const int folder = (int)(strrchr(here.dli_fname, '/') - here.dli_fname);
    const int length = snprintf(path, sizeof path, "%.*s/" LIBRARY, folder, here.dli_fname);
    if (length > 0 && (size_t)length < sizeof path) library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  }
  return library ? library : dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL);
}

static void open_images(void) {
  void *library = open_library();
  const hk_cu_code *given = library ? dlsym(library, HK_CU_CODE_SYMBOL) : NULL;
  if (!given) {
    snprintf(missing, sizeof missing, LIBRARY " cannot be loaded: install it, or build with nvcc and HK_CUDA=ON");
  } else if (strcmp(given->name, HK_VERSION_TEXT)) {
    snprintf(missing, sizeof missing,
             LIBRARY " has version %.20s, libhankel " HK_VERSION_TEXT ": install the same of both", given->name);
  } else {
    for (const hk_cu_code *c = given + 1; c->name; ++c)
      for (image *im = images; im->name; ++im)
        if (!strcmp(im->name, c->name)) im->code = c->code;
  }
}

const char *hk_cu_missing(void) {
  pthread_once(&opened, open_images);
  return missing[0] ? missing : NULL;
}

bool hk_cu_has_code(const hk_cu_device *d, char *why) {
  if (d->major == 9) return true; /* sm_90a is not forward compatible: it runs on compute capability 9.0 only */
  snprintf(why, HK_CU_REASON, "%s has compute capability %d.%d; the kernels are built for 9.0 (Hopper) only", d->name,
           d->major, d->minor);
  return false;
}

static hk_status load(image *im) {
  const hk_cu_driver *cu = hk_cu();
  if (!cu) return HK_DEVICE;
  if (im->lib) return HK_OK;
  return hk_cu_check(cu->lib_load(&im->lib, im->code, NULL, NULL, 0, NULL, NULL, 0), "loading the embedded kernels");
}

/* Raises the dynamic shared memory limit of a kernel. Plans share the kernel and its limit: it is never lowered, and
 * two threads do not raise it at once. */
static hk_status raise_shared(hk_cu_kernel kernel, int shared_bytes, hk_cu_dev device) {
  enum { MAX_DYNAMIC_SHARED = 8 };
  const hk_cu_driver *cu = hk_cu();
  int now = 0;
  pthread_mutex_lock(&lock);
  hk_status s =
      hk_cu_check(cu->kernel_get(&now, MAX_DYNAMIC_SHARED, kernel, device), "reading a kernel's shared memory");
  if (!s && now < shared_bytes)
    s = hk_cu_check(cu->kernel_set(MAX_DYNAMIC_SHARED, shared_bytes, kernel, device),
                    "raising a kernel's shared memory");
  pthread_mutex_unlock(&lock);
  return s;
}

hk_status hk_cu_kernel_prepare(hk_cu_kernel kernel, int shared_bytes) {
  const hk_cu_driver *cu = hk_cu();
  hk_cu_device here;
  void *function;
  hk_status s = hk_cu_here(&here);
  if (!s && shared_bytes > 48 * 1024) s = raise_shared(kernel, shared_bytes, here.device);
  /* Requesting the function loads the code now, so that nothing is loaded lazily in execute or under capture. */
  if (!s) s = hk_cu_check(cu->kernel_function(&function, kernel), "loading a kernel");
  return s;
}

hk_status hk_cu_kernel_find(const char *name_of_image, const char *name, int shared_bytes, hk_cu_kernel *kernel) {
  const hk_cu_driver *cu = hk_cu();
  if (!cu) return HK_DEVICE;
  image *im = images;
  while (im->name && strcmp(im->name, name_of_image)) ++im;
  if (hk_cu_missing()) return hk_fail(HK_DEVICE, "device: %s", hk_cu_missing());
  if (!im->code) return hk_fail(HK_DEVICE, "device: " LIBRARY " has no image %s", name_of_image);
  pthread_mutex_lock(&lock);
  hk_status s = load(im);
  pthread_mutex_unlock(&lock);
  if (!s) s = hk_cu_check(cu->lib_kernel(kernel, im->lib, name), name);
  return s ? s : hk_cu_kernel_prepare(*kernel, shared_bytes);
}

hk_status hk_cu_kernel_fills(hk_cu_kernel kernel, int64_t blocks, int threads, int shared_bytes, bool *fills) {
  hk_cu_device here;
  void *function;
  int held = 0;
  hk_status s = hk_cu_here(&here);
  if (!s) s = hk_cu_check(hk_cu()->kernel_function(&function, kernel), "loading a kernel");
  if (!s)
    s = hk_cu_check(hk_cu()->max_blocks(&held, function, threads, (size_t)shared_bytes),
                    "computing the occupancy of a kernel");
  *fills = !s && 10 * blocks >= 9 * (int64_t)held * here.processors;
  return s;
}

/* Launches c in clusters of so many blocks, pdl: with programmatic dependent launch. */
static hk_status launch(hk_cu_kernel kernel, hk_cu_config c, int cluster, bool pdl, void *params) {
  enum { CLUSTER_DIMENSION = 4, PROGRAMMATIC_SERIALIZATION = 6 };
  hk_cu_attribute a[2] = {{.id = CLUSTER_DIMENSION, .value = {.cluster = {(unsigned)cluster, 1, 1}}}};
  void *args[] = {params};
  c.attributes = a;
  c.attribute_count = cluster > 1;
  if (pdl) a[c.attribute_count++] = (hk_cu_attribute){.id = PROGRAMMATIC_SERIALIZATION, .value = {.allowed = 1}};
  return hk_cu_check(hk_cu()->launch(&c, kernel, args, NULL), "launching a kernel");
}

static hk_cu_config config_make(int64_t blocks, int threads, int shared_bytes, void *stream) {
  return (hk_cu_config){.grid = {(unsigned)blocks, 1, 1},
                        .block = {(unsigned)threads, 1, 1},
                        .shared_bytes = (unsigned)shared_bytes,
                        .stream = stream};
}

hk_status hk_cu_kernel_run(hk_cu_kernel kernel, int64_t blocks, int threads, int cluster, int shared_bytes,
                           void *stream, void *params) {
  return launch(kernel, config_make(blocks, threads, shared_bytes, stream), cluster, false, params);
}

hk_status hk_cu_kernel_run_pdl(hk_cu_kernel kernel, int64_t blocks, int threads, int cluster, int shared_bytes,
                               void *stream, void *params) {
  return launch(kernel, config_make(blocks, threads, shared_bytes, stream), cluster, true, params);
}

int hk_cu_max_clusters(hk_cu_kernel kernel, int threads, int cluster, int shared_bytes) {
  enum { CLUSTER_DIMENSION = 4 };
  hk_cu_attribute a = {.id = CLUSTER_DIMENSION, .value = {.cluster = {(unsigned)cluster, 1, 1}}};
  hk_cu_config c = config_make(cluster, threads, shared_bytes, NULL);
  c.attributes = &a;
  c.attribute_count = 1;
  int n = 0;
  return hk_cu()->max_clusters(&n, kernel, &c) ? 0 : n;
}
