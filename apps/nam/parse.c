/* JSON (RFC 8259) to a tree of values. The text is read twice by the same functions: the first pass checks the syntax
 * and counts, the second fills one allocation of exactly that size. So the only allocation of parsing is made here, its
 * size is held against the budget before it is made, and its failure is HK_NO_MEMORY, not a syntax error.
 *
 * Stricter than the RFC in four ways, each a bound on work: MAX_NESTING levels, MAX_MEMBERS members of an object,
 * MAX_DIGITS characters of a number, and no \u0000, since texts end with a zero byte. Of equal keys the last one
 * counts. No locale matters: numbers reach strtod as digits and exponent, without a decimal point. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "nam.h"

enum { MAX_NESTING = 64, MAX_MEMBERS = 256, MAX_DIGITS = 100 };

typedef struct reader {
  const char *start, *at, *end;
  size_t nodes, bytes; /* of the tree so far; bytes of its texts */
  size_t room;         /* bytes that the tree may take */
  nam_value *node;     /* where they go; NULL in the first pass */
  char *text;
} reader;

static bool wrong(const reader *r, const char *what) {
  int line = 1, column = 1;
  for (const char *p = r->start; p < r->at; p++) {
    column = *p == '\n' ? 1 : column + 1;
    line += *p == '\n';
  }
  return nam_refuse(HK_SYNTAX, "not JSON: %s at line %d, column %d", what, line, column);
}

static bool tree_fits(const reader *r) {
  if (r->nodes * sizeof(nam_value) + r->bytes <= r->room) return true;
  return nam_fail("the values of the file need more than the %zu bytes that are left for them", r->room);
}

static void skip_space(reader *r) {
  while (r->at < r->end && (*r->at == ' ' || *r->at == '\t' || *r->at == '\n' || *r->at == '\r')) r->at++;
}

static bool next_is(reader *r, char c) {
  if (r->at == r->end || *r->at != c) return false;
  r->at++;
  return true;
}

static bool is_digit(const reader *r) { return r->at < r->end && *r->at >= '0' && *r->at <= '9'; }

static void put(reader *r, unsigned code) {
  if (r->text) r->text[r->bytes] = (char)code;
  r->bytes++;
}

static void put_utf8(reader *r, unsigned code) {
  if (code < 0x80) {
    put(r, code);
  } else if (code < 0x800) {
    put(r, 0xc0 | code >> 6);
    put(r, 0x80 | (code & 0x3f));
  } else if (code < 0x10000) {
    put(r, 0xe0 | code >> 12);
    put(r, 0x80 | (code >> 6 & 0x3f));
    put(r, 0x80 | (code & 0x3f));
  } else {
    put(r, 0xf0 | code >> 18);
    put(r, 0x80 | (code >> 12 & 0x3f));
    put(r, 0x80 | (code >> 6 & 0x3f));
    put(r, 0x80 | (code & 0x3f));
  }
}

/* Bytes of the UTF-8 character at r->at, which is not ASCII; 0: none (overlong forms and surrogates are none). */
static int utf8_length(const reader *r) {
  const unsigned char *p = (const unsigned char *)r->at;
  const int length = *p >= 0xc2 && *p <= 0xdf ? 2 : *p >= 0xe0 && *p <= 0xef ? 3 : *p >= 0xf0 && *p <= 0xf4 ? 4 : 0;
  if (!length || r->end - r->at < length) return 0;
  const unsigned low = *p == 0xe0   ? 0xa0
                       : *p == 0xf0 ? 0x90
                                    : 0x80,
                 high = *p == 0xed   ? 0x9f
                        : *p == 0xf4 ? 0x8f
                                     : 0xbf;
  if (p[1] < low || p[1] > high) return 0;
  for (int i = 2; i < length; i++) {
    if (p[i] < 0x80 || p[i] > 0xbf) return 0;
  }
  return length;
}

static bool read_hex(reader *r, unsigned *code) {
  *code = 0;
  for (int i = 0; i < 4; i++, r->at++) {
    if (r->at == r->end) return wrong(r, "the text ends inside a string");
    const char c = *r->at;
    const int digit = c >= '0' && c <= '9'   ? c - '0'
                      : c >= 'a' && c <= 'f' ? c - 'a' + 10
                      : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                             : -1;
    if (digit < 0) return wrong(r, "\\u needs four hexadecimal digits");
    *code = *code << 4 | (unsigned)digit;
  }
  return true;
}

static bool read_escape(reader *r) {
  static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
  if (r->at == r->end) return wrong(r, "the text ends inside a string");
  const char *known = *r->at ? strchr(from, *r->at) : NULL;
  if (known) {
    put(r, (unsigned char)to[known - from]);
    r->at++;
    return true;
  }
  unsigned code, second;
  if (!next_is(r, 'u')) return wrong(r, "an escape that does not exist");
  if (!read_hex(r, &code)) return false;
  if (code == 0) return wrong(r, "\\u0000 is not supported");
  if (code >= 0xd800 && code <= 0xdfff) {
    if (code >= 0xdc00 || !next_is(r, '\\') || !next_is(r, 'u')) return wrong(r, "half a surrogate pair");
    if (!read_hex(r, &second)) return false;
    if (second < 0xdc00 || second > 0xdfff) return wrong(r, "half a surrogate pair");
    code = 0x10000 + ((code - 0xd800) << 10) + (second - 0xdc00);
  }
  put_utf8(r, code);
  return true;
}

/* After the opening quote. */
static bool read_text(reader *r) {
  const size_t self = r->nodes++, first = r->bytes;
  while (!next_is(r, '"')) {
    if (r->at == r->end) return wrong(r, "the text ends inside a string");
    const unsigned char c = (unsigned char)*r->at;
    if (c < 0x20) return wrong(r, "a control character inside a string");
    if (c == '\\') {
      r->at++;
      if (!read_escape(r)) return false;
      continue;
    }
    const int length = c < 0x80 ? 1 : utf8_length(r);
    if (!length) return wrong(r, "a string that is not UTF-8");
    for (int i = 0; i < length; i++) put(r, (unsigned char)*r->at++);
  }
  put(r, 0);
  if (r->node) {
    r->node[self] = (nam_value){.kind = NAM_TEXT, .count = (uint32_t)(r->bytes - 1 - first), .text = r->text + first};
  }
  return tree_fits(r);
}

static bool take_digits(reader *r, char *digits, int *count, int *taken) {
  if (!is_digit(r)) return wrong(r, "a digit is missing");
  for (; is_digit(r); r->at++, ++*taken) {
    if (*count == MAX_DIGITS) return wrong(r, "a number of more than 100 digits");
    digits[(*count)++] = *r->at;
  }
  return true;
}

static bool read_number(reader *r) {
  char digits[MAX_DIGITS + 32];
  int count = 0, whole = 0, fraction = 0, length = 0;
  long exponent = 0;
  const size_t self = r->nodes++;
  if (next_is(r, '-')) digits[count++] = '-';
  const char *first = r->at;
  if (!take_digits(r, digits, &count, &whole)) return false;
  if (whole > 1 && *first == '0') return wrong(r, "a number that begins with 0");
  if (next_is(r, '.') && !take_digits(r, digits, &count, &fraction)) return false;
  if (r->at < r->end && (*r->at == 'e' || *r->at == 'E')) {
    char power[MAX_DIGITS + 1];
    r->at++;
    const bool negative = next_is(r, '-');
    if (!negative) next_is(r, '+');
    if (!take_digits(r, power, &length, &whole)) return false;
    power[length] = 0;
    exponent = strtol(power, NULL, 10);
    if (exponent > 99999) exponent = 99999;
    if (negative) exponent = -exponent;
  }
  if (r->node) {
    snprintf(digits + count, sizeof digits - (size_t)count, "e%ld", exponent - fraction);
    const double v = strtod(digits, NULL);
    if (!isfinite(v)) return wrong(r, "a number that does not fit double precision");
    r->node[self] = (nam_value){.kind = NAM_NUMBER, .number = v};
  }
  return tree_fits(r);
}

static bool read_word(reader *r, const char *word, nam_kind kind) {
  const size_t length = strlen(word);
  if ((size_t)(r->end - r->at) < length || memcmp(r->at, word, length)) return wrong(r, "a value is missing");
  r->at += length;
  if (r->node) r->node[r->nodes] = (nam_value){.kind = kind};
  r->nodes++;
  return tree_fits(r);
}

static bool read_value(reader *r, int depth);

/* After the opening bracket: elements, or members with a key before each value. */
static bool read_list(reader *r, nam_kind kind, char close, int depth) {
  const size_t self = r->nodes++;
  uint32_t count = 0;
  if (depth > MAX_NESTING) return wrong(r, "brackets nested more than 64 deep");
  skip_space(r);
  if (!next_is(r, close)) {
    do {
      skip_space(r);
      if (kind == NAM_OBJECT) {
        if (count == MAX_MEMBERS) return wrong(r, "an object of more than 256 members");
        if (!next_is(r, '"')) return wrong(r, "a key is missing");
        if (!read_text(r)) return false;
        skip_space(r);
        if (!next_is(r, ':')) return wrong(r, "':' is missing");
      }
      if (!read_value(r, depth)) return false;
      count++;
      skip_space(r);
    } while (next_is(r, ','));
    if (!next_is(r, close)) return wrong(r, kind == NAM_OBJECT ? "',' or '}' is missing" : "',' or ']' is missing");
  }
  if (r->node) r->node[self] = (nam_value){.kind = kind, .count = count, .span = r->nodes - self};
  return tree_fits(r);
}

static bool read_value(reader *r, int depth) {
  skip_space(r);
  if (next_is(r, '{')) return read_list(r, NAM_OBJECT, '}', depth + 1);
  if (next_is(r, '[')) return read_list(r, NAM_ARRAY, ']', depth + 1);
  if (next_is(r, '"')) return read_text(r);
  if (is_digit(r) || (r->at < r->end && *r->at == '-')) return read_number(r);
  if (r->at < r->end && *r->at == 't') return read_word(r, "true", NAM_TRUE);
  if (r->at < r->end && *r->at == 'f') return read_word(r, "false", NAM_FALSE);
  return read_word(r, "null", NAM_NULL);
}

static bool read_all(reader *r) {
  r->at = r->start;
  r->nodes = r->bytes = 0;
  if (!read_value(r, 0)) return false;
  skip_space(r);
  return r->at == r->end || wrong(r, "something behind the end");
}

hk_status nam_parse(const char *text, size_t bytes, nam_budget *budget, nam_value **root) {
  reader r = {.start = text, .end = text + bytes, .room = budget->left};
  if (!read_all(&r)) return nam_failure();
  const size_t nodes = r.nodes * sizeof(nam_value), all = nodes + r.bytes;
  if (!nam_spend(budget, all)) return nam_failure();
  if (!(r.node = malloc(all))) {
    nam_refuse(HK_NO_MEMORY, "no memory for the %zu values of the file (%zu bytes)", r.nodes, all);
    return HK_NO_MEMORY;
  }
  r.text = (char *)r.node + nodes;
  if (!read_all(&r)) {
    free(r.node);
    return nam_failure();
  }
  *root = r.node;
  return HK_OK;
}

bool nam_is(const nam_value *v, nam_kind kind) { return v && v->kind == kind; }

const nam_value *nam_after(const nam_value *v) {
  return v + (v->kind == NAM_ARRAY || v->kind == NAM_OBJECT ? v->span : 1);
}

const nam_value *nam_get(const nam_value *o, const char *key) {
  if (!nam_is(o, NAM_OBJECT)) return NULL;
  const nam_value *found = NULL, *k = o + 1;
  const size_t length = strlen(key);
  for (uint32_t i = 0; i < o->count; i++, k = nam_after(k + 1)) {
    if (k->count == length && !memcmp(k->text, key, length)) found = k + 1;
  }
  return found;
}

size_t nam_count(const nam_value *array) { return nam_is(array, NAM_ARRAY) ? array->count : 0; }

const nam_value *nam_at(const nam_value *array, size_t index) {
  if (index >= nam_count(array)) return NULL;
  const nam_value *v = array + 1;
  if (array->span == (size_t)array->count + 1) return v + index; /* no element has elements */
  while (index--) v = nam_after(v);
  return v;
}

const char *nam_text(const nam_value *v) { return nam_is(v, NAM_TEXT) ? v->text : NULL; }
double nam_number(const nam_value *v) { return nam_is(v, NAM_NUMBER) ? v->number : 0; }
