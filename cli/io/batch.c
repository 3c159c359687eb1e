/* Problems from texts and files. A line of a file is a problem string, perhaps after --strides=X:W:Y (element strides
 * of the axes n c d h w, g o i d h w, n k d h w; an empty part stays dense), or a row of a .tsv: name N C H W K R S
 * stride pad dil groups [types]. `#` starts a comment; a line of other options only is no problem. Refuses anything
 * else by line number. */
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"

int cli_layout_read(const char *text, hk_layout *layout) {
  if (!text || !strcmp(text, "last")) *layout = HK_CHANNELS_LAST;
  else if (!strcmp(text, "first")) *layout = HK_CHANNELS_FIRST;
  else {
    cli_error("--layout: '%s' is neither first nor last", text);
    return CLI_USAGE;
  }
  return CLI_OK;
}

static int numbers_read(const char *text, size_t length, int64_t *out, int room) {
  int count = 0;
  const char *end = text + length;
  while (text < end) {
    char *stop;
    errno = 0;
    long long value = strtoll(text, &stop, 10);
    if (stop == text || errno || count == room || stop > end || (stop < end && *stop != 'x')) return -1;
    out[count++] = value;
    text = stop + 1;
  }
  return count;
}

/* One part of --strides: axes outer, channel, space..; f of a grouped problem has a leading group axis. */
static bool strides_set(hk_strides *s, const char *text, size_t length, int rank, int64_t group_channels, bool filter) {
  int64_t v[HK_MAX_RANK + 3];
  if (!length) return true;
  int count = numbers_read(text, length, v, HK_MAX_RANK + 3), first = filter && count == rank + 3;
  if (count != rank + 2 + first) return false;
  s->offset = 0;
  s->outer = v[first];
  s->channel = v[first + 1];
  for (int d = 0; d < rank; d++) s->at[d] = v[first + 2 + d];
  if (filter) s->group = first ? v[0] : s->outer * group_channels;
  else s->group = s->channel * group_channels;
  return true;
}

static bool strides_apply(hk_problem *p, const char *text, size_t length, bool deconv) {
  const char *part[3], *end = text + length;
  size_t size[3];
  for (int i = 0; i < 3; i++) {
    if (text > end) return false;
    const char *colon = memchr(text, ':', (size_t)(end - text)), *stop = colon ? colon : end;
    part[i] = text;
    size[i] = (size_t)(stop - text);
    text = stop + 1;
  }
  int64_t groups = p->feature_groups > 1 ? p->feature_groups : 1;
  if (deconv && size[1]) return false;
  return strides_set(&p->x, part[0], size[0], p->rank, p->c / groups, false) &&
         strides_set(&p->f, part[1], size[1], p->rank, p->k / groups, true) &&
         strides_set(&p->y, part[2], size[2], p->rank, p->k / groups, false);
}

static void name_find(cli_item *item, const char *text) {
  const char *open = strstr(text, "n\""), *close = open ? strchr(open + 2, '"') : NULL;
  if (close) snprintf(item->name, sizeof item->name, "%.*s", (int)(close - open - 2), open + 2);
}

hk_status cli_item_parse(cli_item *item, const char *text, bool deconv) {
  static const char word[] = "--strides=";
  const char *strides = NULL;
  size_t length = 0;
  *item = (cli_item){0};
  item->problem.size = sizeof item->problem;
  if (!strncmp(text, word, sizeof word - 1)) {
    strides = text + sizeof word - 1;
    length = strcspn(strides, " \t");
    text = strides + length;
    text += strspn(text, " \t");
  }
  hk_status status = deconv ? hk_problem_parse_deconv(&item->problem, text) : hk_problem_parse(&item->problem, text);
  if (status) return status;
  name_find(item, text);
  if (strides && !strides_apply(&item->problem, strides, length, deconv)) {
    cli_error("'%.*s' does not give the strides of a problem of rank %d", (int)length, strides, item->problem.rank);
    return HK_SYNTAX;
  }
  return cli_planning_gradient(&item->problem);
}

int cli_items_only(const cli_items *items, const char *text) {
  for (int64_t i = 0; i < items->count; i++)
    if (!text || strstr(items->at[i].name, text)) return CLI_OK;
  cli_error("--only: none of the %lld names holds '%s'; the first is '%s'", (long long)items->count, text ? text : "",
            items->count ? items->at[0].name : "");
  return CLI_USAGE;
}

static bool item_add(cli_items *items, const cli_item *item) {
  if (items->count == items->room) {
    int64_t room = items->room ? 2 * items->room : 64;
    cli_item *at = realloc(items->at, sizeof *at * (size_t)room);
    if (!at) return false;
    items->at = at;
    items->room = room;
  }
  items->at[items->count++] = *item;
  return true;
}

bool cli_type_read(const char *text, hk_type *type) {
  for (int t = HK_F32; t <= HK_F8E4M3; t++)
    if (!strcmp(text, hk_type_name((hk_type)t))) {
      *type = (hk_type)t;
      return true;
    }
  return false;
}

/* H = 1 and R = 1 is 1D: stride, padding and dilation belong to the width alone. */
static hk_status row_problem(hk_problem *p, const int64_t v[11], hk_layout layout, hk_type type) {
  hk_conv_desc d = {.size = sizeof d, .layout = layout, .n = v[0], .c = v[1], .k = v[4], .groups = v[10]};
  d.x_type = d.f_type = d.y_type = type;
  d.rank = v[2] == 1 && v[5] == 1 ? 1 : 2;
  for (int i = 0; i < d.rank; i++) {
    int from = i + 2 - d.rank;
    d.in[i] = v[2 + from];
    d.window[i] = v[5 + from];
    d.stride[i] = v[7];
    d.pad_lo[i] = d.pad_hi[i] = v[8];
    d.dilation[i] = v[9];
  }
  return hk_problem_conv(p, &d);
}

/* A row becomes one problem per requested type, or f32. */
static int row_read(cli_items *items, char *line, hk_layout layout, const char *types, const char *where) {
  cli_item item = {0};
  int64_t v[11];
  char *rest = NULL, *word = strtok_r(line, " \t\r\n", &rest);
  if (!word) return CLI_OK;
  snprintf(item.name, sizeof item.name, "%s", word);
  for (int i = 0; i < 11; i++) {
    char *end = NULL;
    word = strtok_r(NULL, " \t\r\n", &rest);
    if (word) v[i] = strtoll(word, &end, 10);
    if (!word || end == word || *end) {
      cli_error("%s: a row holds a name and 11 numbers", where);
      return CLI_USAGE;
    }
  }
  word = strtok_r(NULL, " \t\r\n", &rest);
  char list[128], *more = NULL;
  const char *wanted = types && !strcmp(types, "column") ? (word ? word : "bf16,f16") : types ? types : "f32";
  snprintf(list, sizeof list, "%s", wanted);
  for (char *type = strtok_r(list, ",", &more); type; type = strtok_r(NULL, ",", &more)) {
    hk_type t = HK_F32;
    if (strcmp(type, "tf32") && !cli_type_read(type, &t)) {
      cli_error("%s: '%s' is no type", where, type);
      return CLI_USAGE;
    }
    snprintf(item.types, sizeof item.types, "%s", type);
    hk_status status = row_problem(&item.problem, v, layout, t);
    if (!status) status = cli_planning_gradient(&item.problem);
    if (status) return cli_refused(status, where);
    if (!item_add(items, &item)) return CLI_FAILED;
  }
  return CLI_OK;
}

static int line_read(cli_items *items, const char *line, bool deconv, const char *where) {
  cli_item item;
  /* A line of driver options (--reset, --dir=...) without a problem does not affect shapes. */
  if (!strncmp(line, "--", 2) && strncmp(line, "--strides=", 10)) return CLI_OK;
  if (!strncmp(line, "--strides=", 10) && !strpbrk(line, " \t")) return CLI_OK;
  hk_status status = cli_item_parse(&item, line, deconv);
  if (status) return cli_refused(status, where);
  return item_add(items, &item) ? CLI_OK : CLI_FAILED;
}

int cli_items_read(cli_items *items, const char *path, bool deconv, hk_layout layout, const char *types) {
  FILE *file = !strcmp(path, "-") ? stdin : fopen(path, "r");
  if (!file) {
    cli_error("%s: %s", path, strerror(errno));
    return CLI_USAGE;
  }
  size_t length = strlen(path), room = 0;
  bool tsv = length > 4 && !strcmp(path + length - 4, ".tsv");
  char *line = NULL;
  int code = CLI_OK;
  for (int number = 1; code == CLI_OK && getline(&line, &room, file) >= 0; number++) {
    char *text = line + strspn(line, " \t\r\n"), where[300];
    if (*text == '#') continue;
    snprintf(where, sizeof where, "%.250s:%d", path, number);
    if (tsv) {
      code = row_read(items, text, layout, types, where);
      continue;
    }
    text[strcspn(text, "#\r\n")] = 0;
    for (size_t n = strlen(text); n && isspace((unsigned char)text[n - 1]); n--) text[n - 1] = 0;
    if (*text) code = line_read(items, text, deconv, where);
  }
  free(line);
  if (file != stdin) fclose(file);
  if (code == CLI_OK && !items->count) {
    cli_error("%s holds no problem", path);
    code = CLI_USAGE;
  }
  return code;
}

void cli_items_free(cli_items *items) {
  free(items->at);
  *items = (cli_items){0};
}
