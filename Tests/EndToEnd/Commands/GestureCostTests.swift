import Spool
import Synchronization
import TestSupport
import Testing

@testable import spoolrun

/// What a command for many jobs reads once.
@Suite struct GestureCostTests {
  /// Counts the opens of each path.
  private final class Opens: CallHook {
    private let counts = Mutex<[String: Int]>([:])

    func before(_ call: Call) -> Fault? {
      if call.kind == .open { counts.withLock { $0[call.path, default: 0] += 1 } }
      return nil
    }
    func after(_ call: Call) {}

    func count(_ start: String) -> Int {
      counts.withLock { $0 }.filter { $0.key.hasPrefix(start) }.values.reduce(0, +)
    }
  }

  private static let count = 30
  private let files: TemporarySpool
  private let opens = Opens()
  private let spool: Spool

  init() throws {
    files = try TemporarySpool()
    let (owner, boot) = WorkerID.current()
    spool = try Spool(files.root, owner: owner, boot: boot, system: System(hook: opens))
  }

  @Test func `retry of many done jobs reads the receipts once, not for each`() throws {
    for number in 0..<Self.count {
      let text = """
        url: https://a.example/x
        verified: 2026-01-02T03:04:05Z size=1 crc32=d3d99e8b part=7
        done: 2026-01-02T03:04:05Z attempts=1 output=x\(number)

        """
      try writeFile(files.path("done/job-\(number)"), text)
    }
    var run = GestureRun(.retry, spool, isVerbose: false)
    for number in 0..<Self.count {
      let name = Array("job-\(number)".utf8)
      // A person may name one twice.
      for _ in 0..<2 { try run.run(MeantJobs.by(name, in: [spool], Gesture.retry.sources), name) }
    }
    try run.finish()
    #expect(run.isComplete && files.names("new").count == Self.count)
    #expect(opens.count("done/job-") < 10 * Self.count)
  }

  /// Another job of the name was paused with its owner's name left on, and needs the data.
  @Test func `cancel of many jobs looks once whether others need their data`() throws {
    for number in 0..<Self.count {
      try writeFile(files.path("failed/job-\(number)"), "https://a.example/x\n")
      try writeFile(files.path("partial/job-\(number).part"), [1])
    }
    try writeFile(files.path("hold/job-7:alpha.9.00000009"), "https://a.example/x\n")
    var run = GestureRun(.cancel, spool, isVerbose: false)
    try run.run(all: [.failed])
    try run.finish()
    #expect(run.isComplete && files.names("failed") == [] && files.names("partial") == ["job-7.part"])
    #expect(opens.count("hold") < 5)
  }
}
