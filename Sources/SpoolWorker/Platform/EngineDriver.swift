internal import Transfer

/// Makes the loop wait in libcurl's poll.
final class EngineDriver: LoopDriver {
  private let engine: TransferEngine

  init(_ engine: TransferEngine) { self.engine = engine }

  func wait(milliseconds: Int32, descriptors: [Int32]) {
    engine.poll(milliseconds: milliseconds, descriptors: descriptors)
  }
}
