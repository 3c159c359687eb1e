/* See jack.h. */
#include "jack.h"

#include <dlfcn.h>
#include <stddef.h>
#include <string.h>

#include "program.h"

static const struct {
  const char *name;
  size_t at;
} functions[] = {
#define FUNCTION(name)                                                                                                 \
  { "jack_" #name, offsetof(jack, name) }
    FUNCTION(client_open),
    FUNCTION(client_close),
    FUNCTION(get_client_name),
    FUNCTION(set_process_callback),
    FUNCTION(set_xrun_callback),
    FUNCTION(set_latency_callback),
    FUNCTION(set_sample_rate_callback),
    FUNCTION(on_shutdown),
    FUNCTION(set_error_function),
    FUNCTION(set_info_function),
    FUNCTION(port_register),
    FUNCTION(port_get_buffer),
    FUNCTION(port_name),
    FUNCTION(port_get_latency_range),
    FUNCTION(port_set_latency_range),
    FUNCTION(recompute_total_latencies),
    FUNCTION(get_sample_rate),
    FUNCTION(get_buffer_size),
    FUNCTION(cpu_load),
    FUNCTION(activate),
    FUNCTION(deactivate),
    FUNCTION(connect),
    FUNCTION(get_ports),
    FUNCTION(free),
#undef FUNCTION
};

static void say_nothing(const char *sentence) { (void)sentence; }

int jack_load(jack *j) {
  memset(j, 0, sizeof *j);
  void *library = dlopen("libjack.so.0", RTLD_NOW | RTLD_LOCAL);
  if (!library) return program_fail("live needs JACK: %s (Debian: libjack-jackd2-0 or pipewire-jack)", dlerror());
  for (size_t i = 0; i < sizeof functions / sizeof *functions; i++) {
    void *found = dlsym(library, functions[i].name);
    memcpy((char *)j + functions[i].at, &found, sizeof found);
    if (!found)
      return program_fail("libjack.so.0 has no function %s; JACK 0.121 or later is needed", functions[i].name);
  }
  j->set_error_function(say_nothing); /* its sentences would stand between this program's */
  j->set_info_function(say_nothing);
  return 0;
}
