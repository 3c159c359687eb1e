/* The few functions of libjack that live uses, found at run time, so that neither the build nor a machine without JACK
 * needs it. Names and types are those of JACK's C API, whose ABI JACK 1, JACK 2 and PipeWire share. */
#ifndef NAM_JACK_H
#define NAM_JACK_H
#include <stdint.h>

typedef struct jack_client jack_client;
typedef struct jack_port jack_port;
typedef struct jack_range { /* jack_latency_range_t */
  uint32_t min, max;
} jack_range;

enum { JACK_NO_START_SERVER = 1, JACK_SERVER_NAME = 4 };              /* jack_options_t */
enum { JACK_SERVER_FAILED = 0x10, JACK_VERSION_ERROR = 0x400 };       /* jack_status_t */
enum { JACK_IS_INPUT = 1, JACK_IS_OUTPUT = 2, JACK_IS_PHYSICAL = 4 }; /* JackPortFlags */
enum { JACK_CAPTURE_LATENCY = 0, JACK_PLAYBACK_LATENCY = 1 };         /* jack_latency_callback_mode_t */
#define JACK_AUDIO "32 bit float mono audio"

typedef struct jack {
  jack_client *(*client_open)(const char *name, int options, int *status, ...);
  int (*client_close)(jack_client *client);
  const char *(*get_client_name)(jack_client *client);
  int (*set_process_callback)(jack_client *client, int (*process)(uint32_t frames, void *of), void *of);
  int (*set_xrun_callback)(jack_client *client, int (*xrun)(void *of), void *of);
  int (*set_latency_callback)(jack_client *client, void (*latency)(int mode, void *of), void *of);
  int (*set_sample_rate_callback)(jack_client *client, int (*rate)(uint32_t rate, void *of), void *of);
  void (*on_shutdown)(jack_client *client, void (*ended)(void *of), void *of);
  void (*set_error_function)(void (*print)(const char *sentence));
  void (*set_info_function)(void (*print)(const char *sentence));
  jack_port *(*port_register)(jack_client *client, const char *name, const char *type, unsigned long flags,
                              unsigned long bytes);
  void *(*port_get_buffer)(jack_port *port, uint32_t frames);
  const char *(*port_name)(const jack_port *port);
  void (*port_get_latency_range)(jack_port *port, int mode, jack_range *range);
  void (*port_set_latency_range)(jack_port *port, int mode, jack_range *range);
  int (*recompute_total_latencies)(jack_client *client);
  uint32_t (*get_sample_rate)(jack_client *client);
  uint32_t (*get_buffer_size)(jack_client *client);
  float (*cpu_load)(jack_client *client);
  int (*activate)(jack_client *client);
  int (*deactivate)(jack_client *client);
  int (*connect)(jack_client *client, const char *from, const char *to);
  const char **(*get_ports)(jack_client *client, const char *name, const char *type, unsigned long flags);
  void (*free)(void *of);
} jack;

/* 0, or 1 with a sentence on stderr: libjack.so.0 is not there, or lacks a function. It stays loaded: its threads may
 * outlive a client. */
int jack_load(jack *j);
#endif
