/// A payload on its way to another file system.
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
  /// - Returns: the checksum of what was read, which has to be the verified one.
  /// - Throws: ``SpoolError``.
  package func run() throws(SpoolError) -> Checksum {
    var checksum = Checksum()
    try source.readBlocks(0..<length) { (bytes, offset) throws(SpoolError) in
      checksum.update(bytes)
      try target.write(bytes, at: Int64(offset))
    }
    try target.fdatasync()
    return checksum
  }

  /// The new file's inode, by which a later run knows the copy.
  /// - Throws: ``SpoolError``.
  package func inode() throws(SpoolError) -> UInt64 { try target.status().inode }
}

/// A file that has the name of an output already.
package final class ExistingOutput {
  package let status: FileStatus
  private let file: SharedFile

  init(file: SharedFile, status: FileStatus) {
    self.file = file
    self.status = status
  }

  /// Reads all of it.
  package var reading: ChecksumReading {
    ChecksumReading(file: file, start: Mark.zero, end: UInt64(status.size))
  }

  /// Makes its data durable.
  package var flush: Flush { Flush(dataOf: file, status) }
}
