import Glibc
import Synchronization
import SystemPackage
import TestSupport
import Testing

@testable import Spool

/// How the jobs of a standing order get into `new/`, also while its worker may lose the order.
@Suite struct OrderMovesTests {
  private static let text = "url: http://h/x\n"

  private func jobs(_ count: Int) throws -> [(text: String, name: JobName)] {
    try (0..<count).map { (Self.text, try #require(JobName(FileName("order-\($0)")))) }
  }

  /// A worker that is frozen before its last rename, until another one has dropped the same jobs and they are done.
  @Test(arguments: [1, 40])
  func `a worker that was frozen while it dropped adds no second job`(count: Int) throws {
    let fixture = try Fixture()
    let jobs = try jobs(count)
    let successor = try fixture.another()
    let frozen = try fixture.another(
      host: "beta",
      hook: Probe.once(.rename, " new/order-\(count - 1)") {
        #expect(throws: Never.self) { _ = try Drops(successor).dropMissing(jobs) {} }
        for name in fixture.names("new") {
          #expect(rename(fixture.files.path("new/\(name)"), fixture.files.path("done/\(name)")) == 0)
        }
        return nil
      })
    #expect(throws: SpoolError.self) { _ = try Drops(frozen).dropMissing(jobs) {} }
    #expect(fixture.names("new") == [] && fixture.names("tmp") == [])
    #expect(fixture.names("done").count == count)
  }

  @Test(arguments: [1, 40])
  func `a worker that has lost the order drops nothing`(count: Int) throws {
    let fixture = try Fixture()
    let written = Mutex(0)
    #expect(throws: SpoolError.self) {
      _ = try Drops(fixture.spool).dropMissing(try jobs(count)) { () throws(SpoolError) in
        written.withLock { $0 = fixture.names("tmp").count }
        throw SpoolError(call: .rename, path: "cur/order", errno: .noSuchFileOrDirectory)
      }
    }
    #expect(written.withLock { $0 } == count, "asked when the jobs are written")
    #expect(fixture.names("new") == [] && fixture.names("tmp") == [])
  }

  /// Two lists may know their entries by the same words, and their orders may have had the same name.
  @Test func `a job of the name for another file is of another list`() throws {
    let fixture = try Fixture()
    let name = try #require(JobName(FileName("order-0")))
    #expect(try Drops(fixture.spool).dropMissing([("url: http://h/a.mp3?sig=1\n", name)]) {} == 1)
    #expect(rename(fixture.files.path("new/order-0"), fixture.files.path("done/order-0")) == 0)
    #expect(try Drops(fixture.spool).dropMissing([("url: http://h/a.mp3?sig=2\n", name)]) {} == 0, "another signature")
    #expect(try Drops(fixture.spool).dropMissing([("url: http://h/b.mp3?sig=1\n", name)]) {} == 1)
    #expect(fixture.names("new") == ["order-0"])
  }

  /// As of `feed?show=a` and `feed?show=b`, whose orders had the same name.
  @Test func `a job of another list is the same only if its query is`() throws {
    let fixture = try Fixture()
    let name = try jobName("order-0")
    func drop(of show: String, _ query: String) throws -> Int {
      let text = JobText.ofList("http://h/feed?show=\(show)", "url: http://h/get?\(query)\n")
      return try Drops(fixture.spool).dropMissing([(text, name)]) {}
    }
    #expect(try drop(of: "a", "show=a") == 1)
    #expect(rename(fixture.files.path("new/order-0"), fixture.files.path("done/order-0")) == 0)
    #expect(try drop(of: "a", "show=a&sig=2") == 0, "another signature")
    #expect(try drop(of: "b", "show=a") == 0, "the list has moved")
    #expect(try drop(of: "b", "show=b") == 1)
  }

  /// Whoever may drop jobs can make it, and no worker can remove it.
  @Test func `a directory in tmp that is called as one of its drops does no harm`() throws {
    let fixture = try Fixture()
    let name = fixture.files.path("tmp/order-0:a.b.c.d")
    try #require(mkdir(name, 0o700) == 0)
    try writeFile("\(name)/x", [])
    #expect(try Drops(fixture.spool).dropMissing(try jobs(1)) {} == 1)
    #expect(fixture.names("new") == ["order-0"])
  }

  @Test(
    .enabled("needs root, to be several users") { try await Need.users.isMet() },
    arguments: ["a job that must fail", "unreadable", "a directory"])
  func `another user's job is none of the order's`(what: String) throws {
    let fixture = try Fixture()
    let name = "order-0123456789abcdef"
    let path = fixture.files.path("new/\(name)")
    if what == "a directory" {
      try #require(mkdir(path, 0o700) == 0)
    } else {
      try writeFile(path, Array("\(Self.text)size: 1\n".utf8))
      try #require(chmod(path, what == "unreadable" ? 0 : 0o640) == 0)
    }
    try #require(chown(path, 61_002, 0) == 0)
    #expect(try Drops(fixture.spool).dropMissing([(Self.text, jobName(name))]) {} == 1)
    #expect(Set(fixture.names("new")) == [name, "\(name)~2"])
    guard what != "a directory" else { return }
    // When a worker has it, it has another name.
    #expect(unlink(fixture.files.path("new/\(name)~2")) == 0)
    let claim = try fixture.claim(name, secondsLater: 60)
    #expect(claim.job.fileName.display == "\(name)~2")
    #expect(try Drops(fixture.spool).dropMissing([(Self.text, jobName(name))]) {} == 1)
  }

  @Test func `only what is missing is dropped, and other files in tmp stay`() throws {
    let fixture = try Fixture()
    _ = try Drops(fixture.spool).dropMissing(try jobs(2)) {}
    try fixture.write("tmp/order-2:alpha.1.0000000a", Self.text)
    #expect(try Drops(fixture.spool).dropMissing(try jobs(3)) {} == 1)
    #expect(Set(fixture.names("new")) == ["order-0", "order-1", "order-2"])
    #expect(fixture.names("tmp") == ["order-2:alpha.1.0000000a"], "a claim's copy")
  }
}
