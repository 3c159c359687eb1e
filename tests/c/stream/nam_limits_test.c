/* Hostile model files: small texts that ask for gigabytes or minutes. Each is refused with a sentence that names the
 * value and the rule, within a second of CPU time and without large allocations. Then the JSON reader itself: what it
 * accepts, what it refuses, and that numbers are read exactly, whatever the locale. */
#include <locale.h>
#include <math.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>

#include "hankel_nam.h"
#include "support/check.h"

typedef struct text {
  char *at;
  size_t length, room;
} text;

static void say(text *t, const char *format, ...) {
  va_list args;
  va_start(args, format);
  if (t->room - t->length < 4096) t->at = realloc(t->at, t->room = 2 * t->room + (1 << 16));
  if (!t->at) exit(1);
  t->length += (size_t)vsnprintf(t->at + t->length, t->room - t->length, format, args);
  va_end(args);
}

static void repeat(text *t, const char *what, int64_t count, const char *between) {
  for (int64_t i = 0; i < count; i++) say(t, "%s%s", i ? between : "", what);
}

static double seconds(void) { return (double)clock() / CLOCKS_PER_SEC; }

static long peak_kb(void) {
  struct rusage u;
  getrusage(RUSAGE_SELF, &u);
  return u.ru_maxrss;
}

/* Loads; what is wanted is a status and, for a failure, a word of its sentence, soon and with little memory. */
static void expect(const char *what, hk_status status, const char *word, text *t, long most_kb) {
  hk_nam *m = NULL;
  size_t bytes = 0;
  const long before = peak_kb();
  const double start = seconds();
  const hk_status e = hk_nam_load_memory(&m, t->at, t->length, NULL);
  CHECK(e == status && (m != NULL) == (e == HK_OK), "%s: %s \"%s\"", what, hk_status_name(e), hk_nam_last_error());
  if (e && e == status)
    CHECK(strstr(hk_nam_last_error(), word), "%s: no \"%s\" in \"%s\"", what, word, hk_nam_last_error());
#ifndef HK_SANITIZED
  CHECK(seconds() - start < 4, "%s took %.1f s", what, seconds() - start);
  CHECK(peak_kb() - before <= most_kb, "%s took %ld KB", what, peak_kb() - before);
#else
  (void)start, (void)before, (void)most_kb;
#endif
  hk_nam_free(m);
  CHECK(hk_nam_measure(t->at, t->length, NULL, &bytes) == e, "%s: measure and load disagree: %s", what,
        hk_nam_last_error());
  free(t->at);
  *t = (text){0};
}

/* ---- models */
static void wavenet(text *t, int channels, long dilation, const char *rate) {
  say(t,
      "{\"version\":\"0.5.4\",\"architecture\":\"WaveNet\",\"sample_rate\":%s,\"config\":{\"head_scale\":1,\"layers\":["
      "{"
      "\"input_size\":1,\"condition_size\":1,\"channels\":%d,\"head_size\":1,\"kernel_size\":2,\"dilations\":[%ld],"
      "\"activation\":\"ReLU\"}]},\"weights\":[",
      rate, channels, dilation);
  const int64_t c = channels;
  repeat(t, "0", c + (2 * c * c + c) + c + (c * c + c) + c + 1, ",");
  say(t, "]}");
}

static void lstm(text *t, int layers, int hidden, const char *rate) {
  say(t,
      "{\"version\":\"0.5.4\",\"architecture\":\"LSTM\",\"sample_rate\":%s,\"config\":{\"num_layers\":%d,\"input_"
      "size\":1,"
      "\"hidden_size\":%d},\"weights\":[",
      rate, layers, hidden);
  const int64_t h = hidden;
  repeat(t, "0", 4 * h * (1 + h) + 6 * h + (layers - 1) * (8 * h * h + 6 * h) + h + 1, ",");
  say(t, "]}");
}

static void container_begin(text *t, const char *rate) {
  say(t,
      "{\"version\":\"0.7.0\",\"architecture\":\"SlimmableContainer\",\"weights\":[],\"sample_rate\":%s,\"config\":{"
      "\"submodels\":[",
      rate);
}
static void member(text *t, int i, int count) {
  say(t, "%s{\"max_value\":%g,\"model\":", i ? "," : "", (double)(i + 1) / count);
}

static void test_models(void) {
  text t = {0};
  wavenet(&t, 16, 1000, "48000");
  expect("a small WaveNet", HK_OK, "", &t, 1 << 14);
  container_begin(&t, "48000");
  for (int i = 0; i < 64; i++) {
    member(&t, i, 64);
    wavenet(&t, 16, 1 << 20, "48000");
    say(&t, "}");
  }
  say(&t, "]}}");
  expect("64 sizes of 64 MiB each", HK_INVALID, "134217728", &t, 1 << 16);
  container_begin(&t, "48000");
  for (int i = 0; i < 64; i++) {
    member(&t, i, 64);
    lstm(&t, 1, 90, "48000");
    say(&t, "}");
  }
  say(&t, "]}}");
  expect("64 LSTMs to prewarm", HK_INVALID, "prewarming the model takes", &t, 1 << 17);
  lstm(&t, 4000, 1, "768000");
  expect("4000 recurrent layers", HK_INVALID, "prewarming the model takes", &t, 1 << 16);
  say(&t, "{\"version\":\"0.6.0\",\"architecture\":\"WaveNet\",\"sample_rate\":48000,\"config\":{\"head_scale\":1,"
          "\"condition_dsp\":");
  wavenet(&t, 16, 1 << 20, "48000");
  say(&t, ",\"layers\":[{\"input_size\":1,\"condition_size\":1,\"channels\":16,\"head_size\":1,\"kernel_size\":2,"
          "\"dilations\":[1048576],\"activation\":\"ReLU\"}]},\"weights\":[");
  repeat(&t, "0", 16 + 528 + 16 + 272 + 16 + 1, ",");
  say(&t, "]}");
  expect("a large condition in a large model", HK_INVALID, "134217728", &t, 1 << 16);
  /* One text, 64 sizes, each with a copy of the weights */
  say(&t,
      "{\"version\":\"0.7.0\",\"architecture\":\"WaveNet\",\"config\":{\"head_scale\":1,\"layers\":[{\"input_size\":1,"
      "\"condition_size\":1,\"channels\":64,\"head_size\":1,\"kernel_size\":200,\"dilations\":[1,1],\"activation\":"
      "\"ReLU\",\"slimmable\":{\"method\":\"slice_channels_uniform\",\"kwargs\":{\"allowed_channels\":[");
  for (int i = 1; i <= 64; i++) say(&t, "%s%d", i > 1 ? "," : "", i);
  say(&t, "]}}}]},\"weights\":[");
  repeat(&t, "0", 64 + 2 * (64 * 64 * 200 + 64 + 64 + 64 * 64 + 64) + 64 + 1, ",");
  say(&t, "]}");
  expect("64 sizes of 1.6 million weights", HK_INVALID, "bytes", &t, 300000);
  say(&t, "{\"version\":\"0.7.0\",\"architecture\":\"Linear\",\"config\":{\"receptive_field\":1},\"weights\":[");
  repeat(&t, "0", 4 << 20, ",");
  say(&t, ",[]]}"); /* elements of unequal length must not cost a search each */
  expect("4 million weights and a bracket", HK_INVALID, "weights[4194304] is not a number", &t, 300000);
}

static void test_rates(void) {
  static const struct {
    const char *rate, *word;
  } rates[] = {
      {"10000000", "1e+07"}, {"768001", "768001"}, {"7999", "7999"}, {"1e-300", "1e-300"}, {"-48000", "-48000"}};
  text t = {0};
  for (size_t i = 0; i < sizeof rates / sizeof *rates; i++) {
    lstm(&t, 1, 2, rates[i].rate);
    expect(rates[i].rate, HK_INVALID, rates[i].word, &t, 1 << 14);
    container_begin(&t, "null");
    member(&t, 0, 1);
    lstm(&t, 1, 2, rates[i].rate);
    say(&t, "}]}}");
    expect(rates[i].rate, HK_INVALID, "8000 to 768000 Hz", &t, 1 << 14);
  }
  static const char *const good[] = {"8000", "768000", "44100.0", "null", "0", "-1"};
  for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
    lstm(&t, 1, 2, good[i]);
    expect(good[i], HK_OK, "", &t, 1 << 14);
  }
}

/* ---- texts */
static void test_texts(void) {
  text t = {0};
  say(&t, "[");
  repeat(&t, "{}", 20 << 20, ",");
  say(&t, "]");
  expect("60 MB of {}", HK_INVALID, "values of the file need more", &t, 1 << 12);
  say(&t, "[");
  repeat(&t, "00000000", 8 << 20, "");
  say(&t, "]");
  expect("more than 64 MiB", HK_INVALID, "has 67108866 bytes; at most 67108864", &t, 1 << 12);
  repeat(&t, "[", 1 << 20, "");
  expect("a million brackets", HK_SYNTAX, "nested more than 64", &t, 1 << 12);
  say(&t, "{");
  repeat(&t, "\"a\":1", 1 << 20, ",");
  say(&t, "}");
  expect("a million members", HK_SYNTAX, "more than 256 members", &t, 1 << 12);
  say(&t, "[0.");
  repeat(&t, "0000000000", 1000, "");
  say(&t, "]");
  expect("10,000 digits", HK_SYNTAX, "more than 100 digits", &t, 1 << 12);
}

static void test_syntax(void) {
  static const struct {
    const char *text, *word;
  } bad[] = {{"", "a value is missing at line 1, column 1"},
             {" \n ", "line 2, column 2"},
             {"[1,]", "value is missing"},
             {"[1 2]", "',' or ']'"},
             {"{\"a\" 1}", "':'"},
             {"{\"a\":1,}", "key"},
             {"{a:1}", "key"},
             {"{\"a\":1", "',' or '}'"},
             {"[01]", "begins with 0"},
             {"[-]", "digit"},
             {"[1.]", "digit"},
             {"[.5]", "value"},
             {"[1e]", "digit"},
             {"[+1]", "value"},
             {"[1e400]", "double"},
             {"[NaN]", "value"},
             {"[tru]", "value"},
             {"[nul", "value"},
             {"[1]x", "behind the end"},
             {"[\"a", "inside a string"},
             {"[\"a\\", "inside a string"},
             {"[\"\\u12", "inside a string"},
             {"[\"\\u12g4\"]", "hexadecimal"},
             {"[\"\\x\"]", "escape"},
             {"[\"\\u0000\"]", "u0000"},
             {"[\"\\ud800\"]", "surrogate"},
             {"[\"\\udc00\"]", "surrogate"},
             {"[\"\\ud800\\u0041\"]", "surrogate"},
             {"[\"\t\"]", "control"},
             {"[\"\x80\"]", "UTF-8"},
             {"[\"\xc0\x80\"]", "UTF-8"},
             {"[\"\xed\xa0\x80\"]", "UTF-8"},
             {"[\"\xf4\x90\x80\x80\"]", "UTF-8"},
             {"[\"\xe2\x82", "UTF-8"}};
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
    hk_nam *m = NULL;
    /* exactly as long as it is, so that a sanitizer sees a byte too many */
    const size_t bytes = strlen(bad[i].text);
    char *copy = malloc(bytes ? bytes : 1);
    memcpy(copy, bad[i].text, bytes);
    const hk_status e = hk_nam_load_memory(&m, copy, bytes, NULL);
    CHECK(e == HK_SYNTAX && !strncmp(hk_nam_last_error(), "not JSON: ", 10) && strstr(hk_nam_last_error(), bad[i].word),
          "%s: %s \"%s\"", bad[i].text, hk_status_name(e), hk_nam_last_error());
    free(copy);
  }
}

/* A filter of one tap gives its weight for a one. */
static float read_back(const char *number, const char *name, char *name_back) {
  char json[1024];
  float one = 1.0f, got = NAN;
  hk_nam *m = NULL;
  hk_nam_facts f = {.size = sizeof f};
  snprintf(
      json, sizeof json,
      "{\"version\":\"0.7.0\",\"architecture\":\"x\",\"architecture\":\"Linear\",\"metadata\":{\"name\":\"%s\"},\t\r\n"
      " \"config\" : { \"receptive_field\" : 1.0e0 , \"unknown\":[{},[],[[1],{\"a\":[2]}],true,false,null] },"
      "\"weights\":[%s]}",
      name, number);
  const hk_status e = hk_nam_load_memory(&m, json, strlen(json), NULL);
  CHECK(!e, "%s: %s", json, hk_nam_last_error());
  if (e) return got;
  hk_nam_process(m, &one, 1, &got);
  hk_nam_info(m, &f);
  if (name_back) snprintf(name_back, 64, "%s", f.name);
  hk_nam_free(m);
  return got;
}

static void test_numbers(void) {
  static const char *const numbers[] = {"0",
                                        "-0.0",
                                        "1",
                                        "-1.5",
                                        "1E+2",
                                        "12e-3",
                                        "1.17549421e-38",
                                        "0.1",
                                        "0.10000000149011612",
                                        "3.4028234663852886e+38",
                                        "1e-400",
                                        "16777217",
                                        "123456789012345678901234567890",
                                        "0.000000000000000000000000000000000000000123",
                                        "-0.30000001192092896",
                                        "1.00000005960464477539062500000000000001"};
  for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
    const float want = (float)strtod(numbers[i], NULL), got = read_back(numbers[i], "", NULL);
    const float flushed = fabsf(want) < 1.17549435e-38f ? 0.0f : want; /* process flushes denormals */
    CHECK(got == flushed, "%s was read as %.9g, not %.9g", numbers[i], (double)got, (double)want);
  }
  if (setlocale(LC_NUMERIC, "de_DE.UTF-8") || setlocale(LC_NUMERIC, "fr_FR.UTF-8"))
    CHECK(read_back("0.25", "", NULL) == 0.25f, "a decimal comma reached the reader");
  setlocale(LC_NUMERIC, "C");
  char back[64];
  read_back("1", "\\\"\\\\\\/\\b\\f\\n\\r\\t\\u0041\\u00e9\\u20ac\\ud83d\\ude00\xc3\xa9", back);
  CHECK(!strcmp(back, "\"\\/\b\f\n\r\tA\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80\xc3\xa9"), "the name became %s", back);
}

static void test_files(void) {
  hk_nam *m = NULL;
  char path[] = "/tmp/hankel-nam-XXXXXX";
  const int handle = mkstemp(path);
  FILE *file = handle >= 0 ? fdopen(handle, "wb") : NULL;
  CHECK(file != NULL, "no file under /tmp");
  if (!file) return;
  fseek(file, 4000000000L, SEEK_SET); /* a hole */
  fputc('x', file);
  fclose(file);
  const double start = seconds();
  const hk_status e = hk_nam_load_file(&m, path, NULL);
  CHECK(e == HK_INVALID && strstr(hk_nam_last_error(), "has 4000000001 bytes; a model file has at most 67108864"),
        "%s \"%s\"", hk_status_name(e), hk_nam_last_error());
  CHECK(seconds() - start < 1, "refused after %.1f s", seconds() - start);
  remove(path);
  CHECK(hk_nam_load_file(&m, "/dev/zero", NULL) == HK_INVALID && strstr(hk_nam_last_error(), "more than 67108864"),
        "%s", hk_nam_last_error());
  CHECK(hk_nam_load_file(&m, "/", NULL) == HK_IO, "%s", hk_nam_last_error());
  CHECK(hk_nam_load_file(&m, NULL, NULL) == HK_IO, "%s", hk_nam_last_error());
  static const char *const seen[] = {"container64.nam", "lstm_rate.nam"};
  for (int i = 0; i < 2; i++) { /* the files of the audit, where they are present */
    char audit[64];
    snprintf(audit, sizeof audit, "../shared/repro/%s", seen[i]);
    if (!(file = fopen(audit, "rb"))) continue;
    fclose(file);
    CHECK(hk_nam_load_file(&m, audit, NULL) == HK_INVALID, "%s", audit);
  }
}

int main(void) {
  test_texts(); /* first: peaks of memory only grow */
  test_models();
  test_rates();
  test_syntax();
  test_numbers();
  test_files();
  return hk_test_end();
}
