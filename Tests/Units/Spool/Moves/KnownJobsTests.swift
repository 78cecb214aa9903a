import Glibc
import TestSupport
import Testing

@testable import Spool

/// The jobs of a spool for one who asks for many: what was read once is not believed when it has changed.
@Suite struct KnownJobsTests {
  private let text = Array("http://h/a\n".utf8)

  private func name(_ text: String) throws -> JobName { try #require(JobName(FileName(text))) }

  @Test func `a job is found where it was`() throws {
    let fixture = try Fixture()
    for place in ["new/n", "urgent/u", "partial/p", "hold/h", "failed/f", "done/d"] {
      try writeFile(fixture.files.path(place), text)
    }
    let known = try KnownJobs(fixture.spool)
    for job in ["n", "u", "p", "h", "f", "d"] {
      let found = try #require(try known.job(named: name(job)), "\(job)")
      #expect(found.isUntouched(text) && found.request?.urls.map(\.text) == ["http://h/a"], "\(job)")
      #expect(!found.isUntouched(text + text))
    }
    #expect(try known.job(named: name("none")) == nil)
  }

  @Test func `a job that has moved since is found too, and one that is gone is not`() throws {
    let fixture = try Fixture()
    for job in ["moved", "claimed", "gone"] { try writeFile(fixture.files.path("new/\(job)"), text) }
    let known = try KnownJobs(fixture.spool)
    try fixture.move("new/moved", "done/moved")
    let claim = ClaimName.fileName(try name("claimed"), fixture.spool.owner)
    try fixture.move("new/claimed", "cur/\(claim.display)")
    try fixture.remove("new/gone")
    for job in ["moved", "claimed"] { #expect(try known.job(named: name(job))?.request?.urls.count == 1, "\(job)") }
    #expect(try known.job(named: name("gone")) == nil)
    // Read now, the claim counts by its job's name.
    #expect(try KnownJobs(fixture.spool).job(named: name("claimed"))?.request?.urls.count == 1)
  }

  @Test func `a job whose receipt was archived since is found`() throws {
    let fixture = try Fixture()
    try writeFile(fixture.files.path("done/a"), text)
    let known = try KnownJobs(fixture.spool)
    for directory in ["done/archive", "done/archive/2026-11"] {
      try fixture.makeDirectory(directory)
    }
    try fixture.move("done/a", "done/archive/2026-11/a")
    #expect(try known.job(named: name("a"))?.request?.urls.map(\.text) == ["http://h/a"])
  }

  @Test func `of two jobs of one name the one that is done counts`() throws {
    let fixture = try Fixture()
    try fixture.write("new/a", "http://h/other\n")
    try writeFile(fixture.files.path("done/a"), text)
    #expect(try KnownJobs(fixture.spool).job(named: name("a"))?.isUntouched(text) == true)
  }

  @Test func `a job that was dropped since is known when it is said`() throws {
    let fixture = try Fixture()
    var known = try KnownJobs(fixture.spool)
    try writeFile(fixture.files.path("new/a"), text)
    #expect(try known.job(named: name("a")) == nil)
    known.insert(try name("a"))
    #expect(try known.job(named: name("a"))?.isUntouched(text) == true)
  }
}
