/// How a payload compares with its receipt.
package enum PayloadCheck: Sendable {
  /// No regular file has the name.
  case missing
  /// A regular file has the name; nothing more was asked.
  case present
  /// Another size or checksum than the receipt says, in words: `12 bytes`, `crc32 1C291CA3`.
  case changed(expected: String, found: String)
  /// Size and checksum are the receipt's.
  case sound
}

extension OutputRoot {
  /// Compares a payload below this root with its receipt.
  /// - Parameter verified: what was verified; the payload is read for it. nil: only look whether the payload exists.
  /// - Throws: ``SpoolError``, ELOOP where a directory on the way is a symbolic link.
  package func check(_ receipt: Journal.Receipt, _ verified: Journal.Verified?) throws(SpoolError) -> PayloadCheck {
    guard let output = OutputPath(receipt.output), let status = try status(output), status.isRegular else {
      return .missing
    }
    guard let verified else { return .present }
    let existing = try place(output).openExisting()
    guard existing.status.size == verified.size else {
      return .changed(expected: "\(verified.size) bytes", found: "\(existing.status.size)")
    }
    let found = try existing.reading.run().checksum
    guard found == verified.checksum else { return .changed(expected: "crc32 \(verified.checksum)", found: "\(found)") }
    return .sound
  }
}
