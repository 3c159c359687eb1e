/* The options of the verbs, from one table: parsing, refusals and --help. */
#ifndef NAM_OPTIONS_H
#define NAM_OPTIONS_H
#include "program.h"

/* The option that `word` names (--name or --name=value), for a->verb; next is the word after it, or NULL. *used:
 * whether next was its value. 0, or 2 with a sentence on stderr. */
int option_take(arguments *a, const char *word, const char *next, bool *used);
void option_help(const char *verb); /* a line per option, on stdout */
#endif
