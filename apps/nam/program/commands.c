/* What a person types while live plays, one line each: a path, an option with its value, or a word. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "live.h"
#include "options.h"
#include "sound.h"

hk_rig_controls live_controls(const arguments *a) {
  const bool calibrated = !isnan(a->interface_dbu);
  return (hk_rig_controls){.size = sizeof(hk_rig_controls),
                           .input_db = a->input_db,
                           .output_db = a->output_db,
                           .gate_db = a->gate_db,
                           .resize = a->size >= 0,
                           .model_size = a->size >= 0 ? a->size : 1,
                           .level = calibrated     ? HK_RIG_CALIBRATED
                                    : a->normalize ? HK_RIG_NORMALIZED
                                                   : HK_RIG_RAW,
                           .interface_dbu = calibrated ? a->interface_dbu : 0};
}

static int load_cabinet(const live *l, const char *path, hk_rig_part **part) {
  sound s = {0};
  int failed = sound_read(path, &s);
  if (!failed && hk_rig_load_cabinet(part, l->rig, s.samples, s.frames, s.channels, s.rate))
    failed = program_fail("%s: %s", path, hk_nam_last_error());
  free(s.samples);
  return failed;
}

int live_load(live *l, const arguments *a, hk_rig_slot slot, const char *path) {
  const hk_nam_options o = {.size = sizeof o, .rational_tanh = a->rational, .isa = a->isa};
  hk_rig_part *part = NULL;
  if (slot == HK_RIG_CABINET) {
    if (load_cabinet(l, path, &part)) return 1;
  } else if (hk_rig_load_amp(&part, l->rig, path, &o)) {
    return program_fail("%s: %s", path, hk_nam_last_error());
  }
  live_order(l, (order){.slot = (int32_t)slot, .part = part});
  if (!a->quiet) printf("%s: %s\n", slot == HK_RIG_AMP ? "amp" : "cabinet", path);
  return 0;
}

static void print_status(live *l) {
  printf("%u Hz, blocks of %u frames, latency of the amp %u frames, JACK's load %.0f %%, %u xruns%s\n", l->rate,
         l->jack.get_buffer_size(l->client), atomic_load(&l->latency), (double)l->jack.cpu_load(l->client),
         atomic_load(&l->xruns), l->controls.bypass ? ", off" : "");
}

static void send_controls(live *l, const hk_rig_controls *c) {
  l->controls = *c;
  live_order(l, (order){.slot = -1, .controls = *c});
}

/* "--name value" or "--name=value" of an option that has a number. */
static void change_option(live *l, arguments *a, char *line) {
  char *value = line + strcspn(line, " \t");
  if (*value) *value++ = 0;
  value += strspn(value, " \t");
  arguments changed = *a;
  bool used;
  if (option_take(&changed, line, *value ? value : NULL, &used)) return;
  if (changed.cabinet != a->cabinet) { /* its text ends with this line */
    live_load(l, a, HK_RIG_CABINET, changed.cabinet);
    return;
  }
  if (changed.name != a->name || changed.server != a->server || changed.stereo != a->stereo ||
      changed.rational != a->rational || changed.isa != a->isa || changed.no_connect != a->no_connect) {
    program_note("%s cannot change while live plays", line);
    return;
  }
  *a = changed;
  hk_rig_controls c = live_controls(a);
  c.bypass = l->controls.bypass;
  send_controls(l, &c);
}

bool live_command(live *l, arguments *a, char *line) {
  line += strspn(line, " \t");
  size_t length = strlen(line);
  while (length && strchr(" \t\r\n", line[length - 1])) line[--length] = 0;
  if (!strcmp(line, "quit")) return false;
  if (!strcmp(line, "on") || !strcmp(line, "off")) {
    hk_rig_controls c = l->controls;
    c.bypass = !strcmp(line, "off");
    send_controls(l, &c);
  } else if (!*line || !strcmp(line, "status")) {
    print_status(l);
  } else if (!strcmp(line, "no amp") || !strcmp(line, "no cabinet")) {
    live_order(l, (order){.slot = strcmp(line, "no amp") ? HK_RIG_CABINET : HK_RIG_AMP});
  } else if (!strncmp(line, "--", 2)) {
    change_option(l, a, line);
  } else {
    const bool amp = length >= 4 && !strcasecmp(line + length - 4, ".nam");
    live_load(l, a, amp ? HK_RIG_AMP : HK_RIG_CABINET, line);
  }
  fflush(stdout);
  return true;
}
