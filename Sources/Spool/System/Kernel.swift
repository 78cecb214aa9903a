internal import CLinux
internal import Glibc
internal import Synchronization

/// O_DIRECT of open(2), which Glibc's module lacks.
let pastCache = spoolrun_direct

/// What becomes of a file that has the new name already.
enum RenameManner: Sendable { case replacing, withoutReplacing, exchanging }

enum RangeLock: Sendable { case exclusive, shared, none }

enum SyncExtent: Sendable { case data, file, fileSystem }

/// Held while the umask of all threads is another one.
private let masking = Mutex(())

/// Calls `body` under the process's own umask: a program that it starts keeps the umask of that moment.
package func withUsualMask<Result>(_ body: () -> Result) -> Result {
  masking.withLock { _ in body() }
}

/// The calls for files that ``System`` makes. Each is as its manual page says: -1 with errno where it fails. Paths are
/// relative to the open directory `at`. A test puts a simulated disk in its place, and overrides all of them.
///
/// `@unchecked Sendable`: it has no state.
class Kernel: @unchecked Sendable {
  static let shared = Kernel()

  /// openat(2). The same number never stands for two open files.
  func open(_ at: Int32, _ path: UnsafePointer<CChar>, _ flags: Int32, _ mode: mode_t) -> Int32 {
    openat(at, path, flags | O_CLOEXEC, mode)
  }
  /// openat2(2) with RESOLVE_BENEATH and RESOLVE_NO_SYMLINKS.
  func openBeneath(_ at: Int32, _ path: UnsafePointer<CChar>, _ flags: Int32) -> Int32 {
    spoolrun_openat_beneath(at, path, flags | O_CLOEXEC, 0)
  }
  /// openat(2) with O_TMPFILE, for reading and writing.
  func openUnnamed(_ at: Int32, _ directory: UnsafePointer<CChar>) -> Int32 { spoolrun_open_unnamed(at, directory) }
  func close(_ file: Int32) -> Int32 { Glibc.close(file) }
  /// mkdirat(2), with just these permissions.
  func makeDirectory(_ at: Int32, _ path: UnsafePointer<CChar>, _ mode: mode_t) -> Int32 {
    if mode & 0o077 == 0 { return mkdirat(at, path, mode) }
    // chmod(2) afterwards would take away the set-group-ID bit, by which a directory hands its group on: a user may not
    // set it for another's group, nor a service with RestrictSUIDSGID=yes for any. Files state their modes themselves.
    return masking.withLock { _ in
      let mask = umask(0o777 & ~mode)
      defer { umask(mask) }
      return mkdirat(at, path, mode)
    }
  }
  func rename(_ at: Int32, _ from: UnsafePointer<CChar>, _ to: UnsafePointer<CChar>, _ manner: RenameManner) -> Int32 {
    switch manner {
    case .replacing: renameat(at, from, at, to)
    case .withoutReplacing: spoolrun_rename_noreplace(at, from, at, to)
    case .exchanging: spoolrun_rename_exchange(at, from, to)
    }
  }
  /// linkat(2). `follow`: AT_SYMLINK_FOLLOW.
  func link(
    _ at: Int32, _ from: UnsafePointer<CChar>, _ toDirectory: Int32, _ to: UnsafePointer<CChar>, follow: Bool
  ) -> Int32 {
    linkat(at, from, toDirectory, to, follow ? AT_SYMLINK_FOLLOW : 0)
  }
  func symbolicLink(_ target: UnsafePointer<CChar>, _ at: Int32, _ path: UnsafePointer<CChar>) -> Int32 {
    symlinkat(target, at, path)
  }
  func readLink(_ at: Int32, _ path: UnsafePointer<CChar>, _ buffer: UnsafeMutableBufferPointer<CChar>) -> Int {
    readlinkat(at, path, buffer.baseAddress!, buffer.count)
  }
  func unlink(_ at: Int32, _ path: UnsafePointer<CChar>) -> Int32 { unlinkat(at, path, 0) }
  func removeDirectory(_ at: Int32, _ path: UnsafePointer<CChar>) -> Int32 { unlinkat(at, path, AT_REMOVEDIR) }
  /// fstatat(2) with AT_SYMLINK_NOFOLLOW. `ofServer`: without what a network file system remembers.
  func status(_ at: Int32, _ path: UnsafePointer<CChar>, _ status: inout stat, ofServer: Bool) -> Int32 {
    ofServer ? spoolrun_status_of_server(at, path, &status) : fstatat(at, path, &status, AT_SYMLINK_NOFOLLOW)
  }
  func mayChange(_ at: Int32, _ directory: UnsafePointer<CChar>) -> Int32 {
    faccessat(at, directory, W_OK | X_OK, AT_EACCESS)
  }

  func status(_ file: Int32, _ status: inout stat) -> Int32 { fstat(file, &status) }
  func read(_ file: Int32, _ buffer: UnsafeMutableRawBufferPointer, at offset: Int64) -> Int {
    pread(file, buffer.baseAddress, buffer.count, off_t(offset))
  }
  func read(_ file: Int32, _ buffer: UnsafeMutableRawBufferPointer) -> Int {
    Glibc.read(file, buffer.baseAddress, buffer.count)
  }
  func write(_ file: Int32, _ bytes: UnsafeRawBufferPointer, at offset: Int64) -> Int {
    pwrite(file, bytes.baseAddress, bytes.count, off_t(offset))
  }
  func write(_ file: Int32, _ bytes: UnsafeRawBufferPointer) -> Int {
    Glibc.write(file, bytes.baseAddress, bytes.count)
  }
  func truncate(_ file: Int32, _ length: Int64) -> Int32 { ftruncate(file, off_t(length)) }
  func readEntries(_ directory: Int32, _ buffer: UnsafeMutableRawBufferPointer) -> Int {
    spoolrun_getdents(directory, buffer.baseAddress, buffer.count)
  }
  func sync(_ file: Int32, _ extent: SyncExtent) -> Int32 {
    switch extent {
    case .data: fdatasync(file)
    case .file: fsync(file)
    case .fileSystem: spoolrun_syncfs(file)
    }
  }
  func forgetCache(_ file: Int32, _ length: Int64) -> Int32 {
    errno = posix_fadvise(file, 0, off_t(length), POSIX_FADV_DONTNEED)
    return errno == 0 ? 0 : -1
  }
  /// mincore(2): 1 if all of these bytes are in the page cache, else 0.
  func isCached(_ file: Int32, _ offset: Int64, _ length: Int64) -> Int32 { spoolrun_is_cached(file, offset, length) }
  func lock(_ file: Int32, _ operation: Int32) -> Int32 { flock(file, operation) }
  /// fcntl(2) F_OFD_SETLK.
  func lockRange(_ file: Int32, _ lock: RangeLock, _ range: Range<Int64>) -> Int32 {
    let type =
      switch lock {
      case .exclusive: F_WRLCK
      case .shared: F_RDLCK
      case .none: F_UNLCK
      }
    return spoolrun_lock_range(file, type, range.lowerBound, Int64(range.count))
  }
  /// fcntl(2) F_OFD_GETLK: 1 if another open file has a lock on some of these bytes, whose `range` is then that lock's,
  /// else 0.
  func findLock(_ file: Int32, _ range: inout Range<Int64>) -> Int32 {
    var (start, length) = (range.lowerBound, Int64(range.count))
    let found = spoolrun_find_range_lock(file, &start, &length)
    // A length of 0 is up to the end of all files.
    if found == 1 { range = start..<(length > 0 ? start + length : .max) }
    return found
  }
  /// fcntl(2) F_SETLEASE with F_RDLCK, given back at once.
  func probeLease(_ file: Int32) -> Int32 { spoolrun_probe_read_lease(file) }
  /// fcntl(2) F_SETFL with O_DIRECT.
  func setDirect(_ file: Int32) -> Int32 { spoolrun_set_direct(file) }
  /// close(2) of a dup(2).
  func closeCopy(_ file: Int32) -> Int32 { spoolrun_close_copy(file) }
  /// futimens(2) with the file system's clock, not this host's, for both times.
  func touch(_ file: Int32) -> Int32 { futimens(file, nil) }
  /// futimens(2), both times.
  func setTimes(_ file: Int32, _ seconds: Int64, _ nanoseconds: Int) -> Int32 {
    let time = timespec(tv_sec: time_t(seconds), tv_nsec: nanoseconds)
    return futimens(file, [time, time])
  }
  func setPermissions(_ file: Int32, _ mode: mode_t) -> Int32 { fchmod(file, mode) }
  /// fstatfs(2), f_type.
  func fileSystemType(_ file: Int32, _ type: inout UInt32) -> Int32 { spoolrun_file_system_type(file, &type) }
  /// fstatvfs(3): bytes that this user can still write; nil if the file system does not tell.
  func freeSpace(_ file: Int32, _ bytes: inout UInt64?) -> Int32 {
    var status = statvfs()
    guard fstatvfs(file, &status) == 0 else { return -1 }
    let (product, isTooMany) = UInt64(status.f_bavail).multipliedReportingOverflow(by: UInt64(status.f_frsize))
    bytes = status.f_blocks == 0 ? nil : isTooMany ? .max : product
    return 0
  }

  /// inotify_init1(2), not blocking.
  func openInotify() -> Int32 { inotify_init1(Int32(IN_CLOEXEC | IN_NONBLOCK)) }
  /// inotify_add_watch(2).
  func addWatch(_ inotify: Int32, _ path: UnsafePointer<CChar>, _ mask: UInt32) -> Int32 {
    inotify_add_watch(inotify, path, mask)
  }
}
