/* Shared by the parsers of problem and epilogue texts. */
#ifndef HK_CORE_TEXT_H
#define HK_CORE_TEXT_H
#include "core/core.h"

/* Reads a decimal integer at *at and moves past it; false on overflow or none. */
bool hk_text_number(const char **at, int64_t *value);
hk_status hk_problem_parse_benchdnn(hk_problem *p, const char *text, bool deconv);
#endif
