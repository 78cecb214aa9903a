internal import Transfer

/// Makes the loop wait in libcurl's poll.
final class EngineDriver: LoopDriver {
  private let engine: TransferEngine

  init(_ engine: TransferEngine) { self.engine = engine }

  func wait(milliseconds: Int32, descriptors: [Int32]) -> [Int32] {
    engine.wait(milliseconds: milliseconds, descriptors: descriptors)
  }

  func advance() { engine.advance() }
}
