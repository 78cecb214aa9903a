/// Memory for bytes that are about to be written and hashed. All of its holders may read it; only one that holds it
/// alone may write to it (`isKnownUniquelyReferenced`).
///
/// `@unchecked Sendable`: that rule.
package final class Block: @unchecked Sendable {
  /// In bytes.
  package static let size = 256 << 10

  /// ``size`` bytes, at a page's boundary.
  package let memory = UnsafeMutableRawBufferPointer.allocate(byteCount: Block.size, alignment: 4096)

  /// The memory has no defined content.
  package init() {}

  deinit { memory.deallocate() }
}
