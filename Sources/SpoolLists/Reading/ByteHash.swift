/// 128 bits in place of some bytes, in memory: a hit needs no second look. Each process has its own.
/// (`String.hashValue` is the same for different spellings of one character.)
package struct Fingerprint: Hashable, Sendable {
  private let low: Int
  private let high: Int

  /// Of the bytes.
  package init(_ bytes: [UInt8]) {
    func hash(_ salt: UInt8) -> Int {
      var hasher = Hasher()
      hasher.combine(salt)
      bytes.withUnsafeBytes { hasher.combine(bytes: $0) }
      return hasher.finalize()
    }
    (low, high) = (hash(0), hash(1))
  }

  /// A set takes the bits as they are.
  package func hash(into hasher: inout Hasher) { hasher.combine(low) }
}
