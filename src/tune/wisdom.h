/* Wisdom: keys made from tasks, a table in memory, a file format of one line per problem. */
#ifndef HK_WISDOM_H
#define HK_WISDOM_H
#include "plan/plan.h"

#define HK_WISDOM_KEY 2048

/* version, machine, isa, threads, options, problem, epilogue class: tab-separated, as in the file */
void hk_wisdom_key(const hk_task *task, char *key, size_t size);
/* Copies the decision for a key; false when there is none. Reads the files at the first call of the process. */
bool hk_wisdom_find(const char *key, char *decision, size_t size, double *seconds);
/* Learnt now: replaces what was known. */
hk_status hk_wisdom_learn(const char *key, const char *decision, double seconds);

/* A table: wisdom_table.c. learnt entries win over what a file says, others lose to it. */
typedef struct hk_wisdom_entry {
  char *key, *decision; /* one allocation */
  double seconds;
  bool learnt;
} hk_wisdom_entry;
typedef struct hk_wisdom_table {
  hk_wisdom_entry *entry; /* open addressing, NULL keys are free */
  int64_t count, slots;
} hk_wisdom_table;
const hk_wisdom_entry *hk_table_find(const hk_wisdom_table *t, const char *key);
/* Adds or replaces; keep: leave an entry that is there. */
hk_status hk_table_put(hk_wisdom_table *t, const char *key, const char *decision, double seconds, bool learnt,
                       bool keep);
/* Moves the entries of another table here, all of them or none when memory is out; entries learnt here stay. What is
 * left in `from` is the caller's to clear. */
hk_status hk_table_take(hk_wisdom_table *t, hk_wisdom_table *from);
void hk_table_clear(hk_wisdom_table *t);
/* The whole text, sorted by key, with head and tail lines. */
hk_status hk_table_print(const hk_wisdom_table *t, hk_text *text);
/* True of a text in the format of hankel 0.1, which no key of today is found in. */
bool hk_table_is_old(const char *text);
/* Reads a whole text into an empty table; refuses it whole. name is for the sentence. */
hk_status hk_table_parse(hk_wisdom_table *t, const char *name, const char *text);
#endif
