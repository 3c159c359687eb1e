/* A stand-in for libjack.so.0 for the tests of `hankel-nam live`: a server of its own thread that plays the file
 * STANDIN_IN (f32, mono, repeated to every input with alternating sign) in blocks of changing length and writes what
 * the first output plays to STANDIN_OUT, then silence without end. STANDIN_FAULT: "server" (none runs), "ports",
 * "activate", "shutdown" (the server ends after the file), "rate" (it changes its rate then), "xruns" (it counts
 * three). */
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { MOST = 1024, PORTS = 4, RATE = 48000 };
typedef struct jack_port {
  char name[64];
  unsigned long flags;
  float buffer[MOST];
  uint32_t range[2][2];
} jack_port;

static struct jack_client {
  int (*process)(uint32_t, void *), (*xrun)(void *), (*rate)(uint32_t, void *);
  void (*latency)(int, void *), (*shutdown)(void *), *process_of;
  jack_port port[PORTS];
  int ports;
  pthread_t thread;
  atomic_int stop;
  char name[32];
} client;

static int fault(const char *name) {
  const char *asked = getenv("STANDIN_FAULT");
  return asked && !strcmp(asked, name);
}

struct jack_client *jack_client_open(const char *name, int options, int *status, ...) {
  (void)options;
  *status = fault("server") ? 0x11 : fault("client") ? 0x21 : 0;
  snprintf(client.name, sizeof client.name, "%s", name);
  return *status ? NULL : &client;
}
int jack_client_close(struct jack_client *c) { return c != &client; }
const char *jack_get_client_name(struct jack_client *c) { return c->name; }
int jack_set_process_callback(struct jack_client *c, int (*f)(uint32_t, void *), void *of) {
  c->process = f;
  c->process_of = of;
  return 0;
}
int jack_set_xrun_callback(struct jack_client *c, int (*f)(void *), void *of) { return (void)of, c->xrun = f, 0; }
int jack_set_latency_callback(struct jack_client *c, void (*f)(int, void *), void *of) {
  return (void)of, c->latency = f, 0;
}
int jack_set_sample_rate_callback(struct jack_client *c, int (*f)(uint32_t, void *), void *of) {
  c->rate = f;
  return f(RATE, of);
}
void jack_on_shutdown(struct jack_client *c, void (*f)(void *), void *of) { (void)of, c->shutdown = f; }
void jack_set_error_function(void (*f)(const char *)) { (void)f; }
void jack_set_info_function(void (*f)(const char *)) { (void)f; }

jack_port *jack_port_register(struct jack_client *c, const char *name, const char *type, unsigned long flags,
                              unsigned long bytes) {
  (void)bytes;
  if (fault("ports") || c->ports == PORTS || strcmp(type, "32 bit float mono audio")) return NULL;
  jack_port *p = &c->port[c->ports++];
  snprintf(p->name, sizeof p->name, "%.30s:%.30s", c->name, name);
  p->flags = flags;
  return p;
}
void *jack_port_get_buffer(jack_port *p, uint32_t frames) { return frames <= MOST ? p->buffer : NULL; }
const char *jack_port_name(const jack_port *p) { return p->name; }
void jack_port_get_latency_range(jack_port *p, int mode, uint32_t *range) { memcpy(range, p->range[mode], 8); }
void jack_port_set_latency_range(jack_port *p, int mode, uint32_t *range) { memcpy(p->range[mode], range, 8); }
int jack_recompute_total_latencies(struct jack_client *c) {
  return c->latency(0, c->process_of), c->latency(1, c->process_of), 0;
}
uint32_t jack_get_sample_rate(struct jack_client *c) { return (void)c, RATE; }
uint32_t jack_get_buffer_size(struct jack_client *c) { return (void)c, 64; }
float jack_cpu_load(struct jack_client *c) { return (void)c, 7; }

/* Every input has the sample, the second negated. */
static void play(struct jack_client *c, const float *x, uint32_t frames, FILE *out) {
  for (int i = 0, input = 0; i < c->ports; i++) {
    if (!(c->port[i].flags & 1)) continue;
    for (uint32_t k = 0; k < frames; k++) c->port[i].buffer[k] = input ? -x[k] : x[k];
    input++;
  }
  c->process(frames, c->process_of);
  for (int i = 0; i < c->ports; i++) {
    if (!(c->port[i].flags & 2)) continue;
    if (out) fwrite(c->port[i].buffer, sizeof(float), frames, out);
    return;
  }
}

static void *serve(void *of) {
  struct jack_client *c = of;
  static const uint32_t lengths[] = {64, 1, 128, 1000, 64, 37};
  static const float silence[64];
  const struct timespec wait = {0, 1000000};
  FILE *in = fopen(getenv("STANDIN_IN"), "rb"), *out = fopen(getenv("STANDIN_OUT"), "wb");
  float x[MOST];
  size_t got;
  for (int i = 0; in && (got = fread(x, sizeof *x, lengths[i % 6], in)) > 0; i++) play(c, x, (uint32_t)got, out);
  if (in) fclose(in);
  if (out) fclose(out);
  for (int i = 0; i < 3 && fault("xruns"); i++) c->xrun(c->process_of);
  if (fault("rate")) c->rate(RATE * 2, c->process_of);
  if (fault("shutdown")) c->shutdown(c->process_of);
  while (!atomic_load(&c->stop)) {
    play(c, silence, 64, NULL);
    nanosleep(&wait, NULL);
  }
  return NULL;
}

int jack_activate(struct jack_client *c) { return fault("activate") ? -1 : pthread_create(&c->thread, NULL, serve, c); }
int jack_deactivate(struct jack_client *c) {
  if (!c->thread) return 1;
  atomic_store(&c->stop, 1);
  return pthread_join(c->thread, NULL);
}

/* STANDIN_LOG: who was connected to whom. */
int jack_connect(struct jack_client *c, const char *from, const char *to) {
  (void)c;
  FILE *log = getenv("STANDIN_LOG") ? fopen(getenv("STANDIN_LOG"), "a") : NULL;
  if (log) fprintf(log, "%s %s\n", from, to);
  return log ? fclose(log) : 0;
}
const char **jack_get_ports(struct jack_client *c, const char *name, const char *type, unsigned long flags) {
  (void)c, (void)name, (void)type;
  const char **ports = calloc(3, sizeof *ports);
  ports[0] = flags & 1 ? "system:playback_1" : "system:capture_1";
  ports[1] = flags & 1 ? "system:playback_2" : "system:capture_2";
  return ports;
}
void jack_free(void *p) { free(p); }
