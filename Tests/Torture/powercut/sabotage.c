/*
 * Makes a worker that breaks its promises, to see whether the torture finds out: the flushes named in SABOTAGE report
 * success and do nothing.
 *   data         of regular files: the payload, the job and its receipt are not on disk when they are said to be
 *   directories  of directories: a name is not on disk when it is said to be
 * Loaded with LD_PRELOAD; nothing of this is in the program.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int is_sabotaged(int descriptor) {
  const char *what = getenv("SABOTAGE");
  struct stat status;
  if (what == NULL || fstat(descriptor, &status) != 0) return 0;
  return S_ISDIR(status.st_mode) ? strcmp(what, "directories") == 0 : strcmp(what, "data") == 0;
}

static int call(const char *name, int descriptor) {
  int (*real)(int) = (int (*)(int))dlsym(RTLD_NEXT, name);
  if (is_sabotaged(descriptor)) return 0;
  return real(descriptor);
}

int fsync(int descriptor) { return call("fsync", descriptor); }

int fdatasync(int descriptor) { return call("fdatasync", descriptor); }

/* It would make durable what is to be forgotten. A worker to which it fails flushes each file by itself. */
int syncfs(int descriptor) {
  (void)descriptor;
  errno = EIO;
  return -1;
}
