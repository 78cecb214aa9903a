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
    let fixture = try Fixture(
      hook: Probe { $0.kind == .open && $0.path.hasSuffix("files") ? .fail(errno) : nil })
    try writeFile(fixture.files.path("done/x"), Array(Self.receipt.utf8))
    try writeFile(fixture.files.path("cur/stray.part"), [1])
    var found: [String] = []
    var cleanup = Cleanup(fixture.spool) { found.append($0.place) }
    cleanup.readsJobs = true
    try cleanup.run()
    #expect(found == ["cur/stray.part"])
  }

  @Test func `a receipt that cannot be read is told, and keeps nothing else from being cleaned`() throws {
    let fixture = try Fixture(
      hook: Probe { $0.kind == .open && $0.path == "done/a" ? .fail(.permissionDenied) : nil })
    for name in ["a", "b"] { try writeFile(fixture.files.path("done/\(name)"), Array(Self.receipt.utf8)) }
    var found: [String] = []
    var cleanup = Cleanup(fixture.spool) { found.append("\($0.place) \($0.kind)") }
    cleanup.readsJobs = true
    try cleanup.run()
    #expect(found.sorted() == ["done/a stuck", "done/b missing"])
  }
}
