import Glibc
import Synchronization
import TestSupport
import Testing

@testable import Spool

/// A person's move by link and unlink that ended between the two: the job has two names, and remains one job.
@Suite struct HalfMovedTests {
  private func halfMoved(_ from: String, _ to: String) throws -> Fixture {
    let fixture = try Fixture()
    try writeFile(fixture.files.path("\(from)/a"), Array("http://host/a\n".utf8))
    try #require(link(fixture.files.path("\(from)/a"), fixture.files.path("\(to)/a")) == 0)
    return fixture
  }

  /// Whichever way it went, the job stays paused.
  @Test(arguments: [Directory.new, .urgent, .partial]) func `between a waiting job and hold`(from: Directory) throws {
    let fixture = try halfMoved(from.rawValue, "hold")
    guard case .unavailable = try fixture.spool.claim(FileName("a"), from: from, now: .now()) else {
      Issue.record("claimed")
      return
    }
    #expect(fixture.files.places(of: "a") == ["hold/a"])
  }

  @Test func `a retry`() throws {
    let fixture = try halfMoved("failed", "new")
    guard case .claimed = try fixture.spool.claim(FileName("a"), from: .new, now: .now()) else {
      Issue.record("not claimed")
      return
    }
    #expect(fixture.files.names("failed") == [] && fixture.files.names("new") == [])
  }

  @Test func `the same command again completes it`() throws {
    let fixture = try halfMoved("new", "hold")
    fixture.spool.lacksNoReplace.store(true, ordering: .relaxed)
    guard case .moved = try fixture.spool.perform(.hold, FileName("a")) else {
      Issue.record("not moved")
      return
    }
    #expect(fixture.files.places(of: "a") == ["hold/a"])
  }
}
