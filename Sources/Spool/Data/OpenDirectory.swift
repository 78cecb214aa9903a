/// A directory that is open, below an output root or the root itself.
struct OpenDirectory: Sendable {
  let file: SharedFile
  /// Its status when it was opened. As long as it is open, no other directory has its inode's number.
  let identity: FileStatus

  /// - Throws: ``SpoolError``.
  init(_ file: SharedFile) throws(SpoolError) {
    self.file = file
    identity = try file.status()
  }

  /// The descriptor.
  var number: Int32 { file.number }
  var path: Path { file.path }
  /// Makes the names in it durable.
  var flush: Flush { Flush(file, identity) }

  func isSame(as other: OpenDirectory) -> Bool { identity.isSameFile(as: other.identity) }
}
