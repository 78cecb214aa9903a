/// The digests of data while it grows. Whoever brings the bytes computes CRC-32 at once, while they are in its
/// processor's cache. The other digests take several times as long, and get a thread.
final class RunningDigests {
  private var crc32: Checksum
  private let beside: HashingQueue?

  init(_ states: DigestStates) {
    crc32 = states.crc32
    beside = states.hashes.isEmpty ? nil : HashingQueue(states.hashes)
  }

  /// - Parameter block: see ``PartFile/append(_:in:)``.
  func update(_ bytes: UnsafeRawBufferPointer, in block: Block?) {
    beside?.update(bytes, in: block)
    crc32.update(bytes)
  }

  /// More bytes may have to wait.
  var isFull: Bool { beside?.isFull ?? false }

  /// Those of all bytes so far; waits for the thread.
  var states: DigestStates { DigestStates(crc32: crc32, beside?.finish() ?? []) }
}
