/// The permissions of a payload (chmod(2)). Its owner may always read and write it, because a later worker may have to
/// continue with it; others may never write to it.
package struct PayloadMode: Sendable, Equatable {
  /// Of the payload.
  package let bits: UInt32

  private static let ofOwner: UInt32 = 0o600
  private static let most: UInt32 = 0o775

  /// - Parameter text: three octal digits, perhaps with a 0 before them.
  /// - Returns: nil for anything else, and for permissions that it does not allow.
  package init?(_ text: String) {
    guard (3...4).contains(text.utf8.count), text.utf8.count == 3 || text.begins(with: "0"),
      text.utf8.allSatisfy({ (0x30...0x37).contains($0) }), let bits = UInt32(text, radix: 8),
      bits & Self.ofOwner == Self.ofOwner, bits & ~Self.most == 0
    else { return nil }
    self.bits = bits
  }

  /// What a file gets that a program creates as usual.
  /// - Parameter mask: see umask(2).
  package init(umask mask: UInt32) { bits = 0o666 & Self.most & ~mask | Self.ofOwner }

  /// The same for the directories that are made for the payload: whoever may read it may search them.
  package var ofDirectories: UInt32 { bits | (bits & 0o444) >> 2 }

  /// As a job has it.
  package var text: String { String(bits, radix: 8) }
}
