/* Wisdom short of memory: an import is taken whole or not at all, whichever allocation fails, and nothing leaks. */
#include "support/allocs.h"
#include "support/check.h"

static char text[65536];

/* Lines from..to-1 as a wisdom text. */
static void make_text(int from, int to) {
  int n = sprintf(text, "hankel-wisdom 2\n");
  for (int i = from; i < to; i++)
    n += sprintf(text + n, "0.1.0\tcpu\tavx2\t1\tmath=0\t1d_n1_c1_i8_k%d_w3_f32_first\tplain+none\tref\t1.5\n", i + 1);
  sprintf(text + n, "end %d\n", to - from);
}

int main(void) {
  hk_wisdom_forget();
  const long none = live;
  make_text(0, 10);
  CHECK_STATUS(HK_OK, "", hk_wisdom_import(text));
  CHECK(hk_wisdom_count() == 10, "%lld lines", (long long)hk_wisdom_count());
  make_text(5, 200); /* replaces five, adds others, outgrows the table several times */
  for (long n = 1; n < 10000; n++) {
    const long before = live;
    fail_at = n;
    const hk_status s = hk_wisdom_import(text);
    const int failed = fail_at == 0;
    fail_at = 0;
    if (!failed) {
      CHECK_STATUS(HK_OK, "", s);
      break;
    }
    CHECK(s == HK_NO_MEMORY, "allocation %ld failed: %s", n, hk_status_name(s));
    CHECK(hk_wisdom_count() == 10, "allocation %ld failed: %lld lines instead of 10", n, (long long)hk_wisdom_count());
    CHECK(live == before, "allocation %ld failed: %ld blocks leaked", n, live - before);
  }
  CHECK(hk_wisdom_count() == 200, "%lld lines", (long long)hk_wisdom_count());
  size_t length = 0;
  for (long n = 1; n < 100; n++) {
    fail_at = n;
    const hk_status s = hk_wisdom_export(text, sizeof text, &length);
    const int failed = fail_at == 0;
    fail_at = 0;
    if (!failed) break;
    CHECK(s == HK_NO_MEMORY, "export: allocation %ld failed: %s", n, hk_status_name(s));
  }
  CHECK(strstr(text, "end 200\n") != NULL, "the export lacks lines");
  hk_wisdom_forget();
  CHECK(live == none, "%ld blocks are left", live - none);
  return hk_test_end();
}
