/* hankel-nam live: a client of JACK that plays through a rig. The main thread waits for lines of standard input,
 * signals and the end of the server. It needs a running server; without one, or without libjack, it says so and
 * returns 1. */
#include "live.h"

#include <errno.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { LINE = 4096 };
static volatile sig_atomic_t stopped;
static void stop(int number) { stopped = number; }

static int count_xrun(void *of) { return atomic_fetch_add(&((live *)of)->xruns, 1), 0; }
static void end(void *of) { atomic_store(&((live *)of)->ended, true); }
static int check_rate(uint32_t rate, void *of) {
  live *l = of;
  if (rate != l->rate) atomic_store(&l->other_rate, true);
  return 0;
}

/* What arrives later at the inputs leaves later at the outputs, and the other way round. */
static void report_latency(int mode, void *of) {
  live *l = of;
  const unsigned own = atomic_load(&l->latency);
  for (int32_t c = 0; c < l->channels; c++) {
    jack_range range;
    l->jack.port_get_latency_range(mode == JACK_CAPTURE_LATENCY ? l->in[c] : l->out[c], mode, &range);
    range.min += own;
    range.max += own;
    l->jack.port_set_latency_range(mode == JACK_CAPTURE_LATENCY ? l->out[c] : l->in[c], mode, &range);
  }
}

static int open_client(live *l, const arguments *a) {
  int status = 0;
  const char *name = a->name ? a->name : "hankel-nam";
  const int options = JACK_NO_START_SERVER | (a->server ? JACK_SERVER_NAME : 0);
  l->client = l->jack.client_open(name, options, &status, a->server);
  if (l->client) {
    l->rate = l->jack.get_sample_rate(l->client);
    return 0;
  }
  if (status & JACK_SERVER_FAILED)
    return program_fail("no JACK server%s%s is running; start one, e.g. jackd -d alsa, or run pw-jack hankel-nam live",
                        a->server ? " " : "", a->server ? a->server : "");
  return program_fail("JACK refuses a client named %s (status 0x%x)", name, (unsigned)status);
}

static int register_ports(live *l) {
  for (int32_t c = 0; c < l->channels; c++) {
    char in[16], out[16];
    snprintf(in, sizeof in, "in_%d", c + 1);
    snprintf(out, sizeof out, "out_%d", c + 1);
    l->in[c] = l->jack.port_register(l->client, in, JACK_AUDIO, JACK_IS_INPUT, 0);
    l->out[c] = l->jack.port_register(l->client, out, JACK_AUDIO, JACK_IS_OUTPUT, 0);
    if (!l->in[c] || !l->out[c]) return program_fail("JACK gives no port %s or %s", in, out);
  }
  return 0;
}

/* Capture ports to the inputs in order, outputs to the playback ports; a mono rig plays on the first two. What is
 * missing stays unconnected. */
static void connect_ports(live *l) {
  const char **from = l->jack.get_ports(l->client, NULL, JACK_AUDIO, JACK_IS_OUTPUT | JACK_IS_PHYSICAL),
             **to = l->jack.get_ports(l->client, NULL, JACK_AUDIO, JACK_IS_INPUT | JACK_IS_PHYSICAL);
  for (int32_t c = 0; from && c < l->channels && from[c]; c++)
    l->jack.connect(l->client, from[c], l->jack.port_name(l->in[c]));
  for (int32_t c = 0; to && c < 2 && to[c]; c++)
    l->jack.connect(l->client, l->jack.port_name(l->out[c < l->channels ? c : 0]), to[c]);
  if (from) l->jack.free(from);
  if (to) l->jack.free(to);
}

static int start(live *l, arguments *a) {
  if (jack_load(&l->jack) || open_client(l, a)) return 1;
  const hk_rig_options o = {.size = sizeof o, .sample_rate = l->rate, .channels = l->channels, .isa = a->isa};
  if (hk_rig_create(&l->rig, &o)) return program_fail("%s", hk_nam_last_error());
  l->playing = l->controls = live_controls(a);
  if (live_load(l, a, HK_RIG_AMP, a->path[0])) return 1;
  if (a->cabinet && live_load(l, a, HK_RIG_CABINET, a->cabinet)) return 1;
  l->jack.set_process_callback(l->client, live_process, l);
  l->jack.set_xrun_callback(l->client, count_xrun, l);
  l->jack.set_latency_callback(l->client, report_latency, l);
  l->jack.set_sample_rate_callback(l->client, check_rate, l);
  l->jack.on_shutdown(l->client, end, l);
  if (register_ports(l)) return 1;
  if (l->jack.activate(l->client)) return program_fail("JACK does not start the client");
  if (!a->no_connect) connect_ports(l);
  return 0;
}

/* Parts in the rings are nobody's by now; those in the rig go with it. */
static void finish(live *l) {
  if (l->client) {
    l->jack.deactivate(l->client);
    l->jack.client_close(l->client);
  }
  live_collect(l);
  for (unsigned at = l->obeyed; at != l->ordered; at++) hk_rig_part_free(l->orders[at % ORDERS].part);
  hk_rig_free(l->rig);
}

/* Lines of what was read; what follows the last newline stays in text. A line that is too long is refused whole. */
static bool take_lines(live *l, arguments *a, char text[LINE], size_t *length) {
  bool going = true;
  char *from = text;
  for (char *end; going && (end = memchr(from, '\n', *length - (size_t)(from - text))); from = end + 1) {
    *end = 0;
    going = live_command(l, a, from);
  }
  *length -= (size_t)(from - text);
  memmove(text, from, *length);
  if (*length == LINE) {
    program_note("a line of %d bytes and more is no command", LINE);
    *length = 0;
  }
  return going;
}

/* Until quit, a signal, or the end of the server. The end of standard input ends nothing. */
static void play(live *l, arguments *a) {
  static char text[LINE];
  size_t length = 0;
  unsigned latency = 0;
  struct pollfd in = {.fd = STDIN_FILENO, .events = POLLIN};
  while (!stopped && !atomic_load(&l->ended) && !atomic_load(&l->other_rate)) {
    const int ready = poll(&in, 1, 100);
    live_collect(l);
    if (latency != atomic_load(&l->latency)) {
      latency = atomic_load(&l->latency);
      l->jack.recompute_total_latencies(l->client);
    }
    if (ready <= 0 || !in.revents) continue;
    const ssize_t got = read(STDIN_FILENO, text + length, LINE - length);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) in.fd = -1;
    else if (length += (size_t)got, !take_lines(l, a, text, &length)) return;
  }
}

int verb_live(const arguments *given) {
  static live l;
  arguments a = *given;
  l = (live){.channels = a.stereo ? 2 : 1};
  const struct sigaction action = {.sa_handler = stop};
  sigaction(SIGINT, &action, NULL);
  sigaction(SIGTERM, &action, NULL);
  sigaction(SIGHUP, &action, NULL);
  int status = start(&l, &a);
  if (!status) {
    if (!a.quiet)
      printf("%s: %u Hz, blocks of %u frames; a path changes amp (.nam) or cabinet, quit ends\n",
             l.jack.get_client_name(l.client), l.rate, l.jack.get_buffer_size(l.client));
    fflush(stdout);
    play(&l, &a);
    if (atomic_load(&l.ended)) status = program_fail("the JACK server has ended");
    else if (atomic_load(&l.other_rate)) status = program_fail("the JACK server changed its rate; start live again");
    if (!a.quiet) printf("%u xruns\n", atomic_load(&l.xruns));
  }
  finish(&l);
  return status;
}
