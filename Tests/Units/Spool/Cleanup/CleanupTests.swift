import Glibc
import SystemPackage
import TestSupport
import Testing

@testable import Spool

@Suite struct CleanupTests {
  private static let receipt = """
    url: https://a.example/x
    verified: 2026-01-02T03:04:05Z size=1 crc32=d3d99e8b part=7
    done: 2026-01-02T03:04:05Z attempts=1 output=x

    """

  /// As of a server of files that is away, or a disk that fails.
  @Test(arguments: [Errno.staleNFSFileHandle, .socketNotConnected, .ioError])
  func `an output directory that does not answer stops nothing, and its files may be there`(errno: Errno) throws {
    let fixture = try Fixture(hook: Probe { $0.kind == .open && $0.path.hasSuffix("files") ? .fail(errno) : nil })
    try fixture.write("done/x", Self.receipt)
    try writeFile(fixture.files.path("cur/stray.part"), [1])
    var found: [String] = []
    var cleanup = Cleanup(fixture.spool) { found.append($0.place) }
    cleanup.readsJobs = true
    try cleanup.run()
    #expect(found == ["cur/stray.part"])
  }

  @Test func `a receipt that cannot be read is told, and keeps nothing else from being cleaned`() throws {
    let fixture = try Fixture(hook: Probe { $0.kind == .open && $0.path == "done/a" ? .fail(.permissionDenied) : nil })
    for name in ["a", "b"] { try fixture.write("done/\(name)", Self.receipt) }
    var found: [String] = []
    var cleanup = Cleanup(fixture.spool) { found.append("\($0.place) \($0.kind)") }
    cleanup.readsJobs = true
    try cleanup.run()
    #expect(found.sorted() == ["done/a stuck", "done/b missing"])
  }

  /// By a bad sector, or the checksum of btrfs(5). Each thing is there twice; of one, this file cannot be read.
  /// - Parameter stuck: what is told of then.
  @Test(
    arguments: [
      (.stat, "partial/p1", "partial/p1.part"), (.read, "failed/u1", "partial/u1.part"),
      (.stat, "failed/f1", "failed/f1.part"), (.read, "failed/r1.record", "failed/r1.record"),
      (.stat, "tmp/t1", "tmp/t1"), (.read, "done/d1", "done/d1"), (.stat, "done/d1", "done/d1"),
    ] as [(Call.Kind, String, String)])
  func `a damaged file is told, and keeps nothing else from being cleaned`(
    kind: Call.Kind, path: String, stuck: String
  ) throws {
    let fixture = try Fixture(hook: Probe { $0.kind == kind && $0.path == path ? .fail(.ioError) : nil })
    let failed = "failed: 2026-01-02T03:04:05Z attempt=1 class=permanent code=output-exists at=0 reason=x\n"
    for number in 1...2 {
      for name in ["partial/p\(number).part", "partial/u\(number).part", "failed/f\(number).part", "tmp/t\(number)"] {
        try writeFile(fixture.files.path(name), [1])
      }
      try fixture.write("failed/u\(number)", "https://a.example/x\n\(failed)")
      try fixture.write("failed/r\(number).record", failed)
      try setModificationTime(fixture.files.path("failed/r\(number).record"), secondsFromNow: -100)
      try fixture.write("done/d\(number)", Self.receipt)
    }
    var found: [String] = []
    var cleanup = Cleanup(fixture.spool) { found.append("\($0.place) \($0.kind)") }
    (cleanup.grace, cleanup.staleAge, cleanup.readsJobs) = (0, 0, true)
    try cleanup.run()
    let usual = (1...2).flatMap { number in
      [
        "partial/p\(number).part orphan", "partial/u\(number).part unpublished", "failed/f\(number).part orphan",
        "failed/r\(number).record record", "tmp/t\(number) stale", "done/d\(number) missing",
      ]
    }
    #expect(found.sorted() == usual.map { $0.hasPrefix("\(stuck) ") ? "\(stuck) stuck" : $0 }.sorted())
  }

  @Test func `what a job may name stays while one cannot be read, and the rest is cleaned`() throws {
    let fixture = try Fixture(hook: Probe { $0.kind == .read && $0.path == "new/x" ? .fail(.ioError) : nil })
    try fixture.write("new/x", "https://a.example/x\n")
    for directory in ["roots", "pieces"] { try fixture.makeDirectory(directory) }
    let root = NamedRoots.name(for: nowhere)
    try #require(symlink(nowhere, fixture.files.path("roots/\(root)")) == 0)
    try fixture.write("pieces/x", "")
    try setModificationTime(fixture.files.path("pieces/x"), secondsFromNow: -200_000)
    try writeFile(fixture.files.path("cur/stray.part"), [1])
    var found: [String] = []
    var cleanup = Cleanup(fixture.spool) { found.append("\($0.place) \($0.kind)") }
    cleanup.readsJobs = true
    try cleanup.run()
    #expect(found == ["roots stuck", "pieces stuck", "cur/stray.part stray"])
    #expect(fixture.names("roots") == [root] && fixture.names("pieces") == ["x"])
  }

  /// Without the receipt, the entry would count as cancelled.
  @Test func `a subscription that cannot be read keeps the receipts of its jobs, and no others`() throws {
    let fixture = try Fixture(hook: Probe { $0.kind == .read && $0.path == "standing/pod" ? .fail(.ioError) : nil })
    _ = mkdir(fixture.files.path("standing"), 0o700)
    try fixture.write("standing/pod", "url: https://a.example/l\nevery: 1h\n")
    for name in ["pod-0000000000000001", "b"] { try fixture.write("done/\(name)", Self.receipt) }
    var found: [String] = []
    var cleanup = Cleanup(fixture.spool) { found.append("\($0.place) \($0.kind)") }
    cleanup.keepDone = 0
    try cleanup.run()
    #expect(found.sorted() == ["done/b receipt", "done/pod-0000000000000001 stuck"])
  }

  /// Each look lists directories, which may be long. One job was paused with its owner's name left on.
  @Test func `the jobs of much data are looked for together`() throws {
    let probe = Probe()
    let fixture = try Fixture(hook: probe)
    for number in 0..<250 { try writeFile(fixture.files.path("partial/\(number).part"), [1]) }
    try fixture.write("hold/7:alpha.9.00000009", "https://host/a\n")
    var found = 0
    var cleanup = Cleanup(fixture.spool) { _ in found += 1 }
    cleanup.grace = 0
    try cleanup.run()
    #expect(found == 249 && fixture.names("partial") == ["7.part"])
    #expect(probe.calls.count { $0.kind == .open && $0.path == "hold" } < 10)
  }

  @Test func `a name that a month has often is archived all the same`() throws {
    let fixture = try Fixture()
    let months = ["2026-01"] + (2...110).map { "2026-01~\($0)" }
    for name in ["archive"] + months.map({ "archive/\($0)" }) {
      try fixture.makeDirectory("done/\(name)")
    }
    for path in months.map({ "archive/\($0)/x" }) + ["x"] {
      try fixture.write("done/\(path)", Self.receipt)
    }
    var cleanup = Cleanup(fixture.spool) { _ in }
    cleanup.archive = 0
    try cleanup.run()
    #expect(fixture.names("done") == ["archive"] && fixture.names("done/archive").count == 111)
  }

  @Test func `what was archived before an error is durable, and told`() throws {
    // Of the first receipt the first fails as well, because the month has no directory.
    let renames = Counter()
    let probe = Probe { $0.kind == .rename && renames.next() == 3 ? .fail(.ioError) : nil }
    let fixture = try Fixture(hook: probe)
    for name in ["a", "b"] { try fixture.write("done/\(name)", Self.receipt) }
    var found: [String] = []
    var cleanup = Cleanup(fixture.spool) { found.append("\($0.place) \($0.kind)") }
    cleanup.archive = 0
    #expect(throws: SpoolError.self) { try cleanup.run() }
    #expect(found.last == "done/archive/2026-01 archived")
    let failed = try #require(probe.calls.lastIndex { $0.kind == .rename })
    #expect(probe.calls[failed...].contains { $0.kind == .fsync && $0.path == "done/archive/2026-01" })
  }
}
