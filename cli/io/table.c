/* A table of texts: collected row by row, printed with columns aligned (numbers to the right, words to the left). The
 * first row is the head. */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"

void cli_table_add(cli_table *t, int column, char *owned) {
  if (column == 0) {
    if (t->rows == t->room) {
      int room = t->room ? 2 * t->room : 32;
      char **cell = realloc(t->cell, sizeof *cell * (size_t)room * (size_t)t->columns);
      if (!cell) abort();
      t->cell = cell;
      t->room = room;
    }
    memset(t->cell + t->rows * t->columns, 0, sizeof *t->cell * (size_t)t->columns);
    t->rows++;
  }
  t->cell[(t->rows - 1) * t->columns + column] = owned;
}

static const char *cell_at(const cli_table *t, int row, int column) {
  const char *text = t->cell[row * t->columns + column];
  return text ? text : "";
}

/* A column of numbers: every row below the head is empty or starts like one. */
static bool is_numeric(const cli_table *t, int column) {
  for (int row = 1; row < t->rows; row++) {
    const char *text = cell_at(t, row, column);
    if (*text && !isdigit((unsigned char)*text) && !strchr("-+.<", *text)) return false;
    for (; *text; text++)
      if (isalpha((unsigned char)*text) && !strchr("einfaxkMG", *text)) return false;
  }
  return true;
}

void cli_table_print(const cli_table *t, FILE *file) {
  for (int row = 0; row < t->rows; row++) {
    if (row == 0) fputs(cli_paint(file, "\033[1m"), file);
    for (int column = 0; column < t->columns; column++) {
      int width = 0;
      for (int other = 0; other < t->rows; other++) {
        int length = (int)strlen(cell_at(t, other, column));
        if (length > width) width = length;
      }
      bool last = column == t->columns - 1, right = is_numeric(t, column);
      if (!right && last) width = 0;
      fprintf(file, right ? "%*s" : "%-*s", width, cell_at(t, row, column));
      fputs(last ? "" : "  ", file);
    }
    if (row == 0) fputs(cli_paint(file, "\033[0m"), file);
    fputc('\n', file);
  }
}

void cli_table_free(cli_table *t) {
  for (int i = 0; i < t->rows * t->columns; i++) free(t->cell[i]);
  free(t->cell);
  *t = (cli_table){0};
}
