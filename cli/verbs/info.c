/* `hankel info`: the machine as the library sees it, with peak and bandwidth measured now, and the GPU if the driver is
 * there. The driver is opened at run time and asked only for names: nothing is computed on it. */
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"

static bool as_json, quick;
static const char *device;
static const cli_option table[] = {
    {"json", CLI_FLAG, &as_json, NULL, "print JSON"},
    {"quick", CLI_FLAG, &quick, NULL, "measure nothing"},
    {"device", CLI_TEXT, &device, "NAME", "cuda: fail (3) unless there is a CUDA device"},
    {0}};

enum { GPUS = 16 };
typedef struct gpu {
  char name[128];
  size_t bytes;
  int major, minor, units;
} gpu;

/* The driver's own functions, by the names its ABI has had since CUDA 4. */
static int gpus_find(gpu found[GPUS]) {
  void *driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (!driver) return 0;
  int (*init)(unsigned), (*count)(int *), (*get)(int *, int), (*name)(char *, int, int), (*memory)(size_t *, int);
  int (*attribute)(int *, int, int);
  *(void **)&init = dlsym(driver, "cuInit");
  *(void **)&count = dlsym(driver, "cuDeviceGetCount");
  *(void **)&get = dlsym(driver, "cuDeviceGet");
  *(void **)&name = dlsym(driver, "cuDeviceGetName");
  *(void **)&memory = dlsym(driver, "cuDeviceTotalMem_v2");
  *(void **)&attribute = dlsym(driver, "cuDeviceGetAttribute");
  int n = 0, handle;
  if (!init || !count || !get || !name || !memory || !attribute || init(0) || count(&n)) n = 0;
  if (n > GPUS) n = GPUS;
  for (int i = 0; i < n; i++) {
    found[i] = (gpu){.name = "?"};
    if (get(&handle, i)) continue;
    name(found[i].name, sizeof found[i].name, handle);
    memory(&found[i].bytes, handle);
    attribute(&found[i].major, 75, handle); /* CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR */
    attribute(&found[i].minor, 76, handle);
    attribute(&found[i].units, 16, handle); /* CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT */
  }
  return n; /* the driver stays open: it does not survive being closed */
}

typedef struct report {
  hk_machine m;
  int isas, gpus;
  hk_isa isa[8];
  double f32[8], f64[8], level_bytes[4], level_rate[4];
  gpu gpu[GPUS];
} report;

static bool is_arm(const hk_machine *m) { return m->best_isa == HK_ISA_NEON; }

static void measure(report *r) {
  for (int isa = HK_ISA_SCALAR; isa <= (int)r->m.best_isa; isa++) {
    if (isa == HK_ISA_NEON && !is_arm(&r->m)) continue;
    r->isa[r->isas] = (hk_isa)isa;
    r->f32[r->isas] = quick ? 0 : hk_measure_peak((hk_isa)isa, HK_F32);
    r->f64[r->isas++] = quick ? 0 : hk_measure_peak((hk_isa)isa, HK_F64);
  }
  int64_t level[4] = {r->m.l1d_bytes / 2, r->m.l2_bytes / 2, r->m.l3_bytes / 4, 256 << 20};
  for (int i = 0; i < 4; i++) {
    r->level_bytes[i] = (double)level[i];
    r->level_rate[i] = quick || level[i] <= 0 ? 0 : hk_measure_bandwidth((size_t)level[i]);
  }
}

static void print_json(const report *r) {
  cli_json j = {.file = stdout};
  cli_json_open(&j, NULL, '{');
  cli_json_text(&j, "version", hk_version());
  cli_json_text(&j, "cpu", r->m.cpu);
  cli_json_integer(&j, "cores", r->m.cores);
  cli_json_integer(&j, "l1d_bytes", r->m.l1d_bytes);
  cli_json_integer(&j, "l2_bytes", r->m.l2_bytes);
  cli_json_integer(&j, "l3_bytes", r->m.l3_bytes);
  cli_json_text(&j, "best_isa", hk_isa_name(r->m.best_isa));
  cli_json_text(&j, "features", r->m.features);
  cli_json_open(&j, "isas", '[');
  for (int i = 0; i < r->isas; i++) {
    cli_json_open(&j, NULL, '{');
    cli_json_text(&j, "name", hk_isa_name(r->isa[i]));
    if (!quick) cli_json_number(&j, "f32_flops", r->f32[i]);
    if (!quick) cli_json_number(&j, "f64_flops", r->f64[i]);
    cli_json_close(&j, '}');
  }
  cli_json_close(&j, ']');
  cli_json_open(&j, "bandwidth", '[');
  for (int i = 0; !quick && i < 4; i++) {
    cli_json_open(&j, NULL, '{');
    cli_json_number(&j, "bytes", r->level_bytes[i]);
    cli_json_number(&j, "bytes_per_s", r->level_rate[i]);
    cli_json_close(&j, '}');
  }
  cli_json_close(&j, ']');
  cli_json_open(&j, "gpus", '[');
  for (int i = 0; i < r->gpus; i++) {
    cli_json_open(&j, NULL, '{');
    cli_json_text(&j, "name", r->gpu[i].name);
    cli_json_integer(&j, "memory_bytes", (int64_t)r->gpu[i].bytes);
    cli_json_integer(&j, "major", r->gpu[i].major);
    cli_json_integer(&j, "minor", r->gpu[i].minor);
    cli_json_integer(&j, "multiprocessors", r->gpu[i].units);
    cli_json_close(&j, '}');
  }
  cli_json_close(&j, ']');
  cli_json_close(&j, '}');
}

static void print_words(const report *r) {
  static const char *const levels[] = {"L1", "L2", "L3", "memory"};
  printf("hankel     %s\ncpu        %s\ncores      %d usable\n", hk_version(), r->m.cpu, r->m.cores);
  printf("caches     L1d %lld KiB, L2 %lld KiB, L3 %lld KiB\n", (long long)r->m.l1d_bytes >> 10,
         (long long)r->m.l2_bytes >> 10, (long long)r->m.l3_bytes >> 10);
  for (int i = 0; i < r->isas; i++) {
    printf("isa        %-8s", hk_isa_name(r->isa[i]));
    if (r->f32[i] > 0) printf(" %8.1f GFLOP/s f32, %8.1f f64, one thread", 1e-9 * r->f32[i], 1e-9 * r->f64[i]);
    puts(r->isa[i] == r->m.best_isa ? "   (best)" : "");
  }
  if (*r->m.features) printf("features   %s\n", r->m.features);
  for (int i = 0; i < 4; i++)
    if (r->level_rate[i] > 0)
      printf("bandwidth  %-8s %8.1f GB/s read + written, copy of %.0f KiB, one thread\n", levels[i],
             1e-9 * r->level_rate[i], r->level_bytes[i] / 1024);
  for (int i = 0; i < r->gpus; i++)
    printf("gpu        %s, compute %d.%d, %d multiprocessors, %.0f GiB\n", r->gpu[i].name, r->gpu[i].major,
           r->gpu[i].minor, r->gpu[i].units, (double)r->gpu[i].bytes / (1 << 30));
  if (!r->gpus) puts("gpu        none found");
}

int cli_info(const cli_verb *verb, int argc, char **argv) {
  const cli_option *const tables[] = {table, NULL};
  int words = 0, code;
  if (!cli_options_read(verb, tables, argc, argv, NULL, &words, &code)) return code;
  report r = {.m.size = sizeof r.m};
  hk_status s = hk_machine_info(&r.m);
  if (s) return cli_refused(s, "the machine");
  r.gpus = gpus_find(r.gpu);
  if (device && strcmp(device, "cuda") && strcmp(device, "cpu")) {
    cli_error("--device: '%s' is neither cpu nor cuda", device);
    return CLI_USAGE;
  }
  measure(&r);
  if (as_json) print_json(&r);
  else print_words(&r);
  if (device && !strcmp(device, "cuda") && !r.gpus) {
    cli_error("no CUDA device: the driver is missing or finds none");
    return CLI_UNSUPPORTED;
  }
  return CLI_OK;
}
