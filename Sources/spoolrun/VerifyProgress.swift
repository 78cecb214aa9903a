internal import SpoolStatus
internal import Synchronization

/// How far `verify` is. Several threads count, one looks.
final class VerifyProgress: Sendable {
  /// The bytes of one payload.
  struct Tally {
    fileprivate let size: UInt64
    fileprivate var read: UInt64 = 0
  }

  private let state: Mutex<VerifyPicture.Progress>

  init(files: Int) { state = Mutex(VerifyPicture.Progress(files: files)) }

  /// There are that many more receipts.
  func expect(_ more: Int) { state.withLock { $0.files += more } }

  var now: VerifyPicture.Progress { state.withLock { $0 } }

  /// A payload is about to be read.
  /// - Parameter size: in bytes, by its receipt.
  func begin(_ size: UInt64) -> Tally {
    state.withLock { state in
      state.begun += 1
      state.known &+= size
    }
    return Tally(size: size)
  }

  func read(_ count: Int, _ tally: inout Tally) {
    tally.read += UInt64(count)
    state.withLock { $0.read &+= UInt64(count) }
  }

  /// A payload need not be read any further.
  func end(_ tally: Tally) {
    let rest = tally.size > tally.read ? tally.size - tally.read : 0
    state.withLock { $0.read &+= rest }
  }

  /// A receipt is done with.
  func note(isGood: Bool) {
    state.withLock { state in
      state.ended += 1
      if !isGood { state.bad += 1 }
    }
  }
}
