/* Loads libcuda.so.1 when a plan first needs the device, and finds a context. It never creates one: it uses the
 * thread's current context, otherwise the device's primary context, which PyTorch, CuPy and the CUDA runtime use
 * too. */
#include "cuda/driver/driver.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static hk_cu_driver driver;
static char refusal[160];
static pthread_once_t once = PTHREAD_ONCE_INIT;

#define LOAD(name, symbol, args)                                                            \
  *(void **)&driver.name = dlsym(library, symbol);                                          \
  if (!driver.name && !refusal[0]) snprintf(refusal, sizeof refusal, "the CUDA driver lacks %s (too old)", symbol);

static void load(void) {
  void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_GLOBAL);
  if (!library) {
    snprintf(refusal, sizeof refusal, "no CUDA driver: libcuda.so.1 cannot be loaded");
    return;
  }
  HK_CU_ENTRIES(LOAD)
  if (refusal[0]) return;
  const hk_cu_result r = driver.init(0);
  const char *name = "an unknown error";
  if (r) driver.error_name(r, &name);
  if (r) snprintf(refusal, sizeof refusal, "the CUDA driver did not start: %s", name);
}

const hk_cu_driver *hk_cu(void) {
  pthread_once(&once, load);
  if (!refusal[0]) return &driver;
  hk_fail(HK_DEVICE, "device: %s", refusal);
  return NULL;
}

hk_status hk_cu_check(hk_cu_result result, const char *doing) {
  if (!result) return HK_OK;
  const char *name = NULL;
  if (driver.error_name(result, &name) || !name) name = "unknown";
  return hk_fail(HK_DEVICE, "device: %s failed with %s", doing, name);
}

hk_status hk_cu_device_wanted(int *number) {
  const char *text = getenv("HANKEL_CUDA_DEVICE");
  char *end = NULL;
  *number = 0;
  if (!text || !*text) return HK_OK;
  const long n = *text >= '0' && *text <= '9' ? strtol(text, &end, 10) : -1;
  if (n < 0 || *end || n > 1023)
    return hk_fail(HK_DEVICE, "device: HANKEL_CUDA_DEVICE is '%.40s'; accepted: the number of a device, from 0 on",
                   text);
  *number = (int)n;
  return HK_OK;
}

static hk_status context(const hk_cu_driver *cu) {
  hk_cu_ctx ctx = NULL;
  hk_status s = hk_cu_check(cu->ctx_current(&ctx), "reading the current context");
  if (s || ctx) return s;
  hk_cu_dev device;
  int number;
  s = hk_cu_device_wanted(&number);
  if (!s)
    s = hk_cu_check(cu->device_get(&device, number),
                    number ? "finding the device of HANKEL_CUDA_DEVICE" : "finding the device");
  if (!s) s = hk_cu_check(cu->primary_retain(&ctx, device), "retaining the primary context");
  if (!s) s = hk_cu_check(cu->ctx_set(ctx), "setting the context");
  return s;
}

static hk_status query(const hk_cu_driver *cu, hk_cu_device *d) {
  enum {
    CLOCK = 13,
    PROCESSORS = 16,
    MEMORY_CLOCK = 36,
    BUS_BITS = 37,
    L2_BYTES = 38,
    MAJOR = 75,
    MINOR = 76,
    SHARED_OPTIN = 97
  };
  hk_status s = hk_cu_check(cu->device_name(d->name, sizeof d->name, d->device), "reading the device's name");
  const struct {
    int *to, id;
  } attributes[] = {{&d->processors, PROCESSORS},
                    {&d->l2_bytes, L2_BYTES},
                    {&d->major, MAJOR},
                    {&d->minor, MINOR},
                    {&d->shared_bytes, SHARED_OPTIN},
                    {&d->clock_khz, CLOCK},
                    {&d->memory_khz, MEMORY_CLOCK},
                    {&d->bus_bits, BUS_BITS}};
  for (int i = 0; !s && i < HK_COUNT(attributes); ++i)
    s = hk_cu_check(cu->device_attribute(attributes[i].to, attributes[i].id, d->device), "reading a device attribute");
  if (!s) s = hk_cu_check(cu->driver_version(&d->driver), "reading the driver's version");
  return s;
}

/* The driver takes 1 ms to report the clock rates, and planning needs them dozens of times, so each device is
 * queried once. */
hk_status hk_cu_here(hk_cu_device *d) {
  enum { DEVICES = 64 };
  static hk_cu_device known[DEVICES];
  static bool queried[DEVICES];
  static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
  const hk_cu_driver *cu = hk_cu();
  if (!cu) return HK_DEVICE;
  hk_status s = context(cu);
  memset(d, 0, sizeof *d);
  if (!s) s = hk_cu_check(cu->ctx_device(&d->device), "reading the context's device");
  if (s) return s;
  const bool listed = d->device >= 0 && d->device < DEVICES;
  pthread_mutex_lock(&lock);
  if (listed && queried[d->device]) *d = known[d->device];
  else {
    s = query(cu, d);
    if (!s && listed) known[d->device] = *d, queried[d->device] = true;
  }
  pthread_mutex_unlock(&lock);
  return s;
}
