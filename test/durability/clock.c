/*
 * Preloaded into a program by LD_PRELOAD, this library shifts its wall clock. The file FORCE_CLOCK contains a signed 64-bit
 * number of nanoseconds in native byte order, which is added to every reading of the wall clock; monotonic clocks are
 * unchanged. A write to the file takes effect at once in every program that has loaded the library.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static const int64_t SECOND = 1000000000;
static const int64_t NO_OFFSET = 0;
static volatile const int64_t *offset = &NO_OFFSET;

__attribute__((constructor)) static void open_offset(void) {
  const char *path = getenv("FORCE_CLOCK");
  int fd = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
  if (fd < 0) return;
  void *page = mmap(NULL, sizeof *offset, PROT_READ, MAP_SHARED, fd, 0);
  close(fd);
  /* Without a shifted clock, the tests would prove nothing. */
  if (page == MAP_FAILED) abort();
  offset = page;
}

int clock_gettime(clockid_t clock, struct timespec *at) {
  int answer = (int)syscall(SYS_clock_gettime, clock, at);
  if (answer != 0 || (clock != CLOCK_REALTIME && clock != CLOCK_REALTIME_COARSE)) return answer;
  int64_t nanoseconds = at->tv_sec * SECOND + at->tv_nsec + *offset;
  at->tv_sec = nanoseconds / SECOND;
  at->tv_nsec = nanoseconds % SECOND;
  return 0;
}

int gettimeofday(struct timeval *restrict at, void *restrict zone) {
  (void)zone;
  struct timespec now;
  int answer = clock_gettime(CLOCK_REALTIME, &now);
  if (answer == 0) {
    at->tv_sec = now.tv_sec;
    at->tv_usec = now.tv_nsec / 1000;
  }
  return answer;
}

time_t time(time_t *at) {
  struct timespec now;
  if (clock_gettime(CLOCK_REALTIME, &now) != 0) return (time_t)-1;
  if (at != NULL) *at = now.tv_sec;
  return now.tv_sec;
}
