/// How a payload compares with its receipt.
package enum PayloadCheck: Sendable {
  /// No regular file has the name.
  case missing
  /// A regular file has the name; nothing more was asked.
  case present
  /// Its size or digest differs from the receipt.
  case changed(Mismatch)
  /// Size and digests are the receipt's.
  case sound
}

extension OutputRoot {
  /// Compares a payload below this root with its receipt.
  /// - Parameters:
  ///   - verified: what was verified; the payload is read for it. nil: only look whether the payload exists.
  ///   - note: called with the length of each block that was read, in bytes.
  /// - Throws: ``SpoolError``, ELOOP where a directory of the path is a symbolic link.
  package func check(
    _ receipt: Journal.Receipt, _ verified: Journal.Verified?, note: (Int) -> Void = { _ in }
  ) throws(SpoolError) -> PayloadCheck {
    guard let output = OutputPath(receipt.output), let status = try status(output), status.isRegular else {
      return .missing
    }
    guard let verified else { return .present }
    let existing = try place(output).openExisting()
    let expected = verified.expectation
    // A file of another size need not be read.
    if let mismatch = expected.mismatch(size: UInt64(existing.status.size)) { return .changed(mismatch) }
    if let mismatch = expected.mismatch(try existing.reading(expected.digests.algorithms).run(note)) {
      return .changed(mismatch)
    }
    return .sound
  }
}
