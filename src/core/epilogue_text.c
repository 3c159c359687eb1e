/* Epilogue strings: words joined by '+', in any order but printed in the order they act.
 *
 *   scale1 scale bias | relu clip:a:b leaky:a prelu sigmoid silu tanh gelu gelu_tanh hardswish hardtanh[:a:b] softsign
 * user gated:ACT:ACT2 blended:ACT:ACT2 (parameters as ACT=a=b) | sum[:beta] presum[:beta] | user2 store "none" is the
 * empty epilogue. User words only print: a text holds no function. */
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/core.h"

static const char *const acts[] = {"none", "relu", "clip",      "leaky",     "prelu",    "sigmoid",  "silu",
                                   "tanh", "gelu", "gelu_tanh", "hardswish", "hardtanh", "softsign", "user"};
static const int parameters[] = {0, 0, 2, 1, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0};

const char *hk_act_name(hk_act act) { return (unsigned)act < (unsigned)HK_COUNT(acts) ? acts[act] : "?"; }

/* The text has a point whatever the process's locale says. */
static bool number(const char *s, float *v) {
  char copy[64], *end;
  const size_t n = strlen(s);
  if (!n || n >= sizeof copy || strchr(s, ',')) return false;
  memcpy(copy, s, n + 1);
  char *point = strchr(copy, '.');
  if (point) *point = *localeconv()->decimal_point;
  *v = strtof(copy, &end);
  return *end == 0 && *v == *v;
}

/* Without the '+' of an exponent, which would part two words. */
static void put_number(hk_text *t, char separator, float v) {
  char text[32];
  snprintf(text, sizeof text, "%.9g", (double)v);
  hk_text_add(t, "%c", separator);
  for (const char *s = text; *s; s++)
    if (*s != '+') hk_text_add(t, "%c", *s == ',' ? '.' : *s);
}

/* "clip:0:6" with the separator ':' or '='; the text is cut up */
static bool read_act(char *s, char separator, hk_act *act, float *a, float *b) {
  char *p = strchr(s, separator);
  if (p) *p++ = 0;
  for (int i = 0; i < HK_COUNT(acts); i++) {
    if (strcmp(acts[i], s)) continue;
    *act = (hk_act)i;
    *a = *b = 0;
    if (!p) return parameters[i] == 0 || i == HK_ACT_HARDTANH;
    char *q = strchr(p, separator);
    if (q) *q++ = 0;
    return parameters[i] == (q ? 2 : 1) && number(p, a) && (!q || number(q, b));
  }
  return false;
}

static bool gate(char *s, hk_epilogue *e) {
  e->gate = *s == 'g' ? HK_GATE_GATED : HK_GATE_BLENDED;
  char *one = strchr(s, ':');
  if (!one) return false;
  char *two = strchr(++one, ':');
  if (!two) return false;
  *two++ = 0;
  return read_act(one, '=', &e->act, &e->a, &e->b) && read_act(two, '=', &e->act2, &e->a2, &e->b2);
}

static bool residual(char *s, hk_epilogue *e) {
  char *p = strchr(s, ':');
  if (p) *p++ = 0;
  e->residual = !strcmp(s, "sum") ? HK_RESIDUAL_AFTER : !strcmp(s, "presum") ? HK_RESIDUAL_BEFORE : HK_RESIDUAL_NONE;
  e->beta = 1;
  return e->residual && (!p || number(p, &e->beta));
}

static bool word(char *s, hk_epilogue *e) {
  if (!strcmp(s, "scale")) return (e->scale = 2);
  if (!strcmp(s, "scale1")) return (e->scale = 1);
  if (!strcmp(s, "bias")) return (e->bias = 1);
  if (!strncmp(s, "gated:", 6) || !strncmp(s, "blended:", 8)) return gate(s, e);
  if (!strncmp(s, "sum", 3) || !strncmp(s, "presum", 6)) return residual(s, e);
  return !e->gate && strcmp(s, "user") && read_act(s, ':', &e->act, &e->a, &e->b);
}

hk_status hk_epilogue_parse(hk_epilogue *out, const char *text) {
  char copy[512];
  hk_epilogue e = {.size = sizeof e};
  if (!out || !text) return hk_fail(HK_INVALID, "epilogue and text must not be NULL");
  if (strlen(text) >= sizeof copy)
    return hk_fail(HK_SYNTAX, "epilogue text is longer than %zu characters", sizeof copy - 1);
  memcpy(copy, text, strlen(text) + 1);
  char *save = NULL;
  for (char *t = strtok_r(copy, "+", &save); t; t = strtok_r(NULL, "+", &save))
    if (!word(t, &e)) return hk_fail(HK_SYNTAX, "epilogue \"%.200s\": cannot read \"%.60s\"", text, t);
  *out = e;
  return HK_OK;
}

static void put_act(hk_text *t, hk_act act, float a, float b, char separator) {
  hk_text_add(t, "%s", hk_act_name(act));
  if (act == HK_ACT_HARDTANH && a == 0 && b == 0) return;
  const int n = (unsigned)act < (unsigned)HK_COUNT(parameters) ? parameters[act] : 0;
  if (n > 0) put_number(t, separator, a);
  if (n > 1) put_number(t, separator, b);
}

hk_status hk_epilogue_print(const hk_epilogue *e, char *buffer, size_t size, size_t *length) {
  hk_epilogue room;
  if (!(e = hk_take(e, &room, sizeof room, "epilogue"))) return HK_INVALID;
  hk_text t = {buffer, size, 0};
  const char *plus = "";
#define WORD(condition, ...)                                                                                           \
  if (condition) hk_text_add(&t, "%s", plus), hk_text_add(&t, __VA_ARGS__), plus = "+"
  WORD(e->scale, e->scale == 1 ? "scale1" : "scale");
  WORD(e->bias, "bias");
  if (e->residual == HK_RESIDUAL_BEFORE) {
    WORD(1, "presum");
    put_number(&t, ':', e->beta);
  }
  if (e->gate) {
    WORD(1, e->gate == HK_GATE_GATED ? "gated:" : "blended:");
    put_act(&t, e->act, e->a, e->b, '=');
    hk_text_add(&t, ":");
    put_act(&t, e->act2, e->a2, e->b2, '=');
  } else if (e->act) {
    hk_text_add(&t, "%s", plus), plus = "+";
    put_act(&t, e->act, e->a, e->b, ':');
  }
  if (e->residual == HK_RESIDUAL_AFTER) {
    WORD(1, "sum");
    put_number(&t, ':', e->beta);
  }
  WORD(e->user2 || e->cuda_user2, "user2");
  WORD(e->store || e->cuda_store, "store");
#undef WORD
  if (!*plus) hk_text_add(&t, "none");
  if (length) *length = t.length;
  return HK_OK;
}
