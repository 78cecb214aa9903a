// Linux calls that Swift's Glibc module lacks (flock, eventfd, signalfd) or cannot import because they are variadic
// (syscall, fcntl with F_SETLEASE, ioctl).
#ifndef CLINUX_H
#define CLINUX_H

#define _GNU_SOURCE 1
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <malloc.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/inotify.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <unistd.h>

/// main's argv[index]; NULL from argc on. Swift's CommandLine reads /proc/self/cmdline or searches the stack, which
/// fails without /proc, or if a library's constructor has moved the environment (setenv(3)).
char *spoolrun_argument(int index);

/// sem_clockwait(3) of a sem_t with CLOCK_MONOTONIC. glibc declares it only under _GNU_SOURCE, and its header does not
/// go with the Glibc module here.
int spoolrun_sem_wait(void *semaphore, const struct timespec *until);

/// openat2(2): resolves `path` only below `directory` and without symbolic links.
int spoolrun_openat_beneath(int directory, const char *path, int flags, unsigned int mode);

/// renameat2(2) with RENAME_NOREPLACE; glibc declares it only under _GNU_SOURCE.
int spoolrun_rename_noreplace(int from, const char *source, int to, const char *target);
int spoolrun_rename_exchange(int directory, const char *one, const char *other);

/// fcntl(2) F_SETLEASE with F_RDLCK, released at once: 0 if no process has the file open for writing.
int spoolrun_probe_read_lease(int descriptor);

/// fcntl(2) F_OFD_SETLK: `type` is F_RDLCK, F_WRLCK or F_UNLCK. EAGAIN if another open file has a lock in the way.
int spoolrun_lock_range(int descriptor, int type, int64_t start, int64_t length);

/// fcntl(2) F_OFD_GETLK with F_WRLCK: 1 if another open file has a lock on some of these bytes, whose bytes they are
/// then; else 0, or -1 with errno.
int spoolrun_find_range_lock(int descriptor, int64_t *start, int64_t *length);

/// fcntl(2) F_SETFL: adds O_DIRECT to the descriptor's flags. 0, or -1 with errno.
int spoolrun_set_direct(int descriptor);

/// close(2) of a dup(2): 0, or -1 with errno.
int spoolrun_close_copy(int descriptor);

/// fstatfs(2): stores the number of the file system's type (statfs(2), f_type) in *type. 0, or -1 with errno.
int spoolrun_file_system_type(int descriptor, uint32_t *type);

/// openat(2) with O_TMPFILE: a file without a name in the directory `path`. The descriptor, or -1 with errno.
int spoolrun_open_unnamed(int directory, const char *path);

/// statx(2) with AT_STATX_FORCE_SYNC and AT_SYMLINK_NOFOLLOW: a network file system asks its server, whatever it has in
/// its cache. Type, inode number, size and times of `path` go to *status. 0, or -1 with errno.
int spoolrun_status_of_server(int directory, const char *path, struct stat *status);

/// mincore(2): 1 if all pages of these bytes of the file are in the page cache, 0 if one is not; -1 with errno.
int spoolrun_is_cached(int descriptor, int64_t offset, int64_t length);

/// Keeps all signals from this thread.
void spoolrun_block_signals(void);

/// A signalfd(2) that reports SIGTERM, and SIGINT and SIGHUP unless the process was started with these ignored. Blocks
/// all reported signals. Ignores SIGPIPE, SIGIO and SIGXFSZ, and resets SIGCHLD.
int spoolrun_stop_signals(void);

/// Ends the process as this signal does by default.
void spoolrun_die_of(int signal);

/// A signalfd(2) that reports SIGTSTP, SIGCONT, SIGWINCH and SIGQUIT, which it blocks: what a program that has a
/// terminal's screen has to know.
int spoolrun_terminal_signals(void);

/// Does what SIGTSTP does by default: stops the process until SIGCONT, unless its shell has no job control.
void spoolrun_suspend(void);

/// posix_spawn(3) of argv[0] with no signal blocked or ignored, in its own process group, with empty standard input,
/// and with standard output and error to a pipe, whose reading end is stored in *output. If answer is not NULL,
/// standard output goes to a pipe of its own, whose reading end is stored in *answer. The process keeps the descriptors
/// kept and kept_file, unless they are negative. Returns the process id, or -errno.
int spoolrun_spawn(char *const *argv, char *const *envp, int kept, int kept_file, int *output, int *answer);

/// O_PATH of open(2).
extern const int spoolrun_path_only;
/// O_DIRECT of open(2).
extern const int spoolrun_direct;

/// environ(7), which is ambiguous in Swift because two modules declare it.
static inline char **spoolrun_environment(void) {
  extern char **environ;
  return environ;
}

/// A netlink(7) socket that reports when links, addresses and routes appear and disappear.
int spoolrun_network_events(void);

/// ioctl_tty(2) TIOCGWINSZ: 0, or -1 if `descriptor` is not a terminal.
int spoolrun_terminal_size(int descriptor, int *columns, int *rows);

/// getdents64(2); glibc declares it only under _GNU_SOURCE.
long spoolrun_getdents(int directory, void *buffer, size_t size);

/// syncfs(2), which glibc declares only under _GNU_SOURCE.
int spoolrun_syncfs(int descriptor);

/// Whether syncfs(2) reports every failed write: of data since Linux 5.8, of metadata since 5.17 (sync_filesystem).
int spoolrun_syncfs_is_reliable(void);

/// Raises the soft limit of open files (RLIMIT_NOFILE) to `wanted` if it is lower, at most to the hard limit. Returns
/// the resulting limit.
uint64_t spoolrun_raise_descriptor_limit(uint64_t wanted);

/// The process's limit of file sizes in bytes (RLIMIT_FSIZE); 0 for no limit.
uint64_t spoolrun_file_size_limit(void);

/// Limits this process to what a reader of a stranger's file needs (setrlimit(2)): `memory` more bytes of data than it
/// has now, `seconds` of CPU, files of `output` bytes, no other open file than those that are open, no core dump. 0, or
/// -1 with errno.
int spoolrun_confine(uint64_t memory, unsigned seconds, uint64_t output);

/// Keeps up to 32 MiB of the memory that a transfer frees for the next one (mallopt(3)): libcurl allocates a buffer of
/// half a MiB for each, and getting its pages from the kernel again costs as much as receiving into them.
/// malloc_trim(3) returns all of it.
void spoolrun_keep_freed_memory(void);

/// Sends `message` to a datagram socket as sd_notify(3) does, without waiting. `name` is a path, or `@` and an abstract
/// name (unix(7)). 0, or -errno: -EAGAIN if the receiver is behind.
int spoolrun_notify(const char *name, const char *message);

#endif
