/*
 * Preloaded into a program by LD_PRELOAD, this library intercepts its file operations. Every sync, and every write to
 * a write-ahead log, appends a line to the file FORCE_LOG, in order:
 *
 *   disk PID wrote FILE      before the write
 *   disk PID syncing FILE    before the sync
 *   disk PID synced FILE     after a successful sync
 *   disk PID failed FILE     instead, after an injected failure
 *
 * While the file FORCE_FAIL exists, syncs fail with EIO, except the first N syncs of the process if it contains a number N.
 * While the file FORCE_READ_ONLY exists, writes to a database and its write-ahead log fail with EROFS. Each line is one
 * append, so the lines of other writers to the same file are in order too.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

static int journal = -1;
static atomic_int syncs = 0;

__attribute__((constructor)) static void open_journal(void) {
  const char *path = getenv("FORCE_LOG");
  if (path == NULL) return;
  int low = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
  /* A number that the program itself does not use. */
  journal = fcntl(low, F_DUPFD_CLOEXEC, 700);
  close(low);
}

/* The base name of an open file. */
static const char *name_of(int fd, char *path, size_t size) {
  char link[64];
  snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  ssize_t length = readlink(link, path, size - 1);
  path[length > 0 ? length : 0] = '\0';
  const char *slash = strrchr(path, '/');
  return slash ? slash + 1 : path;
}

static int is_log(const char *name) {
  size_t length = strlen(name);
  return length > 4 && strcmp(name + length - 4, "-wal") == 0;
}

static void note(const char *what, const char *name) {
  char line[PATH_MAX + 64];
  int length = snprintf(line, sizeof line, "disk %d %s %s\n", getpid(), what, name);
  /* With a lost line, the journal would prove nothing. */
  if (journal >= 0 && syscall(SYS_write, journal, line, (size_t)length) != length) abort();
}

static int is_read_only(const char *name) {
  const char *control = getenv("FORCE_READ_ONLY");
  size_t length = strlen(name);
  int is_database = is_log(name) || (length > 3 && strcmp(name + length - 3, ".db") == 0);
  return is_database && control != NULL && access(control, F_OK) == 0;
}

/* Whether an open file may be changed; sets errno if not. */
static int may_change(const char *name) {
  if (!is_read_only(name)) return 1;
  errno = EROFS;
  return 0;
}

static int may_write(int fd) {
  char path[PATH_MAX];
  const char *name = name_of(fd, path, sizeof path);
  if (!may_change(name)) return 0;
  if (is_log(name)) note("wrote", name);
  return 1;
}

static int must_fail(void) {
  const char *path = getenv("FORCE_FAIL");
  int fd = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
  if (fd < 0) return 0;
  char text[16] = {0};
  ssize_t length = syscall(SYS_read, fd, text, sizeof text - 1);
  close(fd);
  return length >= 0 && atomic_load(&syncs) > atoi(text);
}

static int sync_by(long call, int fd) {
  char path[PATH_MAX];
  const char *name = name_of(fd, path, sizeof path);
  atomic_fetch_add(&syncs, 1);
  note("syncing", name);
  if (must_fail()) {
    note("failed", name);
    errno = EIO;
    return -1;
  }
  int answer = (int)syscall(call, fd);
  if (answer == 0) note("synced", name);
  return answer;
}

int fsync(int fd) { return sync_by(SYS_fsync, fd); }

int fdatasync(int fd) { return sync_by(SYS_fdatasync, fd); }

ssize_t pwrite64(int fd, const void *bytes, size_t count, off64_t offset) {
  if (!may_write(fd)) return -1;
  return syscall(SYS_pwrite64, fd, bytes, count, offset);
}

ssize_t pwrite(int fd, const void *bytes, size_t count, off_t offset) {
  if (!may_write(fd)) return -1;
  return syscall(SYS_pwrite64, fd, bytes, count, offset);
}

ssize_t write(int fd, const void *bytes, size_t count) {
  if (!may_write(fd)) return -1;
  return syscall(SYS_write, fd, bytes, count);
}

int ftruncate64(int fd, off64_t length) {
  char path[PATH_MAX];
  if (!may_change(name_of(fd, path, sizeof path))) return -1;
  return (int)syscall(SYS_ftruncate, fd, length);
}

int ftruncate(int fd, off_t length) { return ftruncate64(fd, length); }
