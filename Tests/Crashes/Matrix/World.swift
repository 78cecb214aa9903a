import Synchronization
import TestSupport

/// Where one case plays: a spool, perhaps an output root on another file system, and what the server was asked.
final class World: Sendable {
  let spool: TemporarySpool
  /// The absolute path of the output root; nil for the spool's `files`.
  let outputRoot: String?
  private let home: TemporaryDirectory
  private let otherRoot: TemporaryDirectory?
  private let state = Mutex(State())

  private struct State {
    var base = ""
    var requests: [ServerRequest] = []
    var marks: Set<String> = []
  }

  /// - Parameters:
  ///   - isInMemory: whether the spool is in /dev/shm. The calls and their order are the same there, at half the price;
  ///     what a disk keeps of them is a matter of the power cuts.
  ///   - onOtherFileSystem: whether the output root is elsewhere than the spool. Wants `isInMemory`.
  init(isInMemory: Bool, onOtherFileSystem: Bool) throws {
    home = try TemporaryDirectory(in: isInMemory ? TemporaryDirectory.otherFileSystem : nil)
    spool = try TemporarySpool(in: home.path)
    otherRoot = onOtherFileSystem ? try TemporaryDirectory() : nil
    outputRoot = otherRoot?.path
  }

  /// The server's base URL.
  var base: String {
    get { state.withLock { $0.base } }
    set { state.withLock { $0.base = newValue } }
  }

  func url(_ output: String) -> String { "\(base)/\(output)" }

  /// A path beside the spool.
  func outside(_ name: String) -> String { "\(home.path)/\(name)" }

  var recordPath: String { outside("record") }

  var payloadRoot: String { outputRoot ?? spool.path("files") }

  // MARK: the server's side

  func note(_ request: ServerRequest) { state.withLock { $0.requests.append(request) } }

  /// All requests for the payload of `output`, in order.
  func requests(for output: String) -> [ServerRequest] {
    state.withLock { $0.requests.filter { $0.target == "/\(output)" } }
  }

  /// Whether this is the first call for `mark`: for what a script does once.
  func isFirst(_ mark: String) -> Bool { state.withLock { $0.marks.insert(mark).inserted } }

  func hasMark(_ mark: String) -> Bool { state.withLock { $0.marks.contains(mark) } }

  /// Holds a script until the worker has written a checkpoint, or has gone.
  func awaitCheckpoint(_ reply: Reply) throws {
    for _ in 0..<40_000 {
      for name in spool.names("cur") {
        // The worker may rename it under our hands.
        guard let text = try? readFile(spool.path("cur/\(name)")) else { continue }
        if String(decoding: text, as: UTF8.self).contains("\ncheckpoint: ") { return }
      }
      try reply.pause(milliseconds: 5)
    }
    throw TestSupportError("no checkpoint in 200 s")
  }
}
