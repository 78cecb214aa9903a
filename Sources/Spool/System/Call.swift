package import SystemPackage

/// One system call as the seam shows it to a ``CallHook``.
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
