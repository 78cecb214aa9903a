import Glibc
import SystemPackage
import TestSupport
import Testing

@testable import Spool

/// Reading the archive while a person removes what is in it.
@Suite struct ArchiveTests {
  /// Two months with a receipt each, one of which `rm -r` removes at its first call of a kind.
  private func fixture(removedAt kind: Call.Kind?) throws -> Fixture {
    let fixture = try Fixture(watching: { files in
      guard let kind else { return Probe() }
      return Probe.meanwhile(kind, "done/archive/2026-01") {
        _ = unlink(files.path("done/archive/2026-01/a"))
        _ = rmdir(files.path("done/archive/2026-01"))
      }
    })
    for path in ["done/archive", "done/archive/2026-01", "done/archive/2026-02"] { try fixture.makeDirectory(path) }
    for path in ["2026-01/a", "2026-02/b"] { try fixture.write("done/archive/\(path)", "https://host/a\n") }
    return fixture
  }

  @Test(arguments: [(.open, ["b"]), (.list, ["b"]), (nil, ["a", "b"])] as [(Call.Kind?, [String])])
  func `a month that goes while it is read has come to its end`(kind: Call.Kind?, found: [String]) throws {
    let fixture = try fixture(removedAt: kind)
    var names: [String] = []
    try Archive(fixture.spool).eachPath { (_, name) in names.append(name.display) }
    #expect(names == found)
  }

  @Test func `what is not there for the reader is the reader's`() throws {
    let fixture = try fixture(removedAt: nil)
    #expect(throws: SpoolError.self) {
      try Archive(fixture.spool).eachPath { (path, _) throws(SpoolError) in
        throw SpoolError(call: .open, path: path.display, errno: .noSuchFileOrDirectory)
      }
    }
  }
}
