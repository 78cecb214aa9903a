/// A stretch of a file to run the digests over.
package struct ChecksumReading: Sendable {
  let file: SharedFile
  let start: Mark
  /// Where the stretch ends, in bytes from the file's start.
  let end: UInt64
  /// See ``PartFile/reading(from:to:rewritingFrom:)``.
  var rewritingFrom: UInt64?

  /// Reads the stretch; on any thread.
  /// - Parameter note: called with the length of each block that was read, in bytes.
  /// - Returns: the mark at its end.
  /// - Throws: ``SpoolError``, EIO where the file is shorter.
  package func run(_ note: (Int) -> Void = { _ in }) throws(SpoolError) -> Mark {
    guard start.offset < end else { return start }
    var states = start.states
    try file.readBlocks(start.offset..<end) { (bytes, offset) throws(SpoolError) in
      states.update(bytes)
      note(bytes.count)
      guard let rewritingFrom, rewritingFrom < offset + UInt64(bytes.count) else { return }
      let known = rewritingFrom > offset ? Int(rewritingFrom - offset) : 0
      try file.write(UnsafeRawBufferPointer(rebasing: bytes[known...]), at: Int64(offset) + Int64(known))
    }
    return Mark(offset: end, states: states)
  }
}

/// The pages of a job's data in the page cache.
package struct DataCache: Sendable {
  let file: SharedFile

  /// Gives back the cached pages before `offset`, which are on disk (posix_fadvise(2)). So a long download takes no
  /// more of the machine's memory than a short one, pushes out nothing that others use, and writes to memory that it
  /// has used before.
  /// - Parameter offset: in bytes, greater than 0.
  package func forget(before offset: UInt64) {
    // A length of 0 would mean all.
    precondition(offset > 0)
    // Advice: reading works as well where it is not taken.
    try? file.forgetCache(first: offset)
  }

  /// Whether it has all pages of `range`, which is not empty; false if that cannot be known.
  package func has(_ range: Range<UInt64>) -> Bool { (try? file.isCached(range)) ?? false }
}
