/* A stand-in for libFuzzer where the compiler has none: runs every input of the corpus as it is, then random mutations
 * of them (bytes flipped, cut, repeated, spliced), and stops where the target aborts. Same command line as libFuzzer
 * for what it knows: -runs=N -max_total_time=S -seed=S -timeout=S PATH... (files or directories); a time without -runs
 * means as many mutations as it has room for. A file that ends in .hex holds many inputs, one per line in hexadecimal
 * digits. The input at hand when the target dies, or when one input takes longer than -timeout, is left in
 * ./crash-<seed>-<run>. Assumes inputs of at most 4096 bytes; refuses a corpus without any readable input. */
#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
/* Of the sanitizers' run-time: called before it ends the process, which it does without a signal. */
void __sanitizer_set_death_callback(void (*callback)(void)) __attribute__((weak));
const char *__ubsan_default_options(void); /* gcc's has a run-time of its own, which ends by a signal if told so */
const char *__ubsan_default_options(void) { return "abort_on_error=1"; }

enum { MAX_BYTES = 4096, MAX_INPUTS = 2048, SIGNALS = 5 };

typedef struct text {
  size_t size;
  uint8_t *data;
} text;

static text corpus[MAX_INPUTS];
static int corpus_count;
static uint64_t random_state = 1;
static uint8_t current[MAX_BYTES];
static size_t current_size;
static char crash_name[64];

static uint64_t random_next(void) {
  random_state ^= random_state << 13;
  random_state ^= random_state >> 7;
  random_state ^= random_state << 17;
  return random_state;
}

static size_t random_below(size_t n) { return n ? (size_t)(random_next() % n) : 0; }

/* Only calls that are safe in a signal handler. */
static void input_save(void) {
  int fd = open(crash_name, O_WRONLY | O_CREAT | O_TRUNC, 0644);
  if (fd < 0) return;
  ssize_t done = write(fd, current, current_size);
  (void)done;
  close(fd);
}

static const int signals[SIGNALS] = {SIGSEGV, SIGABRT, SIGBUS, SIGFPE, SIGALRM};
static struct sigaction before[SIGNALS];

/* Saves the input; then the signal goes to whom it went before: the sanitizers' report, or the end. */
static void on_death(int sig) {
  input_save();
  for (int i = 0; i < SIGNALS; i++)
    if (signals[i] == sig) sigaction(sig, &before[i], NULL);
  if (sig == SIGALRM || sig == SIGABRT) raise(sig); /* a fault comes again by itself */
}

static void corpus_add_bytes(const uint8_t *bytes, size_t size) {
  if (corpus_count == MAX_INPUTS) return;
  /* An exact-size copy: a read past the end is seen by the sanitizers. */
  uint8_t *data = malloc(size ? size : 1);
  if (!data) abort();
  memcpy(data, bytes, size);
  corpus[corpus_count++] = (text){size, data};
}

/* One input per line; a line that starts with # is a comment. */
static void corpus_add_hex(FILE *file) {
  static char line[2 * MAX_BYTES + 2];
  uint8_t buffer[MAX_BYTES];
  while (fgets(line, sizeof line, file)) {
    size_t size = 0;
    unsigned byte;
    while (size < MAX_BYTES && sscanf(line + 2 * size, "%2x", &byte) == 1) buffer[size++] = (uint8_t)byte;
    if (line[0] != '#') corpus_add_bytes(buffer, size);
  }
}

static void corpus_add_file(const char *path) {
  FILE *file = fopen(path, "rb");
  if (!file) return;
  uint8_t buffer[MAX_BYTES];
  size_t length = strlen(path);
  if (length > 4 && !strcmp(path + length - 4, ".hex")) corpus_add_hex(file);
  else corpus_add_bytes(buffer, fread(buffer, 1, sizeof buffer, file));
  fclose(file);
}

static void corpus_add(const char *path) {
  struct stat st;
  if (stat(path, &st)) return;
  if (!S_ISDIR(st.st_mode)) {
    corpus_add_file(path);
    return;
  }
  struct dirent **names;
  int count = scandir(path, &names, NULL, alphasort); /* sorted: a seed means the same run everywhere */
  for (int i = 0; i < count; i++) {
    char full[4096];
    int length = snprintf(full, sizeof full, "%s/%s", path, names[i]->d_name);
    if (names[i]->d_name[0] != '.' && length < (int)sizeof full) corpus_add_file(full);
    free(names[i]);
  }
  if (count >= 0) free(names);
}

static void mutate_once(void) {
  size_t at = random_below(current_size), room = MAX_BYTES - current_size;
  switch (random_below(7)) {
  case 0: /* a random byte */
    if (current_size) current[at] = (uint8_t)random_next();
    break;
  case 1: /* one bit */
    if (current_size) current[at] ^= (uint8_t)(1u << random_below(8));
    break;
  case 2: /* cut the tail */ current_size = at; break;
  case 3: { /* repeat a piece */
    size_t n = 1 + random_below(16);
    if (at + n > current_size || n > room) break;
    memmove(current + at + n, current + at, current_size - at);
    current_size += n;
    break;
  }
  case 4: { /* remove a piece */
    size_t n = 1 + random_below(16);
    if (at + n > current_size) break;
    memmove(current + at, current + at + n, current_size - at - n);
    current_size -= n;
    break;
  }
  case 5: /* new bytes for a piece */
    for (size_t n = 1 + random_below(64); n > 0 && at < current_size; n--) current[at++] = (uint8_t)random_next();
    break;
  default: { /* splice a piece of another file, or a number that hurts */
    static const char *const hurts[] = {"0",  "-1",   "9223372036854775807", "9223372036854775808", "65536", "%n",
                                        "\n", "1e309"};
    const char *word = hurts[random_below(sizeof hurts / sizeof *hurts)];
    text other = corpus[random_below((size_t)corpus_count)];
    size_t from = random_below(other.size);
    int use_word = random_below(2) == 0;
    size_t n = use_word ? strlen(word) : random_below(other.size - from + 1);
    if (n > MAX_BYTES - at) n = MAX_BYTES - at;
    memcpy(current + at, use_word ? (const uint8_t *)word : other.data + from, n);
    if (at + n > current_size) current_size = at + n;
  }
  }
}

static void run_current(void) {
  uint8_t *exact = malloc(current_size ? current_size : 1);
  if (!exact) abort();
  memcpy(exact, current, current_size);
  LLVMFuzzerTestOneInput(exact, current_size);
  free(exact);
}

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void signals_catch(void) {
  struct sigaction on = {.sa_handler = on_death};
  for (int i = 0; i < SIGNALS; i++) sigaction(signals[i], &on, &before[i]);
  if (__sanitizer_set_death_callback) __sanitizer_set_death_callback(input_save);
}

/* Input number `run`: the corpus in order, then mutations of it. */
static void input_make(long run) {
  text start = corpus[run < corpus_count ? (size_t)run : random_below((size_t)corpus_count)];
  memcpy(current, start.data, start.size);
  current_size = start.size;
  if (run >= corpus_count)
    for (size_t n = 1 + random_below(4); n > 0; n--) mutate_once();
}

int main(int argc, char **argv) {
  long runs = -1, run = 0;
  unsigned long seed = 1;
  unsigned timeout = 0;
  double most = 0, start = now();
  for (int i = 1; i < argc; i++) {
    if (!strncmp(argv[i], "-runs=", 6)) runs = atol(argv[i] + 6);
    else if (!strncmp(argv[i], "-seed=", 6)) seed = strtoul(argv[i] + 6, NULL, 10);
    else if (!strncmp(argv[i], "-timeout=", 9)) timeout = (unsigned)atol(argv[i] + 9);
    else if (!strncmp(argv[i], "-max_total_time=", 16)) most = atof(argv[i] + 16);
    else if (argv[i][0] != '-') corpus_add(argv[i]);
  }
  if (!corpus_count) {
    fprintf(stderr, "%s: no corpus file could be read\n", argv[0]);
    return 2;
  }
  if (runs < 0) runs = most > 0 ? LONG_MAX / 2 : 10000;
  fprintf(stderr, "%s: %d inputs, seed %lu\n", argv[0], corpus_count, seed);
  random_state = seed * 0x9E3779B97F4A7C15u + 1;
  signals_catch();
  for (; run < corpus_count + runs && (run < corpus_count || most <= 0 || now() - start < most); run++) {
    snprintf(crash_name, sizeof crash_name, "crash-%lu-%ld", seed, run);
    input_make(run);
    alarm(timeout);
    run_current();
    alarm(0);
  }
  printf("%d inputs and %ld mutations, seed %lu, %.1f s: no crash\n", corpus_count, run - corpus_count, seed,
         now() - start);
  for (int i = 0; i < corpus_count; i++) free(corpus[i].data);
  return 0;
}
