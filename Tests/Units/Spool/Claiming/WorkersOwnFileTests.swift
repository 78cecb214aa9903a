import Glibc
import Synchronization
import SystemPackage
import TestSupport
import Testing

@testable import Spool

/// Whose time a claim's file may get, and says: only a file that workers alone change is the workers' own.
@Suite struct WorkersOwnFileTests {
  private static let job = "https://host/a\n"

  /// With its old time it would look like a dead worker's, until a copy has taken its place.
  @Test(arguments: [Errno.permissionDenied, .wouldBlock])
  func `a job that cannot be opened for writing is claimed with a sign of life`(errno: Errno) throws {
    let fixture = try Fixture()
    let path = fixture.files.path("partial/x")
    try writeFile(path, Array(Self.job.utf8))
    try setModificationTime(path, secondsFromNow: -1000)
    let openings = Counter()
    let age = Mutex<Int?>(nil)
    let spool = try fixture.another(
      hook: Probe { call in
        if call.kind == .open, call.path == "partial/x", openings.next() == 2 { return .fail(errno) }
        if call.kind == .rename, call.path.hasPrefix("partial/x ") {
          age.withLock { $0 = fileStatus(path).map { time(nil) - $0.st_mtim.tv_sec } }
        }
        return nil
      })
    #expect(try spool.outcome("x", from: .partial).claim().isOpen)
    #expect(age.withLock { $0 ?? .max } < 500)
  }

  /// As on NFS, where a descriptor for reading shares its lock: the owner has not made its copy yet.
  @Test(arguments: [false, true])
  func `a shared lock of a file with another name is no proof`(hasOtherName: Bool) throws {
    let fixture = try Fixture()
    let name = FileName("x:alpha.7.00000009")
    let path = fixture.files.path("cur/\(name.display)")
    try writeFile(path, Array(Self.job.utf8))
    if hasOtherName { try #require(link(path, fixture.files.path("files/other")) == 0) }
    for (later, label) in [(0, hasOtherName ? "leased" : "claimed"), (100, "claimed")] {
      let spool = try fixture.another(hook: Probe.once(.lock, "cur/x:alpha.7") { .fail(.badFileDescriptor) })
      if later > 0, !hasOtherName { break }
      #expect(try Claims(spool).claim(name, from: .cur, now: .now() + Int64(later)).label == label)
    }
  }

  /// It may be another user's, whose time only that user or root may set.
  @Test func `an edit without an exchange of names touches no file that others have`() throws {
    let fixture = try Fixture()
    let path = fixture.files.path("new/x")
    try writeFile(path, Array(Self.job.utf8))
    try #require(link(path, fixture.files.path("files/other")) == 0)
    let spool = try fixture.another(
      hook: Probe { call in
        if call.kind == .utimens, call.path == "new/x" { return .fail(.permissionDenied) }
        return call.kind == .rename && call.path.hasPrefix("tmp/") && call.path.hasSuffix(" new/x")
          ? .fail(.invalidArgument) : nil
      })
    let place = try #require(try JobSearch(spool).places(of: FileName("x")).first)
    _ = try JobEditor(spool).edit(place) { $0 + Array("# mine\n".utf8) }
    #expect(try fixture.text("new/x") == Self.job + "# mine\n" && fixture.text("files/other") == Self.job)
  }
}
