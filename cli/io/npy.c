/* Numpy's .npy format, versions 1 to 3: a magic word, a header that is a Python dict literal (descr, fortran_order,
 * shape), then the elements. Everything in the file is untrusted: lengths are checked before they are used, the product
 * of the shape cannot overflow, and the data must be exactly as long as the shape says. Reads little-endian f2 f4 f8 i1
 * u1 i4, and V2 and V1 (how bfloat16 and float8 are saved) as bf16 and f8e4m3. Fortran order is transposed to C
 * order. */
#include "io/npy.h"

#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct {
  const char *descr;
  hk_type type;
} descrs[] = {{"<f4", HK_F32},  {"<f8", HK_F64},    {"<f2", HK_F16}, {"<V2", HK_BF16}, {"|i1", HK_S8},  {"|u1", HK_U8},
              {"<i4", HK_S32},  {"|V1", HK_F8E4M3}, {"=f4", HK_F32}, {"=f8", HK_F64},  {"=f2", HK_F16}, {"=i4", HK_S32},
              {"|V2", HK_BF16}, {"<V1", HK_F8E4M3}, {"<i1", HK_S8},  {"<u1", HK_U8}};
enum { DESCRS = sizeof descrs / sizeof *descrs, ALIGN = 64 };

static int fail(char *why, const char *format, ...) {
  va_list list;
  va_start(list, format);
  vsnprintf(why, CLI_NPY_WHY, format, list);
  va_end(list);
  return -1;
}

/* ---- the header's dict literal */
typedef struct cursor {
  const char *at, *end;
} cursor;

static void space_skip(cursor *c) {
  while (c->at < c->end && (*c->at == ' ' || *c->at == '\n' || *c->at == '\t')) c->at++;
}

static bool take(cursor *c, char wanted) {
  space_skip(c);
  if (c->at == c->end || *c->at != wanted) return false;
  c->at++;
  return true;
}

static bool text_take(cursor *c, char *out, size_t room) {
  space_skip(c);
  if (c->at == c->end || (*c->at != '\'' && *c->at != '"')) return false;
  char quote = *c->at++;
  size_t n = 0;
  for (; c->at < c->end && *c->at != quote; c->at++) {
    if (n + 1 == room) return false;
    out[n++] = *c->at;
  }
  out[n] = 0;
  return c->at < c->end && *c->at++ == quote;
}

static bool word_take(cursor *c, const char *word) {
  size_t n = strlen(word);
  space_skip(c);
  if ((size_t)(c->end - c->at) < n || memcmp(c->at, word, n)) return false;
  c->at += n;
  return true;
}

static bool size_take(cursor *c, int64_t *out) {
  int64_t v = 0;
  space_skip(c);
  const char *start = c->at;
  for (; c->at < c->end && *c->at >= '0' && *c->at <= '9'; c->at++)
    if (__builtin_mul_overflow(v, 10, &v) || __builtin_add_overflow(v, *c->at - '0', &v)) return false;
  *out = v;
  return c->at > start;
}

static int shape_take(cursor *c, cli_npy *a, char *why) {
  if (!take(c, '(')) return fail(why, "the shape is not a tuple");
  a->rank = 0;
  while (!take(c, ')')) {
    if (a->rank == CLI_NPY_RANK) return fail(why, "the shape has more than %d axes", CLI_NPY_RANK);
    if (!size_take(c, &a->shape[a->rank++])) return fail(why, "the shape holds something that is no 63-bit size");
    if (!take(c, ',')) {
      if (!take(c, ')')) return fail(why, "the shape is not closed");
      break;
    }
  }
  return 0;
}

static int descr_take(cursor *c, cli_npy *a, char *why) {
  char text[16];
  if (!text_take(c, text, sizeof text)) return fail(why, "descr is not a short string (records are not read)");
  for (int i = 0; i < DESCRS; i++)
    if (!strcmp(text, descrs[i].descr)) {
      a->type = descrs[i].type;
      return 0;
    }
  return fail(why, "descr '%s' is not one of <f4 <f8 <f2 |i1 |u1 <i4 <V2 |V1", text);
}

static int header_parse(cli_npy *a, bool *fortran, const char *text, size_t size, char *why) {
  cursor c = {text, text + size};
  unsigned seen = 0;
  if (!take(&c, '{')) return fail(why, "the header is not a dict");
  while (!take(&c, '}')) {
    char key[32];
    if (!text_take(&c, key, sizeof key) || !take(&c, ':')) return fail(why, "the header has a malformed key");
    if (!strcmp(key, "descr")) {
      if (descr_take(&c, a, why)) return -1;
      seen |= 1;
    } else if (!strcmp(key, "fortran_order")) {
      *fortran = word_take(&c, "True");
      if (!*fortran && !word_take(&c, "False")) return fail(why, "fortran_order is neither True nor False");
      seen |= 2;
    } else if (!strcmp(key, "shape")) {
      if (shape_take(&c, a, why)) return -1;
      seen |= 4;
    } else return fail(why, "the header has an unknown key '%s'", key);
    if (!take(&c, ',')) {
      if (!take(&c, '}')) return fail(why, "the header is not closed");
      break;
    }
  }
  return seen == 7 ? 0 : fail(why, "the header lacks descr, fortran_order or shape");
}

/* ---- the elements */
static int bytes_count(cli_npy *a, size_t *bytes, char *why) {
  a->count = 1;
  bool overflow = false, zero = false;
  for (int d = 0; d < a->rank; d++) {
    zero |= a->shape[d] == 0;
    overflow |= __builtin_mul_overflow(a->count, a->shape[d] ? a->shape[d] : 1, &a->count);
  }
  int64_t total = 0;
  overflow |= __builtin_mul_overflow(a->count, (int64_t)hk_type_bytes(a->type), &total);
  if (overflow) return fail(why, "the shape has more than 2^63 bytes");
  if (zero) a->count = total = 0;
  *bytes = (size_t)total;
  return 0;
}

/* Element i in C order of an array that lies in Fortran order. */
static void fortran_copy(const cli_npy *a, const char *from, char *to) {
  size_t bytes = hk_type_bytes(a->type);
  int64_t index[CLI_NPY_RANK] = {0};
  for (int64_t i = 0; i < a->count; i++) {
    int64_t at = 0;
    for (int d = a->rank - 1; d >= 0; d--) at = at * a->shape[d] + index[d];
    memcpy(to + (size_t)i * bytes, from + (size_t)at * bytes, bytes);
    for (int d = a->rank - 1; d >= 0 && ++index[d] == a->shape[d]; d--) index[d] = 0;
  }
}

int cli_npy_parse(cli_npy *a, const void *bytes, size_t size, char why[CLI_NPY_WHY]) {
  const unsigned char *b = bytes;
  *a = (cli_npy){0};
  if (size < 10 || memcmp(b, "\x93NUMPY", 6)) return fail(why, "not a .npy file: the magic word is missing");
  if (b[6] < 1 || b[6] > 3) return fail(why, "version %d of the format is not 1, 2 or 3", b[6]);
  size_t start = b[6] == 1 ? 10 : 12, length = (size_t)b[8] | (size_t)b[9] << 8;
  if (size < start) return fail(why, "the file ends inside the header");
  if (b[6] > 1) length |= (size_t)b[10] << 16 | (size_t)b[11] << 24;
  if (length > size - start) return fail(why, "the file ends inside the header");
  bool fortran = false;
  size_t want = 0, have = size - start - length;
  if (header_parse(a, &fortran, (const char *)b + start, length, why) || bytes_count(a, &want, why)) return -1;
  if (have != want) return fail(why, "the shape needs %zu bytes of data and the file holds %zu", want, have);
  a->data = aligned_alloc(ALIGN, (want + 2 * ALIGN - 1) / ALIGN * ALIGN);
  if (!a->data) return fail(why, "no memory for %zu bytes", want);
  const char *from = (const char *)b + start + length;
  if (fortran && a->rank > 1) fortran_copy(a, from, a->data);
  else memcpy(a->data, from, want);
  return 0;
}

int cli_npy_read(cli_npy *a, const char *path, char why[CLI_NPY_WHY]) {
  *a = (cli_npy){0};
  FILE *file = fopen(path, "rb");
  if (!file) return fail(why, "%s", strerror(errno));
  char *bytes = NULL;
  size_t size = 0, room = 0;
  for (;;) {
    if (size == room) {
      room = room ? 2 * room : 1 << 16;
      char *more = realloc(bytes, room);
      if (!more) {
        free(bytes);
        fclose(file);
        return fail(why, "no memory for %zu bytes", room);
      }
      bytes = more;
    }
    size_t got = fread(bytes + size, 1, room - size, file);
    if (!got) break;
    size += got;
  }
  int result = ferror(file) ? fail(why, "%s", strerror(errno)) : cli_npy_parse(a, bytes, size, why);
  fclose(file);
  free(bytes);
  return result;
}

int cli_npy_write(const char *path, hk_type type, int rank, const int64_t *shape, const void *data,
                  char why[CLI_NPY_WHY]) {
  char header[512], descr[8] = "";
  for (int i = DESCRS - 1; i >= 0; i--)
    if (descrs[i].type == type) memcpy(descr, descrs[i].descr, 4);
  int n = snprintf(header, sizeof header, "{'descr': '%s', 'fortran_order': False, 'shape': (", descr);
  size_t count = 1;
  for (int d = 0; d < rank; d++) {
    n += snprintf(header + n, sizeof header - (size_t)n, "%lld,%s", (long long)shape[d], d + 1 < rank ? " " : "");
    count *= (size_t)shape[d];
  }
  n += snprintf(header + n, sizeof header - (size_t)n, "), }");
  while ((10 + n + 1) % ALIGN) header[n++] = ' ';
  header[n++] = '\n';
  unsigned char magic[10] = {0x93, 'N', 'U', 'M', 'P', 'Y', 1, 0, (unsigned char)(n & 255), (unsigned char)(n >> 8)};
  FILE *file = fopen(path, "wb");
  if (!file) return fail(why, "%s", strerror(errno));
  bool ok = fwrite(magic, 1, 10, file) == 10 && fwrite(header, 1, (size_t)n, file) == (size_t)n;
  ok = ok && fwrite(data, hk_type_bytes(type), count, file) == count;
  if (fclose(file) || !ok) return fail(why, "the file could not be written: %s", strerror(errno));
  return 0;
}

void cli_npy_free(cli_npy *a) {
  free(a->data);
  *a = (cli_npy){0};
}
