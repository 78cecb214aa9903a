internal import CLinux
internal import Glibc
package import SystemPackage

/// A system call that failed: which one, on what, and why.
package struct SpoolError: Error, Sendable, CustomStringConvertible {
  /// The kind of call, as its man page is named.
  package let call: Call.Kind
  /// What it was applied to, escaped for display.
  package let path: String
  package let errno: Errno

  package init(call: Call.Kind, path: String, errno: Errno) {
    self.call = call
    self.path = path
    self.errno = errno
  }

  package var description: String { "\(call.rawValue) \(path): \(errno)" }

  /// No room for data or inodes, or over quota: nothing is wrong with the job.
  package var isDiskFull: Bool { errno == .noSpace || errno == .diskQuotaExceeded }

  /// A file would be larger than the process (setrlimit(2), RLIMIT_FSIZE) or the file system allows.
  package var isTooLargeHere: Bool { errno == .fileTooLarge }

  /// What keeps one file from growing, and other jobs from nothing.
  package var isWantOfRoom: Bool { isDiskFull || isTooLargeHere }

  /// A rename that the file system (EINVAL) or the kernel (ENOSYS) does not know, of those that renameat2(2) adds.
  package var isUnknownRename: Bool { errno == .invalidArgument || errno == .noFunction }

  /// An open file that another host has moved or removed: NFS says ESTALE, FUSE file systems that go by paths say ENOENT.
  package var isGone: Bool { errno == .staleNFSFileHandle || errno == .noSuchFileOrDirectory }
}

/// One system call as the seam shows it to a ``CallHook``.
package struct Call: Sendable {
  package enum Kind: String, Sendable, CaseIterable {
    case open, create, read, stat, lock, lease, list, close
    case write, truncate, rename, link, unlink, mkdir, fsync, fdatasync, syncfs, utimens

    /// Whether a crash just before or after it leaves the spool in different states.
    package var changesState: Bool {
      switch self {
      case .open, .read, .stat, .lock, .lease, .list, .close: false
      default: true
      }
    }
  }

  package let kind: Kind
  package let path: String
  /// The bytes of the file that a write or truncate is about.
  package var range: Range<Int64>?
}

/// What a test makes of a call: nothing, an error in its place, or a write cut short.
package enum Fault: Sendable {
  case fail(Errno)
  case short(Int)
}

/// Watches each call of a ``System``; may be called from several threads.
package protocol CallHook: Sendable {
  func before(_ call: Call) -> Fault?
  func after(_ call: Call)
}

/// The one seam between the spool and the kernel. Every method is one system call, repeated on EINTR (but for fsync and
/// close, where a repeat would lie), and throws ``SpoolError``.
package struct System: Sendable {
  private let hook: (any CallHook)?

  package init(hook: (any CallHook)? = nil) { self.hook = hook }

  @discardableResult
  private func call(
    _ kind: Call.Kind, _ path: @autoclosure () -> String, range: Range<Int64>? = nil, repeatable: Bool = true,
    _ body: (_ limit: Int) -> Int
  ) throws(SpoolError) -> Int {
    while true {
      var limit = Int.max
      if let hook {
        switch hook.before(Call(kind: kind, path: path(), range: range)) {
        case .fail(.interrupted) where repeatable: continue
        case .fail(let errno): throw SpoolError(call: kind, path: path(), errno: errno)
        case .short(let length): limit = length
        case nil: break
        }
      }
      let result = body(limit)
      let errno = Errno(rawValue: Glibc.errno)
      hook?.after(Call(kind: kind, path: path(), range: range))
      if result >= 0 { return result }
      if repeatable, errno == .interrupted { continue }
      throw SpoolError(call: kind, path: path(), errno: errno)
    }
  }

  // MARK: names

  func open(_ at: Int32, _ path: Path, _ flags: Int32) throws(SpoolError) -> Int32 {
    Int32(
      try call(.open, path.display) { _ in
        path.withCString { Int(openat(at, $0, flags | O_CLOEXEC)) }
      })
  }

  func create(_ at: Int32, _ path: Path, _ flags: Int32, mode: mode_t = 0o600) throws(SpoolError)
    -> Int32
  {
    Int32(
      try call(.create, path.display) { _ in
        path.withCString { Int(openat(at, $0, flags | O_CREAT | O_CLOEXEC, mode)) }
      })
  }

  /// openat2(2) with RESOLVE_BENEATH and RESOLVE_NO_SYMLINKS.
  func openBeneath(_ at: Int32, _ path: Path, _ flags: Int32) throws(SpoolError) -> Int32 {
    Int32(
      try call(.open, path.display) { _ in
        path.withCString { Int(spoolrun_openat_beneath(at, $0, flags | O_CLOEXEC, 0)) }
      })
  }

  func makeDirectory(_ at: Int32, _ path: Path, mode: mode_t = 0o700) throws(SpoolError) {
    try call(.mkdir, path.display) { _ in path.withCString { Int(mkdirat(at, $0, mode)) } }
  }

  func rename(_ at: Int32, _ from: Path, _ to: Path) throws(SpoolError) {
    try call(.rename, "\(from.display) \(to.display)") { _ in
      from.withCString { source in
        to.withCString { target in Int(renameat(at, source, at, target)) }
      }
    }
  }

  /// renameat2(2) with RENAME_NOREPLACE.
  func renameNoReplace(_ at: Int32, _ from: Path, _ to: Path) throws(SpoolError) {
    try call(.rename, "\(from.display) \(to.display)") { _ in
      from.withCString { source in
        to.withCString { target in Int(spoolrun_rename_noreplace(at, source, at, target)) }
      }
    }
  }

  /// renameat2(2) with RENAME_EXCHANGE: each gets the other's name; ENOENT where one of them is not there.
  func exchange(_ at: Int32, _ one: Path, _ other: Path) throws(SpoolError) {
    try call(.rename, "\(one.display) \(other.display)") { _ in
      one.withCString { one in
        other.withCString { other in Int(spoolrun_rename_exchange(at, one, other)) }
      }
    }
  }

  /// linkat(2): gives the file at `from` a second name; never replaces.
  func link(_ at: Int32, _ from: Path, _ toDirectory: Int32, _ to: Path, follow: Bool = false)
    throws(SpoolError)
  {
    try call(.link, "\(from.display) \(to.display)") { _ in
      from.withCString { source in
        to.withCString { target in
          Int(linkat(at, source, toDirectory, target, follow ? AT_SYMLINK_FOLLOW : 0))
        }
      }
    }
  }

  func unlink(_ at: Int32, _ path: Path) throws(SpoolError) {
    try call(.unlink, path.display) { _ in path.withCString { Int(unlinkat(at, $0, 0)) } }
  }

  /// fstatat(2) with AT_SYMLINK_NOFOLLOW.
  func status(_ at: Int32, _ path: Path) throws(SpoolError) -> FileStatus {
    var status = stat()
    try call(.stat, path.display) { _ in
      path.withCString { Int(fstatat(at, $0, &status, AT_SYMLINK_NOFOLLOW)) }
    }
    return FileStatus(status)
  }

  /// faccessat(2) as the effective user: EACCES, EROFS, or EPERM for an immutable directory, where no name in it can be made or moved.
  func mayChange(_ at: Int32, _ directory: Path) throws(SpoolError) {
    try call(.stat, directory.display) { _ in
      directory.withCString { Int(faccessat(at, $0, W_OK | X_OK, AT_EACCESS)) }
    }
  }

  // MARK: open files

  func status(_ descriptor: Int32, path: Path) throws(SpoolError) -> FileStatus {
    var status = stat()
    try call(.stat, path.display) { _ in Int(fstat(descriptor, &status)) }
    return FileStatus(status)
  }

  /// As ``release(_:)``, where close(2) may be the last chance to hear of a failed write.
  func close(_ descriptor: Int32, _ path: Path) throws(SpoolError) {
    _ = flock(descriptor, LOCK_UN)
    // On Linux the descriptor is gone even after EINTR (close(2)), so that is no error.
    do throws(SpoolError) {
      try call(.close, path.display, repeatable: false) { _ in Int(Glibc.close(descriptor)) }
    } catch  where error.errno == .interrupted {
    }
  }

  func read(_ descriptor: Int32, _ path: Path, into buffer: UnsafeMutableRawBufferPointer, at offset: Int64)
    throws(SpoolError) -> Int
  {
    try call(.read, path.display) { limit in
      pread(descriptor, buffer.baseAddress, min(buffer.count, limit), off_t(offset))
    }
  }

  /// Hands the bytes of `range` to `body` block by block, each with its offset; EIO where the file ends before.
  func readBlocks(
    _ descriptor: Int32, _ path: Path, _ range: Range<UInt64>,
    _ body: (UnsafeRawBufferPointer, UInt64) throws(SpoolError) -> Void
  ) throws(SpoolError) {
    let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 1 << 18, alignment: 16)
    defer { buffer.deallocate() }
    var offset = range.lowerBound
    while offset < range.upperBound {
      let wanted = Int(min(UInt64(buffer.count), range.upperBound - offset))
      let count = try read(
        descriptor, path, into: UnsafeMutableRawBufferPointer(rebasing: buffer[..<wanted]), at: Int64(offset))
      guard count > 0 else { throw SpoolError(call: .read, path: path.display, errno: .ioError) }
      try body(UnsafeRawBufferPointer(rebasing: buffer[..<count]), offset)
      offset += UInt64(count)
    }
  }

  /// Writes all of `bytes` at `offset`, going on after short writes.
  func write(_ descriptor: Int32, _ path: Path, _ bytes: UnsafeRawBufferPointer, at offset: Int64)
    throws(SpoolError)
  {
    var written = 0
    while written < bytes.count {
      let range = offset + Int64(written)..<offset + Int64(bytes.count)
      let count = try call(.write, path.display, range: range) { limit in
        pwrite(
          descriptor, bytes.baseAddress! + written, min(bytes.count - written, limit),
          off_t(offset) + written)
      }
      // A write of 0 bytes says nothing about why; pwrite(2) allows it only for a count of 0.
      guard count > 0 else { throw SpoolError(call: .write, path: path.display, errno: .ioError) }
      written += count
    }
  }

  func truncate(_ descriptor: Int32, _ path: Path, to length: Int64) throws(SpoolError) {
    try call(.truncate, path.display, range: length..<Int64.max) { _ in Int(ftruncate(descriptor, off_t(length))) }
  }

  func fdatasync(_ descriptor: Int32, _ path: Path) throws(SpoolError) {
    try call(.fdatasync, path.display, repeatable: false) { _ in Int(Glibc.fdatasync(descriptor)) }
  }

  func fsync(_ descriptor: Int32, _ path: Path) throws(SpoolError) {
    try call(.fsync, path.display, repeatable: false) { _ in Int(Glibc.fsync(descriptor)) }
  }

  func syncFileSystem(_ descriptor: Int32, _ path: Path) throws(SpoolError) {
    try call(.syncfs, path.display, repeatable: false) { _ in Int(spoolrun_syncfs(descriptor)) }
  }

  /// flock(2) LOCK_EX | LOCK_NB: false when somebody else holds it.
  func lock(_ descriptor: Int32, _ path: Path) throws(SpoolError) -> Bool {
    do throws(SpoolError) {
      try call(.lock, path.display) { _ in Int(flock(descriptor, LOCK_EX | LOCK_NB)) }
      return true
    } catch  where error.errno == .wouldBlock {
      return false
    }
  }

  /// Gives a lock back, if there is one, and closes the descriptor.
  ///
  /// close(2) alone does not always: the lock is the open file's (flock(2)), which a child has as well between its fork and its exec. Whatever this process
  /// locks next would seem to be another's.
  static func release(_ descriptor: Int32) {
    _ = flock(descriptor, LOCK_UN)
    _ = Glibc.close(descriptor)
  }

  /// fcntl(2) F_SETLEASE: throws EAGAIN while somebody has the file open for writing.
  func probeLease(_ descriptor: Int32, _ path: Path) throws(SpoolError) {
    try call(.lease, path.display) { _ in Int(spoolrun_probe_read_lease(descriptor)) }
  }

  /// Both times to now, by the file system's own clock.
  func touch(_ descriptor: Int32, _ path: Path) throws(SpoolError) {
    try call(.utimens, path.display) { _ in Int(spoolrun_touch(descriptor)) }
  }

  func setTimes(_ descriptor: Int32, _ path: Path, to seconds: Int64) throws(SpoolError) {
    try call(.utimens, path.display) { _ in Int(spoolrun_set_times(descriptor, seconds)) }
  }

  /// getdents64(2): bytes of entries; 0 at the end of the directory.
  func readEntries(_ descriptor: Int32, _ path: Path, into buffer: UnsafeMutableRawBufferPointer) throws(SpoolError)
    -> Int
  {
    try call(.list, path.display) { _ in spoolrun_getdents(descriptor, buffer.baseAddress, buffer.count) }
  }
}

/// What stat(2) says of a file, as far as the spool asks.
package struct FileStatus: Sendable {
  package let device: UInt64
  package let inode: UInt64
  package let size: Int64
  package let links: UInt64
  package let owner: UInt32
  /// The lower twelve bits of the mode.
  package let permissions: UInt32
  /// Seconds since the epoch.
  package let modified: Int64
  /// Seconds since the epoch of the last change of content or name.
  package let changed: Int64
  package let isRegular: Bool
  package let isDirectory: Bool
  package let stamp: Stamp

  /// What every change of a file's content changes. Nobody can set the time of the last change (inode(7), st_ctim), but
  /// two changes may be within one tick of the clock that it is read from.
  package struct Stamp: Sendable, Equatable {
    package let size: Int
    let modified: [Int]
    let changed: [Int]
  }

  init(_ status: stat) {
    device = UInt64(status.st_dev)
    inode = UInt64(status.st_ino)
    size = Int64(status.st_size)
    links = UInt64(status.st_nlink)
    owner = status.st_uid
    permissions = status.st_mode & 0o7777
    modified = Self.seconds(status.st_mtim)
    changed = Self.seconds(status.st_ctim)
    stamp = Stamp(
      size: status.st_size, modified: [status.st_mtim.tv_sec, status.st_mtim.tv_nsec],
      changed: [status.st_ctim.tv_sec, status.st_ctim.tv_nsec])
    isRegular = status.st_mode & UInt32(Glibc.S_IFMT) == UInt32(Glibc.S_IFREG)
    isDirectory = status.st_mode & UInt32(Glibc.S_IFMT) == UInt32(Glibc.S_IFDIR)
  }

  /// Some file systems keep whatever utimensat(2) is given; a time that strangers chose is added to and subtracted from.
  private static func seconds(_ time: timespec) -> Int64 { min(max(Int64(time.tv_sec), -1 << 40), 1 << 40) }

  package func isSameFile(as other: FileStatus) -> Bool {
    device == other.device && inode == other.inode
  }
}
