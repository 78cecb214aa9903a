/// The digests of data while it grows. If CRC-32 is all, whoever brings the bytes computes it at once. With others,
/// CRC-32 gets a thread and the others get one, so that they take no time of the transfer: CRC-32 would be a quarter of
/// what the bringing thread does, and the thread of the others has time only if they are fast here.
final class RunningDigests {
  /// Of all bytes if there is nothing beside.
  private var crc32: Checksum
  private let beside: (crc32: HashingQueue<Checksum>, hashes: HashingQueue<[HashState]>)?

  init(_ states: DigestStates) {
    crc32 = states.crc32
    beside = states.hashes.isEmpty ? nil : (HashingQueue(states.crc32), HashingQueue(states.hashes))
  }

  /// - Parameter block: see ``PartFile/append(_:in:)``.
  func update(_ bytes: UnsafeRawBufferPointer, in block: Block?) {
    guard let beside else { return crc32.update(bytes) }
    beside.hashes.update(bytes, in: block)
    beside.crc32.update(bytes, in: block)
  }

  /// More bytes may have to wait.
  var isFull: Bool { beside.map { $0.crc32.isFull || $0.hashes.isFull } ?? false }

  /// Those of all bytes so far; waits for the threads.
  var states: DigestStates {
    guard let beside else { return DigestStates(crc32: crc32) }
    return DigestStates(crc32: beside.crc32.finish(), beside.hashes.finish())
  }
}
