internal import CLinux
internal import Glibc

/// Something to make durable: a file's data, a job with its journal, the names in a directory.
package struct Flush: Sendable {
  /// What one call makes durable.
  package enum Target: Hashable, Sendable {
    case file(device: UInt64, inode: UInt64)
    /// Of the spool, found by its name at the time of the call: it may be removed and made again.
    case directory(Directory)
  }

  package let target: Target
  /// Where it lies.
  package let device: UInt64
  private let call: @Sendable () throws(SpoolError) -> Void

  init(_ target: Target, device: UInt64, _ call: @escaping @Sendable () throws(SpoolError) -> Void) {
    self.target = target
    self.device = device
    self.call = call
  }

  /// fdatasync(2): the data, and of the metadata what it takes to read it.
  init(dataOf descriptor: Int32, _ path: Path, _ status: FileStatus, _ system: System) {
    self.init(.file(device: status.device, inode: status.inode), device: status.device) { () throws(SpoolError) in
      try system.fdatasync(descriptor, path)
    }
  }

  /// fsync(2).
  init(_ descriptor: Int32, _ path: Path, _ status: FileStatus, _ system: System) {
    self.init(.file(device: status.device, inode: status.inode), device: status.device) { () throws(SpoolError) in
      try system.fsync(descriptor, path)
    }
  }

  /// Runs on whichever thread. Not to be repeated after an error: the pages count as clean then (fsync(2)).
  package func run() throws(SpoolError) { try call() }
}

/// A file system that holds a spool or an output root, to be made durable as a whole.
package struct FileSystem: Sendable {
  package let device: UInt64
  private let descriptor: Int32
  private let path: Path
  private let system: System
  /// Whoever closes the descriptor.
  private let keeper: any AnyObject & Sendable

  /// - Parameters:
  ///   - descriptor: open since before the first write, or its errors would not be reported (syncfs(2)).
  ///   - keeper: whoever closes it, kept until then.
  init(_ descriptor: Int32, _ path: Path, _ system: System, keeping keeper: any AnyObject & Sendable)
    throws(SpoolError)
  {
    self.keeper = keeper
    device = try system.status(descriptor, path: path).device
    self.descriptor = descriptor
    self.path = path
    self.system = system
  }

  /// Whether this kernel's syncfs(2) reports every failed write.
  package static let isReliable = spoolrun_syncfs_is_reliable() != 0

  /// syncfs(2), on whichever thread. An error may be any file's: each has to be flushed by itself then, which reports its own.
  package func sync() throws(SpoolError) { try system.syncFileSystem(descriptor, path) }
}
