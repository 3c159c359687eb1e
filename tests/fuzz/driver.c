/* A stand-in for libFuzzer where the compiler has none: runs every corpus file as it is, then `runs` random mutations
 * of them (bytes flipped, cut, repeated, spliced), and stops where the target aborts. Same command line as libFuzzer
 * for what it knows: -runs=N -seed=S PATH... (files or directories). The input at hand when the target dies is left in
 * ./crash-<seed>-<run>. Assumes inputs of at most 4096 bytes; refuses a corpus without any readable file. */
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { MAX_BYTES = 4096, MAX_FILES = 512 };

typedef struct text {
  size_t size;
  uint8_t *data;
} text;

static text corpus[MAX_FILES];
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
static void on_death(int sig) {
  int fd = open(crash_name, O_WRONLY | O_CREAT | O_TRUNC, 0644);
  if (fd >= 0) {
    ssize_t done = write(fd, current, current_size);
    (void)done;
    close(fd);
  }
  signal(sig, SIG_DFL);
  raise(sig);
}

static void corpus_add_file(const char *path) {
  FILE *file = fopen(path, "rb");
  if (!file) return;
  uint8_t buffer[MAX_BYTES];
  size_t size = fread(buffer, 1, sizeof buffer, file);
  fclose(file);
  if (corpus_count == MAX_FILES) return;
  /* An exact-size copy: a read past the end is seen by the sanitizers. */
  uint8_t *data = malloc(size ? size : 1);
  if (!data) abort();
  memcpy(data, buffer, size);
  corpus[corpus_count++] = (text){size, data};
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
  switch (random_below(6)) {
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
  default: { /* splice a piece of another file, or a number that hurts */
    static const char *const hurts[] = {"0", "-1", "9223372036854775807", "9223372036854775808", "65536", "%n", "\n", "1e309"};
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

int main(int argc, char **argv) {
  long runs = 10000;
  unsigned long seed = 1;
  for (int i = 1; i < argc; i++) {
    if (!strncmp(argv[i], "-runs=", 6)) runs = atol(argv[i] + 6);
    else if (!strncmp(argv[i], "-seed=", 6)) seed = strtoul(argv[i] + 6, NULL, 10);
    else if (argv[i][0] != '-') corpus_add(argv[i]);
  }
  if (!corpus_count) {
    fprintf(stderr, "%s: no corpus file could be read\n", argv[0]);
    return 2;
  }
  random_state = seed * 0x9E3779B97F4A7C15u + 1;
  for (size_t i = 0; i < 4; i++) signal((int[]){SIGSEGV, SIGABRT, SIGBUS, SIGFPE}[i], on_death);
  for (long run = 0; run < corpus_count + runs; run++) {
    text start = corpus[run < corpus_count ? (size_t)run : random_below((size_t)corpus_count)];
    memcpy(current, start.data, start.size);
    current_size = start.size;
    snprintf(crash_name, sizeof crash_name, "crash-%lu-%ld", seed, run);
    if (run >= corpus_count)
      for (size_t n = 1 + random_below(4); n > 0; n--) mutate_once();
    run_current();
  }
  printf("%d corpus files and %ld mutations, seed %lu: no crash\n", corpus_count, runs, seed);
  for (int i = 0; i < corpus_count; i++) free(corpus[i].data);
  return 0;
}
