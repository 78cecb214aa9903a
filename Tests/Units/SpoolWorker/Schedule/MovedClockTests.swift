import Glibc
import SystemPackage
import TestSupport
import Testing

@testable import Spool
@testable import SpoolWorker

/// Clocks that are wrong, and machines that sleep.
@Suite struct MovedClockTests {
  /// Attempts and receipts have the time of the spool's clock, as files have, and not of this host's.
  @Test func `a journal's times are the file system's`() throws {
    let host = MovedHost()
    host.set(by: -600)
    let fixture = try Host.$current.withValue(host) { try Fixture(kind: .fuse) }
    try fixture.write("files/a", "x")
    try fixture.files.drop("a", "https://host/a\nsize: 1\ncrc32: 8cdc1683\n# complete\n")
    let summary = try Host.$current.withValue(host) {
      try WorkerLoop.alone { try await Worker(fixture.spool, WorkerOptions()) { _ in }.runOnce() }
    }
    #expect(summary.done == 1)
    let text = try fixture.text("done/a")
    let publication = parsed(text).journal.publication
    let receipt = try #require(publication.receiptTime)
    #expect(abs(receipt.seconds - Timestamp.now().seconds) < 300, "\(text)")
  }

  /// On the way to its next attempt.
  @Test func `a sleep is no standstill`() throws {
    let host = MovedHost()
    let fixture = try Fixture()
    let job = fixture.files.path("partial/a")
    try writeFile(job, Array("https://host/a\n".utf8))
    try setModificationTime(job, secondsFromNow: 36_000)
    let turns = Counter()
    _ = try Host.$current.withValue(host) {
      try WorkerLoop.alone {
        var options = WorkerOptions()
        (options.endsWhenDone, options.longestStandstill) = (true, 900_000)
        let worker = try Worker(fixture.spool, options) { _ in }
        worker.signals = StopSignals(-1) { turns.current > 3 }
        worker.onProgress = { _ in if turns.next() == 2 { host.sleep(seconds: 1200) } }
        return try await worker.watch(stopSignals: -1)
      }
    }
    #expect(turns.current > 3)
  }

  /// Its program had two seconds of its minute.
  @Test func `a sleep takes no time from a program`() throws {
    let host = SleepyHost()
    let outcome = try Host.$current.withValue(host) {
      try ChildProcess(arguments: ["hook"], seconds: 60, stop: ChildStop()).runHere()
    }
    #expect(outcome.end == .exited(0))
  }
}

/// Sleeps while a program runs.
private final class SleepyHost: MovedHost, ChildHost, @unchecked Sendable {
  func start(_ program: ChildProcess) throws(Errno) -> any Child { Program(self) }

  private final class Program: Child {
    private let host: SleepyHost
    private var looks = 0
    private var signal: Int32 = 0
    let (output, answer, lastLine): ([UInt8], [UInt8], [UInt8]) = ([], [], [])
    var hasEnded: Bool { looks > 2 }

    init(_ host: SleepyHost) { self.host = host }

    func send(_ signal: Int32) { self.signal = signal }
    func status(waits: Bool) throws(Errno) -> Int32? { signal != 0 || hasEnded ? signal : nil }
    func take(milliseconds: Int64) -> Bool {
      looks += 1
      if looks == 1 { host.sleep(seconds: 3600) }
      return looks < 3
    }
  }
}
