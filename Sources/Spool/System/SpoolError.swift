package import SystemPackage

/// A system call that failed: which one, on what, and why.
package struct SpoolError: Error, Sendable, CustomStringConvertible {
  package let call: Call.Kind
  /// What it was applied to, escaped for display.
  package let path: String
  package let errno: Errno
  /// What is wrong, where errno(3) does not say it; free of control bytes.
  package let reason: String?

  package init(call: Call.Kind, path: String, errno: Errno, reason: String? = nil) {
    (self.call, self.path, self.errno, self.reason) = (call, path, errno, reason)
  }

  package var description: String { "\(call.rawValue) \(path): \(words)" }

  private var words: String {
    if let reason { return reason }
    if isLeased { return "another program keeps it from being read (fcntl(2), F_SETLEASE); try again" }
    if isDiskFull, call != .watch { return "\(errno); make space on its file system" }
    // open(2) and openat2(2) are told to follow no link, so a loop of links is hardly ever the reason.
    let isLink = call == .open && errno == .tooManySymbolicLinkLevels
    return isLink ? "it is a symbolic link, which is not followed" : "\(errno)"
  }

  /// A lack of space for a file in `tmp/`, as an error of the job, by which a person knows it. Other errors stay.
  func ofSpace(for job: String) -> SpoolError {
    guard isDiskFull else { return self }
    let reason = "\(errno): this job is not changed; make space on the spool's file system"
    return SpoolError(call: call, path: job, errno: errno, reason: reason)
  }

  /// The errors of open(2) for a symbolic link, a directory, a socket.
  var isNoRegularFile: Bool {
    errno == .tooManySymbolicLinkLevels || errno == .isDirectory || errno == .noSuchAddressOrDevice
  }

  /// Its writer has a write lease on the file (open(2), O_NONBLOCK).
  var isLeased: Bool { call == .open && isBusy }

  /// One file that this process cannot read now; whoever reads many leaves it out.
  package var isUnreadable: Bool { errno == .permissionDenied || isNoRegularFile || isLeased }

  package var isBusy: Bool { errno == .wouldBlock }

  /// No space for data or inodes, or over quota: nothing is wrong with the job.
  package var isDiskFull: Bool { errno == .noSpace || errno == .diskQuotaExceeded }

  package var isShortage: Bool { errno.isShortage }

  /// A file would be larger than the process (setrlimit(2), RLIMIT_FSIZE) or the file system allows.
  package var isTooLargeHere: Bool { errno == .fileTooLarge }

  /// One file cannot grow; other jobs may continue.
  package var isLackOfSpace: Bool { isDiskFull || isTooLargeHere }

  /// The file system (EINVAL) or the kernel (ENOSYS) does not support this kind of renameat2(2).
  var isUnknownRename: Bool { errno == .invalidArgument || errno == .noFunction }

  /// Another host has moved or removed the open file: NFS says ESTALE, FUSE file systems that go by paths say ENOENT.
  package var isGone: Bool { errno == .staleNFSFileHandle || errno == .noSuchFileOrDirectory }
}

package struct Call: Sendable {
  package enum Kind: String, Sendable, CaseIterable {
    case open, create, read, stat, lock, lease, list, close, statvfs, fcntl
    case watch = "inotify_add_watch"
    case fadvise = "posix_fadvise"
    case mincore
    case write, truncate, rename, link, unlink, mkdir, fsync, fdatasync, syncfs, utimens, chmod
  }

  package let kind: Kind
  /// What the call is about, escaped for display.
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
package protocol CallHook: AnyObject, Sendable {
  func before(_ call: Call) -> Fault?
  func after(_ call: Call)
}

extension Errno {
  /// This process, or this machine, has no more files or memory for the moment.
  package var isShortage: Bool { [.tooManyOpenFiles, .tooManyOpenFilesInSystem, .noMemory].contains(self) }
}
