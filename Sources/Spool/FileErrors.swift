internal import Glibc
internal import SystemPackage

extension SpoolError {
  /// The file system cannot be reached, and may be later: the program that serves it has ended (ENOTCONN, ECONNABORTED;
  /// fuse(4)), the server does not know it any more (ESTALE; nfs(5)), or the device is gone (ENODEV).
  private static let lost: Set<Int32> = [ENOTCONN, ECONNABORTED, ESTALE, ENODEV]

  /// The same where a server or a program has the files: what they or their network say, each in its own words.
  /// sshfs(1) says EIO for whatever went wrong, a soft mount of nfs(5) EIO or ETIMEDOUT, CephFS ESHUTDOWN.
  private static let unreachable: Set<Int32> = [
    EIO, EREMOTEIO, ETIMEDOUT, ESHUTDOWN, EHOSTDOWN, EHOSTUNREACH, ENETDOWN, ENETUNREACH, ECONNRESET, ECONNREFUSED,
  ]

  /// Whether it may be that the file system cannot be reached at the moment.
  package func isOfLostMount(on kind: FileSystemKind) -> Bool {
    Self.lost.contains(errno.rawValue) || !kind.isLocal && Self.unreachable.contains(errno.rawValue)
  }

  /// Whether the spool's path leads to no spool at the moment.
  func isOfMissingSpool(on kind: FileSystemKind) -> Bool {
    [.noSuchFileOrDirectory, .notDirectory, .permissionDenied].contains(errno) || isOfLostMount(on: kind)
  }

  /// Errors that a single file can cause: it is immutable or append-only (chattr(1)), a mount point, a running program,
  /// or another user's in a sticky directory, or cannot be read.
  var mayConcernOneFile: Bool {
    // Not EROFS, which nearly always concerns all files: a single file that is mounted read-only says EBUSY to rename.
    isUnreadable || [.notPermitted, .resourceBusy, .textFileBusy].contains(errno)
  }
}
