import Glibc
import TestSupport
import Testing

@testable import Spool

/// `release`, while the worker that had the job lets go of it.
@Suite struct ReleaseTests {
  /// In `new/`, a file that a worker or its child still has open for writing would seem half written, and be left for
  /// later.
  @Test func itWaitsUntilNobodyHasTheJobOpen() throws {
    let files = try TemporarySpool()
    try writeFile(files.path("hold/a"), Array("https://host/a\n".utf8))
    let writer = open(files.path("hold/a"), O_RDWR | O_CLOEXEC)
    let looks = Counter()
    let hook = Probe { call in
      if call.kind == .lease, looks.next() == 3 { close(writer) }
      return nil
    }
    let spool = try Spool(
      files.root, owner: WorkerID(host: "alpha", process: 42, tag: 1), boot: "b", system: System(hook: hook))
    guard case .moved = try spool.perform(.release, FileName("a")) else {
      return #expect(Bool(false), "released")
    }
    // More than three where another test forks meanwhile: its child has the file open until it executes a program.
    #expect(looks.current >= 3 && files.names("new") == ["a"])
  }
}
