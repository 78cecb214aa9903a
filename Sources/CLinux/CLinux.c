#define _GNU_SOURCE 1
#include "CLinux.h"
#include <dirent.h>
#include <elf.h>
#include <link.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <semaphore.h>
#include <spawn.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/utsname.h>
#include <sys/vfs.h>
#include <time.h>

static int argument_count;
static char **argument_vector;

// glibc passes main's arguments to the functions in .init_array (csu/libc-start.c, elf/dl-init.c).
__attribute__((constructor)) static void record_arguments(int count, char **vector) {
  argument_count = count;
  argument_vector = vector;
}

char *spoolrun_argument(int index) {
  return index >= 0 && index < argument_count && argument_vector ? argument_vector[index] : NULL;
}

int spoolrun_sem_wait(void *semaphore, const struct timespec *until) {
  return sem_clockwait(semaphore, CLOCK_MONOTONIC, until);
}

int spoolrun_openat_beneath(int directory, const char *path, int flags, unsigned int mode) {
  struct open_how how = {
      .flags = (uint64_t)flags,
      .mode = mode,
      .resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS,
  };
  return (int)syscall(SYS_openat2, directory, path, &how, sizeof how);
}

int spoolrun_rename_noreplace(int from, const char *source, int to, const char *target) {
  return renameat2(from, source, to, target, RENAME_NOREPLACE);
}

int spoolrun_rename_exchange(int directory, const char *one, const char *other) {
  return renameat2(directory, one, directory, other, RENAME_EXCHANGE);
}

int spoolrun_probe_read_lease(int descriptor) {
  if (fcntl(descriptor, F_SETLEASE, F_RDLCK) < 0) return -1;
  return fcntl(descriptor, F_SETLEASE, F_UNLCK);
}

int spoolrun_lock_range(int descriptor, int type, int64_t start, int64_t length) {
  struct flock lock = {.l_type = (short)type, .l_whence = SEEK_SET, .l_start = start, .l_len = length};
  return fcntl(descriptor, F_OFD_SETLK, &lock);
}

int spoolrun_find_range_lock(int descriptor, int64_t *start, int64_t *length) {
  struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = *start, .l_len = *length};
  if (fcntl(descriptor, F_OFD_GETLK, &lock) < 0) return -1;
  if (lock.l_type == F_UNLCK) return 0;
  *start = lock.l_start;
  *length = lock.l_len;
  return 1;
}

int spoolrun_set_direct(int descriptor) {
  int flags = fcntl(descriptor, F_GETFL);
  return flags < 0 ? -1 : fcntl(descriptor, F_SETFL, flags | O_DIRECT);
}

int spoolrun_close_copy(int descriptor) {
  int copy = fcntl(descriptor, F_DUPFD_CLOEXEC, 0);
  return copy < 0 ? -1 : close(copy);
}

int spoolrun_file_system_type(int descriptor, uint32_t *type) {
  struct statfs status;
  if (fstatfs(descriptor, &status) < 0) return -1;
  *type = (uint32_t)status.f_type;
  return 0;
}

int spoolrun_open_unnamed(int directory, const char *path) {
  return openat(directory, path, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
}

int spoolrun_status_of_server(int directory, const char *path, struct stat *status) {
  struct statx found;
  unsigned wanted = STATX_TYPE | STATX_INO | STATX_SIZE | STATX_MTIME | STATX_CTIME;
  if (statx(directory, path, AT_SYMLINK_NOFOLLOW | AT_STATX_FORCE_SYNC, wanted, &found) < 0) return -1;
  *status = (struct stat){
      .st_mode = found.stx_mode,
      .st_ino = found.stx_ino,
      .st_size = (off_t)found.stx_size,
      .st_mtim = {.tv_sec = found.stx_mtime.tv_sec, .tv_nsec = found.stx_mtime.tv_nsec},
      .st_ctim = {.tv_sec = found.stx_ctime.tv_sec, .tv_nsec = found.stx_ctime.tv_nsec},
  };
  return 0;
}

int spoolrun_is_cached(int descriptor, int64_t offset, int64_t length) {
  int64_t page = sysconf(_SC_PAGESIZE), start = offset / page * page;
  size_t size = (size_t)(offset - start + length), count = (size + (size_t)page - 1) / (size_t)page;
  unsigned char *pages = malloc(count);
  if (!pages) return -1;
  int result = -1;
  void *mapped = mmap(NULL, size, PROT_READ, MAP_SHARED, descriptor, start);
  if (mapped != MAP_FAILED) {
    if (mincore(mapped, size, pages) == 0) {
      size_t cached = 0;
      while (cached < count && pages[cached] & 1) cached++;
      result = cached == count;
    }
    munmap(mapped, size);
  }
  free(pages);
  return result;
}

static int is_ignored(int signal) {
  struct sigaction action;
  return sigaction(signal, NULL, &action) == 0 && action.sa_handler == SIG_IGN;
}

void spoolrun_die_of(int number) {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, number);
  signal(number, SIG_DFL);
  raise(number);
  sigprocmask(SIG_UNBLOCK, &set, NULL);
}

void spoolrun_block_signals(void) {
  sigset_t set;
  sigfillset(&set);
  pthread_sigmask(SIG_BLOCK, &set, NULL);
}

int spoolrun_stop_signals(void) {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGTERM);
  // If these were blocked, they would be reported even if nohup(1), or a shell that started the worker in the
  // background, set them to be ignored.
  if (!is_ignored(SIGINT)) sigaddset(&set, SIGINT);
  if (!is_ignored(SIGHUP)) sigaddset(&set, SIGHUP);
  if (sigprocmask(SIG_BLOCK, &set, NULL) < 0) return -1;
  if (signal(SIGPIPE, SIG_IGN) == SIG_ERR) return -1;
  // Sent to the holder of a lease when another process opens the file (fcntl(2)). By default it kills the process.
  if (signal(SIGIO, SIG_IGN) == SIG_ERR) return -1;
  // A write beyond the file size limit (setrlimit(2)) must fail for one job, not kill the worker.
  if (signal(SIGXFSZ, SIG_IGN) == SIG_ERR) return -1;
  // If the parent process set it to be ignored, the exit status of hooks would not be available (wait(2)).
  if (signal(SIGCHLD, SIG_DFL) == SIG_ERR) return -1;
  return signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

int spoolrun_terminal_signals(void) {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGTSTP);
  sigaddset(&set, SIGCONT);
  sigaddset(&set, SIGWINCH);
  sigaddset(&set, SIGQUIT);
  if (sigprocmask(SIG_BLOCK, &set, NULL) < 0) return -1;
  return signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

void spoolrun_suspend(void) {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGTSTP);
  // Pending until it is no longer blocked.
  raise(SIGTSTP);
  sigprocmask(SIG_UNBLOCK, &set, NULL);
  sigprocmask(SIG_BLOCK, &set, NULL);
}

int spoolrun_terminal_size(int descriptor, int *columns, int *rows) {
  struct winsize size;
  if (ioctl(descriptor, TIOCGWINSZ, &size) < 0) return -1;
  *columns = size.ws_col;
  *rows = size.ws_row;
  return 0;
}

long spoolrun_getdents(int directory, void *buffer, size_t size) { return getdents64(directory, buffer, size); }

int spoolrun_syncfs(int descriptor) { return syncfs(descriptor); }

int spoolrun_syncfs_is_reliable(void) {
  struct utsname name;
  int major = 0, minor = 0;
  if (uname(&name) < 0 || sscanf(name.release, "%d.%d", &major, &minor) != 2) return 0;
  return major > 5 || (major == 5 && minor >= 17);
}

uint64_t spoolrun_raise_descriptor_limit(uint64_t wanted) {
  struct rlimit limit;
  if (getrlimit(RLIMIT_NOFILE, &limit) < 0) return 0;
  if (limit.rlim_cur >= wanted) return limit.rlim_cur;
  limit.rlim_cur = wanted < limit.rlim_max ? wanted : limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
  return getrlimit(RLIMIT_NOFILE, &limit) < 0 ? 0 : limit.rlim_cur;
}

uint64_t spoolrun_file_size_limit(void) {
  struct rlimit limit;
  return getrlimit(RLIMIT_FSIZE, &limit) < 0 || limit.rlim_cur == RLIM_INFINITY ? 0 : limit.rlim_cur;
}

static int limit_to(int resource, uint64_t amount) {
  struct rlimit limit;
  if (getrlimit(resource, &limit) < 0) return -1;
  // Only root may raise a hard limit.
  if (limit.rlim_max == RLIM_INFINITY || limit.rlim_max > amount) limit.rlim_max = amount;
  limit.rlim_cur = limit.rlim_max;
  return setrlimit(resource, &limit);
}

int spoolrun_confine(uint64_t memory, unsigned seconds, uint64_t output) {
  // proc_pid_statm(5): the sixth number is data and stack in pages, which is what RLIMIT_DATA counts. It is large under
  // AddressSanitizer. Without /proc it counts as nothing.
  unsigned long long pages = 0;
  FILE *file = fopen("/proc/self/statm", "re");
  if (file) {
    if (fscanf(file, "%*u %*u %*u %*u %*u %llu", &pages) != 1) pages = 0;
    fclose(file);
  }
  uint64_t used = (uint64_t)pages * (uint64_t)sysconf(_SC_PAGESIZE);
  if (limit_to(RLIMIT_DATA, used + memory) < 0 || limit_to(RLIMIT_CPU, seconds) < 0) return -1;
  if (limit_to(RLIMIT_FSIZE, output) < 0 || limit_to(RLIMIT_CORE, 0) < 0) return -1;
  return limit_to(RLIMIT_NOFILE, 0);
}

void spoolrun_keep_freed_memory(void) {
  // Buffers for early chunks are larger than the threshold and are returned to the kernel at once.
  mallopt(M_MMAP_THRESHOLD, 1 << 20);
  mallopt(M_TRIM_THRESHOLD, 32 << 20);
}

int spoolrun_network_events(void) {
  int descriptor = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_ROUTE);
  if (descriptor < 0) return -1;
  struct sockaddr_nl address = {.nl_family = AF_NETLINK};
  address.nl_groups = RTMGRP_LINK | RTMGRP_IPV4_IFADDR | RTMGRP_IPV6_IFADDR | RTMGRP_IPV4_ROUTE | RTMGRP_IPV6_ROUTE;
  if (bind(descriptor, (struct sockaddr *)&address, sizeof address) < 0) {
    close(descriptor);
    return -1;
  }
  return descriptor;
}

const int spoolrun_path_only = O_PATH;
const int spoolrun_direct = O_DIRECT;

int spoolrun_spawn(char *const *argv, char *const *envp, int kept, int kept_file, int *output, int *answer) {
  int ends[2], apart[2] = {-1, -1};
  if (pipe2(ends, O_CLOEXEC) < 0) return -errno;
  if (answer && pipe2(apart, O_CLOEXEC) < 0) {
    int error = errno;
    close(ends[0]);
    close(ends[1]);
    return -error;
  }
  posix_spawn_file_actions_t actions;
  posix_spawnattr_t attributes;
  sigset_t none, all;
  sigemptyset(&none);
  sigfillset(&all);
  pid_t process = 0;
  int error = posix_spawn_file_actions_init(&actions);
  if (!error) error = posix_spawnattr_init(&attributes);
  if (!error) error = posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
  if (!error) error = posix_spawn_file_actions_adddup2(&actions, answer ? apart[1] : ends[1], 1);
  if (!error) error = posix_spawn_file_actions_adddup2(&actions, ends[1], 2);
  // Onto itself: without FD_CLOEXEC.
  if (!error && kept > 2) error = posix_spawn_file_actions_adddup2(&actions, kept, kept);
  if (!error && kept_file > 2) error = posix_spawn_file_actions_adddup2(&actions, kept_file, kept_file);
  // The worker blocks its stop signals and ignores SIGPIPE, which a child would inherit.
  if (!error) error = posix_spawnattr_setsigmask(&attributes, &none);
  if (!error) error = posix_spawnattr_setsigdefault(&attributes, &all);
  if (!error) error = posix_spawnattr_setpgroup(&attributes, 0);
  const short flags = POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETPGROUP;
  if (!error) error = posix_spawnattr_setflags(&attributes, flags);
  if (!error) error = posix_spawn(&process, argv[0], &actions, &attributes, argv, envp);
  posix_spawn_file_actions_destroy(&actions);
  posix_spawnattr_destroy(&attributes);
  close(ends[1]);
  if (answer) close(apart[1]);
  if (error) {
    close(ends[0]);
    if (answer) close(apart[0]);
    return -error;
  }
  *output = ends[0];
  if (answer) *answer = apart[0];
  return process;
}

int spoolrun_notify(const char *name, const char *message) {
  struct sockaddr_un address = {.sun_family = AF_UNIX};
  size_t length = strlen(name);
  if (length < 2 || (name[0] != '/' && name[0] != '@')) return -EAFNOSUPPORT;
  if (length >= sizeof address.sun_path) return -ENAMETOOLONG;
  memcpy(address.sun_path, name, length);
  if (name[0] == '@') address.sun_path[0] = 0;
  int descriptor = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (descriptor < 0) return -errno;
  socklen_t size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + length);
  ssize_t sent = sendto(
      descriptor, message, strlen(message), MSG_NOSIGNAL | MSG_DONTWAIT, (const struct sockaddr *)&address, size);
  int result = sent < 0 ? -errno : 0;
  close(descriptor);
  return result;
}
