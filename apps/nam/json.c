/* Fields of a JSON object, checked for type and range before anybody uses them, and the error sentence. */
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "nam.h"

static _Thread_local char sentence[512];
static _Thread_local hk_status failure;

bool nam_fail(const char *format, ...) {
  va_list args;
  va_start(args, format);
  vsnprintf(sentence, sizeof sentence, format, args);
  va_end(args);
  failure = HK_INVALID;
  return false;
}

bool nam_refuse(hk_status status, const char *format, ...) {
  va_list args;
  va_start(args, format);
  vsnprintf(sentence, sizeof sentence, format, args);
  va_end(args);
  failure = status;
  return false;
}

hk_status nam_failure(void) { return failure; }

hk_status nam_status(hk_status status) {
  if (status) nam_refuse(status, "%s", hk_last_error());
  return status;
}

bool nam_spend(nam_budget *budget, size_t bytes) {
  if (bytes > budget->left) {
    return nam_fail("loading the model needs %zu bytes more when %zu of %d are left", bytes, budget->left, MAX_LOAD);
  }
  budget->left -= bytes;
  return true;
}

HK_API const char *hk_nam_last_error(void) { return sentence; }

const nam_value *nam_object(const nam_value *o, const char *key) {
  const nam_value *v = nam_get(o, key);
  return v && !nam_is(v, NAM_NULL) ? v : NULL;
}

/* Exporters write whole numbers as 3 or 3.0. */
bool nam_as_int(const nam_value *v, const char *what, int64_t low, int64_t high, int64_t *value) {
  if (!nam_is(v, NAM_NUMBER)) return nam_fail("%s must be a whole number", what);
  const double d = v->number;
  if (!(d >= (double)low && d <= (double)high) || d != floor(d)) {
    return nam_fail("%s is %g; a whole number from %lld to %lld is wanted", what, d, (long long)low, (long long)high);
  }
  *value = (int64_t)d;
  return true;
}

bool nam_int(const nam_value *o, const char *key, int64_t low, int64_t high, int64_t *value) {
  const nam_value *v = nam_get(o, key);
  if (!v) return nam_fail("%s is missing", key);
  return nam_as_int(v, key, low, high, value);
}

bool nam_int_or(const nam_value *o, const char *key, int64_t fallback, int64_t low, int64_t high, int64_t *value) {
  const nam_value *v = nam_object(o, key);
  *value = fallback;
  return !v || nam_as_int(v, key, low, high, value);
}

bool nam_bool_or(const nam_value *o, const char *key, bool fallback, bool *value) {
  const nam_value *v = nam_object(o, key);
  *value = fallback;
  if (!v) return true;
  if (!nam_is(v, NAM_TRUE) && !nam_is(v, NAM_FALSE)) return nam_fail("%s must be true or false", key);
  *value = nam_is(v, NAM_TRUE);
  return true;
}

bool nam_real_or(const nam_value *o, const char *key, double fallback, double *value) {
  const nam_value *v = nam_object(o, key);
  *value = fallback;
  if (!v) return true;
  if (!nam_is(v, NAM_NUMBER)) return nam_fail("%s must be a number", key);
  *value = nam_number(v);
  if (!(fabs(*value) <= 3e38)) return nam_fail("%s is not a number that f32 holds", key);
  return true;
}

static bool read_slopes(const nam_value *list, int64_t channels, int64_t full, nam_net *net, hk_step_act *act) {
  if (!nam_is(list, NAM_ARRAY) || (nam_count(list) != (size_t)full && nam_count(list) != 1)) {
    return nam_fail("negative_slopes must be an array of %lld numbers", (long long)full);
  }
  float *slopes = nam_floats(net, (size_t)channels);
  if (!slopes) return false;
  for (int64_t i = 0; i < channels; i++) {
    const nam_value *v = nam_at(list, nam_count(list) == 1 ? 0 : (size_t)i);
    if (!nam_is(v, NAM_NUMBER) || !(fabs(nam_number(v)) <= 3e38))
      return nam_fail("negative_slopes[%lld] is not a number", (long long)i);
    slopes[i] = (float)nam_number(v);
  }
  act->act = HK_ACT_PRELU;
  act->slopes = slopes;
  return true;
}

static bool with_slopes(const nam_value *v, const char *name, int64_t channels, int64_t full, nam_net *net,
                        hk_step_act *act) {
  double a = 0.01, b = 1, lo = 0.01, hi = 0.01;
  const nam_value *o = nam_is(v, NAM_OBJECT) ? v : NULL;
  if (!strcmp(name, "LeakyReLU") || !strcmp(name, "PReLU")) {
    const nam_value *list =
        o && name[0] == 'P' && !nam_object(o, "negative_slope") ? nam_object(o, "negative_slopes") : NULL;
    if (list) return read_slopes(list, channels, full, net, act);
    if (o && !nam_real_or(o, "negative_slope", 0.01, &a)) return false;
    *act = (hk_step_act){.act = HK_ACT_LEAKY, .a = (float)a};
    return true;
  }
  a = -1;
  if (o && (!nam_real_or(o, "min_val", -1, &a) || !nam_real_or(o, "max_val", 1, &b) ||
            !nam_real_or(o, "min_slope", 0.01, &lo) || !nam_real_or(o, "max_slope", 0.01, &hi))) {
    return false;
  }
  if (!(a < b)) return nam_fail("LeakyHardtanh: min_val %g is not below max_val %g", a, b);
  *act =
      (hk_step_act){.act = HK_ACT_HARDTANH, .a = (float)a, .b = (float)b, .slope_lo = (float)lo, .slope_hi = (float)hi};
  return true;
}

/* A name, or an object with a type and its parameters; channels of full are kept (slopes). */
bool nam_activation(const nam_value *v, int64_t channels, int64_t full, bool rational, nam_net *net, hk_step_act *act) {
  static const struct {
    const char *name;
    hk_act act;
  } plain[] = {{"Tanh", HK_ACT_TANH},           {"Fasttanh", HK_ACT_TANH},    {"Hardtanh", HK_ACT_HARDTANH},
               {"ReLU", HK_ACT_RELU},           {"Sigmoid", HK_ACT_SIGMOID},  {"SiLU", HK_ACT_SILU},
               {"Hardswish", HK_ACT_HARDSWISH}, {"Softsign", HK_ACT_SOFTSIGN}};
  const char *name = nam_text(nam_is(v, NAM_OBJECT) ? nam_get(v, "type") : v);
  if (!name) return nam_fail("an activation must be a name or an object with a type");
  for (size_t i = 0; i < sizeof plain / sizeof *plain; i++) {
    if (strcmp(name, plain[i].name)) continue;
    *act = (hk_step_act){.act = plain[i].act, .rational = !strcmp(name, "Fasttanh") || rational};
    return true;
  }
  if (!strcmp(name, "LeakyReLU") || !strcmp(name, "PReLU") || !strcmp(name, "LeakyHardtanh") ||
      !strcmp(name, "LeakyHardTanh")) {
    return with_slopes(v, name, channels, full, net, act);
  }
  return nam_fail("activation \"%.40s\" is not known", name);
}
