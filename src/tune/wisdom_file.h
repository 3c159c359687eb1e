/* Wisdom on disk. */
#ifndef HK_WISDOM_FILE_H
#define HK_WISDOM_FILE_H
#include "tune/wisdom.h"

/* The user's file by HANKEL_WISDOM or XDG; false when there is none. */
bool hk_wisdom_user_file(char *path, size_t size);
/* Reads a file into t, whole or not at all. A missing file is empty unless must_exist; so is one of an old format, of
 * which the log says that it is passed over. */
hk_status hk_wisdom_read(hk_wisdom_table *t, const char *path, bool must_exist);
/* Under a lock beside the file: reads it, merges t into it, writes a new one and renames it into place. */
hk_status hk_wisdom_merge(const hk_wisdom_table *t, const char *path);
#endif
