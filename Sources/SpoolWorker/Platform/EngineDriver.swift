internal import Transfer

/// Lets libcurl do the loop's waiting.
final class EngineDriver: LoopDriver {
  private let engine: TransferEngine

  init(_ engine: TransferEngine) { self.engine = engine }

  func wait(milliseconds: Int32, descriptors: [Int32]) {
    engine.poll(milliseconds: milliseconds, descriptors: descriptors)
  }
}
