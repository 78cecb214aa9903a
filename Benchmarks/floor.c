// What no worker can go below: the system calls that the protocol asks for, for every job in SPOOL/new, with SIZE bytes
// of data each that come from nowhere. No network, no CRC-32, no parsing, no second look at anything. Batches share
// their flushes as in a group commit.
//
// floor SPOOL SIZE THREADS
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

enum { BATCH = 200, LINES = 300, BLOCK = 256 << 10 };

static int spool;
static char **names;
static size_t count, next;
static long size;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static long checked(long result, const char *call, const char *name) {
  if (result >= 0) return result;
  fprintf(stderr, "floor: %s %s: %s\n", call, name, strerror(errno));
  exit(1);
}

struct job {
  const char *name;
  int file, data;
  long end;
  char claim[300], part[300];
};

static void claim(struct job *job, char *block) {
  char from[300];
  struct stat status;
  snprintf(from, sizeof from, "new/%s", job->name);
  snprintf(job->claim, sizeof job->claim, "cur/%s:host.1.0", job->name);
  snprintf(job->part, sizeof job->part, "partial/%s.part", job->name);
  // Is anybody still writing? A lease needs a descriptor that cannot write.
  int lease = (int)checked(openat(spool, from, O_RDONLY | O_NOFOLLOW | O_CLOEXEC), "open", from);
  checked(fcntl(lease, F_SETLEASE, F_RDLCK), "lease", from);
  checked(fcntl(lease, F_SETLEASE, F_UNLCK), "lease", from);
  close(lease);
  job->file = (int)checked(openat(spool, from, O_RDWR | O_NOFOLLOW | O_CLOEXEC), "open", from);
  checked(flock(job->file, LOCK_EX | LOCK_NB), "lock", from);
  checked(fstat(job->file, &status), "stat", from);
  checked(pread(job->file, block, BLOCK, 0), "read", from);
  checked(futimens(job->file, NULL), "utimens", from);
  checked(renameat(spool, from, spool, job->claim), "rename", from);
  checked(fstatat(spool, job->claim, &status, AT_SYMLINK_NOFOLLOW), "stat", job->claim);
  job->end = status.st_size;
}

static void append(struct job *job, const char *block) {
  checked(pwrite(job->file, block, LINES / 3, job->end), "write", job->claim);
  job->end += LINES / 3;
}

static void fetch(struct job *job, const char *block) {
  append(job, block);
  job->data = (int)checked(openat(spool, job->part, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600), "create", job->part);
  checked(flock(job->data, LOCK_EX | LOCK_NB), "lock", job->part);
  for (long at = 0; at < size; at += BLOCK)
    checked(pwrite(job->data, block, size - at < BLOCK ? size - at : BLOCK, at), "write", job->part);
}

static void publish(struct job *job, const char *block) {
  char from[300], to[300];
  append(job, block);
  snprintf(from, sizeof from, "/proc/self/fd/%d", job->data);
  snprintf(to, sizeof to, "files/%s", job->name);
  checked(linkat(AT_FDCWD, from, spool, to, AT_SYMLINK_FOLLOW), "link", to);
  append(job, block);
}

static void finish(struct job *job) {
  char to[300];
  snprintf(to, sizeof to, "done/%s", job->name);
  checked(unlinkat(spool, job->part, 0), "unlink", job->part);
  checked(renameat2(spool, job->claim, spool, to, RENAME_NOREPLACE), "rename", to);
  close(job->file);
  close(job->data);
}

static void *work(void *unused) {
  struct job *jobs = calloc(BATCH, sizeof *jobs);
  char *block = calloc(1, BLOCK);
  while (1) {
    pthread_mutex_lock(&lock);
    size_t first = next, many = count - next < BATCH ? count - next : BATCH;
    next += many;
    pthread_mutex_unlock(&lock);
    if (many == 0) return unused;
    for (size_t i = 0; i < many; i++) {
      jobs[i].name = names[first + i];
      claim(&jobs[i], block);
      fetch(&jobs[i], block);
    }
    // The order of the commit: data, payload's name, receipt, job's name.
    checked(syncfs(spool), "syncfs", "data");
    for (size_t i = 0; i < many; i++) publish(&jobs[i], block);
    checked(syncfs(spool), "syncfs", "receipts");
    for (size_t i = 0; i < many; i++) finish(&jobs[i]);
    checked(syncfs(spool), "syncfs", "done");
  }
}

int main(int argc, char **argv) {
  if (argc != 4) return 64;
  int threads = atoi(argv[3]);
  size = atol(argv[2]);
  spool = (int)checked(open(argv[1], O_RDONLY | O_DIRECTORY | O_CLOEXEC), "open", argv[1]);
  DIR *new = fdopendir((int)checked(openat(spool, "new", O_RDONLY | O_DIRECTORY | O_CLOEXEC), "open", "new"));
  for (struct dirent *entry; (entry = readdir(new));) {
    if (entry->d_name[0] == '.') continue;
    names = realloc(names, (count + 1) * sizeof *names);
    names[count++] = strdup(entry->d_name);
  }
  pthread_t others[64];
  for (int i = 1; i < threads && i <= 64; i++) pthread_create(&others[i - 1], NULL, work, NULL);
  work(NULL);
  for (int i = 1; i < threads && i <= 64; i++) pthread_join(others[i - 1], NULL);
  return 0;
}
