/// The digests of data while it grows. CRC-32 is computed at once, by whoever brings the bytes; all others on a thread
/// beside it, so that they take no time of the transfer.
final class RunningDigests {
  private var crc32: Checksum
  /// nil where CRC-32 is all.
  private var beside: HashingQueue?

  init(_ states: DigestStates) {
    crc32 = states.crc32
    beside = states.hashes.isEmpty ? nil : HashingQueue(states.hashes)
  }

  /// - Parameter block: see ``PartFile/append(_:in:)``.
  func update(_ bytes: UnsafeRawBufferPointer, in block: Block?) {
    crc32.update(bytes)
    beside?.update(bytes, in: block)
  }

  /// More bytes may have to wait.
  var isFull: Bool { beside?.isFull ?? false }

  /// Those of all bytes so far; waits for the thread.
  var states: DigestStates { DigestStates(crc32: crc32, beside?.finish() ?? []) }
}
