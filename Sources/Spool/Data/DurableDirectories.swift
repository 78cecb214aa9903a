/// The directories below an output root whose own entry is durable: this process has flushed it.
final class DurableDirectories {
  private struct Identity: Hashable {
    let device: UInt64
    let inode: UInt64

    init(_ status: FileStatus) { (device, inode) = (status.device, status.inode) }
  }

  private var known: Set<Identity> = []

  func contains(_ directory: FileStatus) -> Bool { known.contains(Identity(directory)) }
  func insert(_ directory: FileStatus) { known.insert(Identity(directory)) }

  /// For a directory that was just made: one that was removed may have had its inode's number.
  func forget(_ directory: FileStatus) { known.remove(Identity(directory)) }
}
