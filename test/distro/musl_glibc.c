/* What libstdc++ and libgcc_s of Debian 12 need of glibc and of the compiler, and musl 1.2.3 has not. */
typedef unsigned long size_t;

extern size_t strftime_l(char *, size_t, const char *, const void *, void *);
extern long getrandom(void *, size_t, unsigned);

char __libc_single_threaded = 0;
struct { unsigned vendor, type, subtype, features[1]; } __cpu_model;

int __cpu_indicator_init(void) { return 0; }

/* Destructors of thread-local objects do not run. */
int __cxa_thread_atexit_impl(void (*destructor)(void *), void *object, void *library) { return 0; }

/* Not found: then libgcc_s asks dl_iterate_phdr. */
int _dl_find_object(void *address, void *result) { return -1; }

size_t __strftime_l(char *out, size_t max, const char *format, const void *time, void *locale) {
  return strftime_l(out, max, format, time, locale);
}

unsigned arc4random(void) {
  unsigned value;
  getrandom(&value, sizeof value, 0);
  return value;
}
