/// A payload that is being copied to another file system.
package final class OutputCopy: Sendable {
  let target: OwnedFile
  private let source: SharedFile
  private let length: UInt64

  init(source: SharedFile, length: UInt64, target: consuming OwnedFile) {
    self.source = source
    self.length = length
    self.target = target
  }

  /// Copies all and makes it durable; on any thread.
  /// - Parameter algorithms: the digests to compute beside CRC-32.
  /// - Returns: the end of what was read, whose digests have to be the verified ones.
  /// - Throws: ``SpoolError``.
  package func run(_ algorithms: Set<DigestAlgorithm>) throws(SpoolError) -> Mark {
    var states = DigestStates(algorithms)
    try source.readBlocks(0..<length) { (bytes, offset) throws(SpoolError) in
      states.update(bytes)
      try target.write(bytes, at: Int64(offset))
    }
    try target.fdatasync()
    return Mark(offset: length, states: states)
  }

  /// The new file's inode, by which a later run knows the copy.
  /// - Throws: ``SpoolError``.
  package func inode() throws(SpoolError) -> UInt64 { try target.status().inode }
}

/// A file that has the name of an output already.
package final class ExistingOutput {
  /// The file's status when it was opened.
  package let status: FileStatus
  private let file: SharedFile

  init(file: SharedFile, status: FileStatus) {
    self.file = file
    self.status = status
  }

  /// Reads all of it.
  /// - Parameter algorithms: the digests to compute beside CRC-32.
  package func reading(_ algorithms: Set<DigestAlgorithm>) -> ChecksumReading {
    ChecksumReading(file: file, start: .zero(algorithms), end: UInt64(status.size))
  }

  /// Makes its data durable.
  package var flush: Flush { Flush(dataOf: file, status) }
}
