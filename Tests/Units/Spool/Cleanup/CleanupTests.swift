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
