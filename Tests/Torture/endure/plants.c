/*
 * Makes a worker that leaks, to see whether the soak finds out: with each payload that gets its name, one of what PLANT
 * names is kept for good.
 * Loaded with LD_PRELOAD; nothing of this is in the program.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void *sleep_for_good(void *unused) {
  for (;;) pause();
  return unused;
}

void *last_block;

static void leak(const char *what) {
  if (strcmp(what, "descriptor") == 0) {
    (void)!open("/dev/null", O_RDONLY | O_CLOEXEC);
  } else if (strcmp(what, "memory") == 0) {
    // Seen from outside, or the compiler would leave it away.
    last_block = malloc(256 << 10);
    if (last_block != NULL) memset(last_block, 1, 256 << 10);
  } else if (strcmp(what, "thread") == 0) {
    pthread_t thread;
    pthread_create(&thread, NULL, sleep_for_good, NULL);
  } else if (strcmp(what, "zombie") == 0 && fork() == 0) {
    _exit(0);
  }
}

int linkat(int from, const char *old, int to, const char *new, int flags) {
  int (*real)(int, const char *, int, const char *, int) =
      (int (*)(int, const char *, int, const char *, int))dlsym(RTLD_NEXT, "linkat");
  const char *what = getenv("PLANT");
  if (what != NULL) leak(what);
  return real(from, old, to, new, flags);
}
