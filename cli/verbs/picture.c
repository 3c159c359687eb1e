/* `hankel plan --picture FILE`: how x, f and y become a matrix product, as SVG. Left to right: the im2col matrix A (gm
 * x gk, addressed, never built), the filters B (gk x gn) and the result C, with one register tile drawn to scale. In
 * one dimension the Hankel matrix itself follows: row s, column q holds the index of x that tap s of output q reads. */
#include <stdlib.h>
#include <string.h>

#include "cli.h"

enum { CELL = 30, MOST_COLUMNS = 24, MOST_ROWS = 16 };

static double symbol(const hk_plan *plan, const char *name) {
  const char *at;
  double value;
  for (int i = 0; !hk_plan_symbol(plan, i, &at, &value); i++)
    if (!strcmp(at, name)) return value;
  return 0;
}

/* A side of a matrix in pixels: the logarithm keeps 3 and 300000 on one page. */
static double side(double n) {
  double s = 40;
  for (double m = n; m > 1; m /= 2) s += 14;
  return s > 300 ? 300 : s;
}

static double part(double whole, double tile) { return whole > 0 && tile < whole ? tile / whole : 1; }

static void matrix(FILE *f, double x, double y, double w, double h, const char *name, const char *size) {
  fprintf(f, "<rect class=\"matrix\" x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\"/>\n", x, y, w, h);
  fprintf(f, "<text x=\"%.1f\" y=\"%.1f\">%s</text><text class=\"soft\" x=\"%.1f\" y=\"%.1f\">%s</text>\n", x, y - 22,
          name, x, y - 6, size);
}

static void tile(FILE *f, double x, double y, double w, double h) {
  fprintf(f, "<rect class=\"tile\" x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\"/>\n", x, y, w < 3 ? 3 : w,
          h < 3 ? 3 : h);
}

static double product(FILE *f, const hk_plan *plan) {
  const double gm = symbol(plan, "gm"), gn = symbol(plan, "gn"), gk = symbol(plan, "gk");
  const double mr = symbol(plan, "MR"), nr = symbol(plan, "NR");
  const double h = side(gm), w = side(gn), d = side(gk), top = 100, gap = 70, a = 30, b = a + d + gap, c = b + w + gap;
  char text[96];
  snprintf(text, sizeof text, "gm %.0f x gk %.0f", gm, gk);
  matrix(f, a, top, d, h, "A: x, addressed", text);
  snprintf(text, sizeof text, "gk %.0f x gn %.0f", gk, gn);
  matrix(f, b, top, w, d, "B: f, packed", text);
  snprintf(text, sizeof text, "gm %.0f x gn %.0f", gm, gn);
  matrix(f, c, top, w, h, "C: y", text);
  tile(f, a, top, d, h * part(gm, mr));
  tile(f, b, top, w * part(gn, nr), d);
  tile(f, c, top, w * part(gn, nr), h * part(gm, mr));
  fprintf(f, "<text class=\"soft\" x=\"%.1f\" y=\"%.1f\">register tile %.0f x %.0f, %.0f group%s</text>\n", c,
          top + h + 20, mr, nr, symbol(plan, "GROUPS"), symbol(plan, "GROUPS") == 1 ? "" : "s");
  return top + (h > d ? h : d) + 60;
}

static void hankel_matrix(FILE *f, const hk_problem *p, const hk_plan *plan, double top) {
  const int64_t out = (int64_t)symbol(plan, "W_OUT");
  const int64_t columns = out < MOST_COLUMNS ? out : MOST_COLUMNS,
                rows = p->window[0] < MOST_ROWS ? p->window[0] : MOST_ROWS;
  fprintf(f, "<text x=\"30\" y=\"%.1f\">The Hankel matrix: row s, column q reads x[q*%lld + s*%lld - %lld]%s</text>\n",
          top, (long long)p->stride[0], (long long)p->dilation[0], (long long)p->pad_lo[0],
          columns < out || rows < p->window[0] ? " (its corner)" : "");
  for (int64_t s = 0; s < rows; s++)
    for (int64_t q = 0; q < columns; q++) {
      const int64_t span = p->in[0] ? p->in_dilation[0] * (p->in[0] - 1) + 1 : 0;
      const int64_t i = q * p->stride[0] + s * p->dilation[0] - p->pad_lo[0];
      const bool inside = i >= 0 && i < span && i % p->in_dilation[0] == 0;
      const double x = 60.0 + CELL * (double)q, y = top + 24 + CELL * (double)s;
      fprintf(f, "<rect class=\"%s\" x=\"%.0f\" y=\"%.0f\" width=\"%d\" height=\"%d\"/>", inside ? "cell" : "pad", x, y,
              CELL, CELL);
      if (inside)
        fprintf(f, "<text class=\"small\" x=\"%.0f\" y=\"%.0f\">%lld</text>\n", x + CELL / 2.0, y + CELL / 2.0 + 4,
                (long long)(i / p->in_dilation[0]));
      else fputc('\n', f);
    }
  for (int64_t q = 0; q < columns; q++)
    fprintf(f, "<text class=\"small soft\" x=\"%.0f\" y=\"%.0f\">q%lld</text>\n", 60.0 + CELL * ((double)q + 0.5),
            top + 19, (long long)q);
  for (int64_t s = 0; s < rows; s++)
    fprintf(f, "<text class=\"small soft\" x=\"44\" y=\"%.0f\">s%lld</text>\n", top + 28 + CELL * ((double)s + 0.5),
            (long long)s);
}

int cli_picture(const hk_problem *p, const hk_plan *plan, const char *path) {
  FILE *f = fopen(path, "w");
  if (!f) {
    cli_error("%s cannot be written", path);
    return CLI_FAILED;
  }
  char *problem = cli_problem_text(p), *decision = cli_decision_text(plan);
  fputs("<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 900 900\" font-family=\"system-ui, sans-serif\" "
        "font-size=\"13\">\n"
        "<style>rect.page{fill:#fff}text{fill:#1a1d21}.soft{fill:#5b6470}.small{font-size:11px;text-anchor:middle}"
        ".matrix{fill:#eef2f6;stroke:#5b6470}.tile{fill:#0b6bcb;fill-opacity:.45;stroke:#0b6bcb}"
        ".cell{fill:#eef2f6;stroke:#fff}.pad{fill:#fbe3d4;stroke:#fff}</style>\n<rect class=\"page\" width=\"900\" "
        "height=\"900\"/>\n",
        f);
  fprintf(f,
          "<text x=\"30\" y=\"28\" font-weight=\"600\">%s</text>\n<text class=\"soft\" x=\"30\" y=\"48\">%s</text>\n",
          problem ? problem : "", decision ? decision : "");
  const double below = product(f, plan);
  if (p->rank == 1) hankel_matrix(f, p, plan, below + 20);
  fputs("</svg>\n", f);
  free(problem);
  free(decision);
  const bool bad = ferror(f);
  if (fclose(f) || bad) {
    cli_error("%s could not be written whole", path);
    return CLI_FAILED;
  }
  return CLI_OK;
}
