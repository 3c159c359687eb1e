/* Numpy's .npy files, read from memory or a path and written. */
#ifndef CLI_NPY_H
#define CLI_NPY_H
#include "hankel.h"

enum { CLI_NPY_RANK = 8, CLI_NPY_WHY = 200 };
typedef struct cli_npy {
  hk_type type;
  int rank;
  int64_t shape[CLI_NPY_RANK];
  int64_t count; /* product of the shape */
  void *data;    /* C order, 64-byte aligned; owned */
} cli_npy;

/* 0, or -1 with a sentence in why. */
int cli_npy_parse(cli_npy *a, const void *bytes, size_t size, char why[CLI_NPY_WHY]);
int cli_npy_read(cli_npy *a, const char *path, char why[CLI_NPY_WHY]);
int cli_npy_write(const char *path, hk_type type, int rank, const int64_t *shape, const void *data,
                  char why[CLI_NPY_WHY]);
void cli_npy_free(cli_npy *a);
#endif
