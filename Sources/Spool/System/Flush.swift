internal import CLinux

/// Something to make durable: a file's data, a job with its journal, the names in a directory.
package struct Flush: Sendable {
  package enum Target: Hashable, Sendable {
    case file(device: UInt64, inode: UInt64)
    /// A directory of the spool, found by its name at the time of the call: it may be removed and made again.
    case directory(Directory)
  }

  /// What becomes durable; two flushes of one target are one.
  package let target: Target
  package let device: UInt64
  private let call: @Sendable () throws(SpoolError) -> Void

  init(_ target: Target, device: UInt64, _ call: @escaping @Sendable () throws(SpoolError) -> Void) {
    (self.target, self.device, self.call) = (target, device, call)
  }

  private init(_ status: FileStatus, _ call: @escaping @Sendable () throws(SpoolError) -> Void) {
    self.init(.file(device: status.device, inode: status.inode), device: status.device, call)
  }

  /// fdatasync(2): the data, and the metadata that is needed to read it.
  init(dataOf file: SharedFile, _ status: FileStatus) {
    self.init(status) { () throws(SpoolError) in try file.fdatasync() }
  }

  /// fsync(2).
  init(_ file: SharedFile, _ status: FileStatus) { self.init(status) { () throws(SpoolError) in try file.fsync() } }

  /// Makes the target durable; on any thread.
  /// - Throws: ``SpoolError``. Do not repeat it then: the pages count as clean (fsync(2)).
  package func run() throws(SpoolError) { try call() }
}

/// The file system of a spool or an output root, to be made durable as a whole.
package struct FileSystem: Sendable {
  package let device: UInt64
  private let file: SharedFile

  /// - Parameter file: open since before the first write, or its errors would not be reported (syncfs(2)).
  /// - Returns: nil where not: ``FileSystemKind/syncsAsAWhole``, and by ``isReliable``.
  init?(_ file: SharedFile, _ status: FileStatus, _ kind: FileSystemKind) {
    guard Self.isReliable, kind.syncsAsAWhole else { return nil }
    device = status.device
    self.file = file
  }

  /// Whether this kernel's syncfs(2) reports every failed write.
  package static let isReliable = spoolrun_syncfs_is_reliable() != 0

  /// syncfs(2), on any thread.
  /// - Throws: ``SpoolError``, which may be any file's: each file has to be flushed by itself then, and reports its
  ///   own.
  package func sync() throws(SpoolError) { try file.syncFileSystem() }
}
