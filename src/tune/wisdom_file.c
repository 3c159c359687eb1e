/* Wisdom on disk. Writers exclude each other by flock on <file>.lock, read what is there, merge, and rename a finished
 * file into place, so that a reader or a crash sees the old file or the new one, never a part. A file that does not
 * parse is never overwritten, but for one of the format before, which a save replaces. */
#include "tune/wisdom_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#define MAX_BYTES (64 << 20)

bool hk_wisdom_user_file(char *path, size_t size) {
  const char *named = getenv("HANKEL_WISDOM"), *xdg = getenv("XDG_DATA_HOME"), *home = getenv("HOME");
  int n;
  if (named && *named) {
    if (!strcmp(named, "none")) return false;
    n = snprintf(path, size, "%s", named);
  } else if (xdg && *xdg == '/') {
    n = snprintf(path, size, "%s/hankel/wisdom", xdg);
  } else if (home && *home) {
    n = snprintf(path, size, "%s/.local/share/hankel/wisdom", home);
  } else {
    return false;
  }
  return n > 0 && (size_t)n < size;
}

static hk_status io(const char *verb, const char *path) {
  return hk_fail(HK_IO, "cannot %s wisdom file %.300s: %s", verb, path, strerror(errno));
}

hk_status hk_wisdom_read(hk_wisdom_table *t, const char *path, bool must_exist) {
  FILE *f = fopen(path, "rb");
  struct stat st;
  if (!f) return errno == ENOENT && !must_exist ? HK_OK : io("open", path);
  hk_status s = HK_OK;
  char *text = NULL;
  if (fstat(fileno(f), &st) || !S_ISREG(st.st_mode) || st.st_size > MAX_BYTES) {
    s = hk_fail(HK_IO, "wisdom file %.300s is not a regular file of at most %d bytes", path, MAX_BYTES);
  } else if (!(text = hk_alloc((size_t)st.st_size + 1))) {
    s = hk_fail(HK_NO_MEMORY, "no memory for wisdom file %.300s", path);
  } else {
    const size_t n = fread(text, 1, (size_t)st.st_size, f);
    text[n] = 0;
    hk_wisdom_table fresh = {0};
    if (memchr(text, 0, n)) s = hk_fail(HK_SYNTAX, "wisdom file %.300s holds a zero byte; nothing of it is used", path);
    else s = hk_table_parse(&fresh, path, text);
    if (s && !must_exist && hk_table_is_old(text)) {
      hk_log(HK_LOG_WARN, "hankel,warn,wisdom,%s", hk_last_error());
      s = HK_OK;
    }
    if (!s) s = hk_table_take(t, &fresh);
    hk_table_clear(&fresh);
  }
  fclose(f);
  hk_free(text);
  return s;
}

/* Makes the folders above path. */
static void make_folders(const char *path) {
  char copy[4096];
  snprintf(copy, sizeof copy, "%s", path);
  for (char *s = strchr(copy + 1, '/'); s; s = strchr(s + 1, '/')) {
    *s = 0;
    mkdir(copy, 0755); /* what matters is whether the file can be opened afterwards */
    *s = '/';
  }
}

static hk_status write_whole(const hk_wisdom_table *t, const char *path) {
  char temporary[4200];
  hk_text size = {NULL, 0, 0};
  hk_status s = hk_table_print(t, &size);
  if (s) return s;
  char *text = hk_alloc(size.length + 1);
  if (!text) return hk_fail(HK_NO_MEMORY, "no memory for wisdom file %.300s", path);
  hk_text full = {text, size.length + 1, 0};
  s = hk_table_print(t, &full);
  snprintf(temporary, sizeof temporary, "%s.%ld", path, (long)getpid());
  const int fd = s ? -1 : open(temporary, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (!s && fd < 0) s = io("write", temporary);
  for (size_t done = 0; !s && done < full.length;) {
    const ssize_t n = write(fd, text + done, full.length - done);
    if (n > 0) done += (size_t)n;
    else if (errno != EINTR) s = io("write", temporary);
  }
  if (!s && fsync(fd)) s = io("write", temporary);
  if (fd >= 0) close(fd);
  if (!s && rename(temporary, path)) s = io("replace", path);
  if (s && fd >= 0) unlink(temporary);
  hk_free(text);
  return s;
}

hk_status hk_wisdom_merge(const hk_wisdom_table *t, const char *path) {
  char guard[4200];
  make_folders(path);
  snprintf(guard, sizeof guard, "%s.lock", path);
  const int fd = open(guard, O_RDWR | O_CREAT | O_CLOEXEC, 0644);
  if (fd < 0) return io("lock", guard);
  int locked;
  while ((locked = flock(fd, LOCK_EX)) && errno == EINTR) continue;
  hk_wisdom_table all = {0};
  hk_status s = locked ? io("lock", guard) : hk_wisdom_read(&all, path, false);
  for (int64_t i = 0; i < t->slots && !s; i++)
    if (t->entry[i].key)
      s = hk_table_put(&all, t->entry[i].key, t->entry[i].decision, t->entry[i].seconds, false, !t->entry[i].learnt);
  if (!s) s = write_whole(&all, path);
  hk_table_clear(&all);
  close(fd);
  return s;
}
