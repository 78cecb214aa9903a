import Glibc
import SystemPackage
import TestSupport
import Testing

@testable import Spool

/// Jobs that somebody is still writing (INTERNALS.md, invariant 11).
@Suite struct HalfWrittenTests {
  private let text = Array("https://host/a\n".utf8)

  /// A writer that has it open keeps it, however long it takes, even though what is there would be a valid job.
  @Test(arguments: [O_WRONLY, O_RDWR, O_WRONLY | O_APPEND])
  func anOpenWriterKeepsIt(flags: Int32) throws {
    let fixture = try Fixture()
    let path = fixture.files.path("new/a")
    try writeFile(path, text)
    let writer = open(path, flags | O_CLOEXEC)
    try #require(writer >= 0)
    for secondsLater in [0, 60, 1_000_000] as [Int64] {
      #expect(try fixture.outcome("a", secondsLater: secondsLater).label == "unfinished")
    }
    #expect(fixture.files.places(of: "a") == ["new/a"])
    close(writer)
    #expect(try fixture.outcome("a").label == "claimed")
  }

  /// A lease is granted there while another host writes.
  @Test func whereALeaseIsNotBelievedItHasToSettle() throws {
    let fixture = try Fixture(kind: .fuse)
    try writeFile(fixture.files.path("new/a"), text)
    let status = try #require(fixture.status("new/a"))
    let changed = Int64(status.st_ctim.tv_sec)
    func outcome(_ seconds: Int64) throws -> ClaimOutcome {
      try fixture.spool.outcome("a", at: Timestamp(seconds: changed + seconds))
    }
    #expect(try outcome(0).label == "unfinished")
    #expect(try outcome(FileStatus.settlingTime - 1).label == "unfinished")
    let claim = try outcome(FileStatus.settlingTime).claim()
    // Later still, they write to a file that is nobody's.
    let late = try #require(fixture.status("cur/a:alpha.42.00000001"))
    #expect(late.st_ino != status.st_ino)
    #expect(try claim.ownership() == .ours)
  }

  /// Our own droppers say it; a job that only begins so is no sign.
  @Test func aJobThatSaysThatItIsComplete() throws {
    let fixture = try Fixture(kind: .fuse)
    try fixture.drop("https://host/a\n", as: "a")
    #expect(try fixture.text("new/a") == "https://host/a\n# complete\n")
    let inode = fixture.status("new/a")?.st_ino
    let claim = try fixture.claim("a")
    #expect(fixture.status("cur/a:alpha.42.00000001")?.st_ino == inode, "nobody writes: no copy needed")
    #expect(try claim.ownership() == .ours)
    try fixture.write("new/b", "# complete\nhttps://host/a\n")
    #expect(try fixture.outcome("b").label == "unfinished")
    let local = try Fixture()
    try local.drop("https://host/a\n", as: "a")
    #expect(try local.text("new/a") == "https://host/a\n")
  }

  /// An NFS server may refuse a lease although nobody writes, for a minute.
  @Test func whereARefusalIsNotBelievedItHasToSettle() throws {
    let refusing = Probe { $0.kind == .lease ? .fail(.resourceTemporarilyUnavailable) : nil }
    let fixture = try Fixture(hook: refusing, kind: FileSystemKind(type: 0x6969))
    try fixture.drop("https://host/a\n", as: "complete")
    #expect(try fixture.outcome("complete").label == "claimed")
    try writeFile(fixture.files.path("new/a"), text)
    let status = try #require(fixture.status("new/a"))
    let settled = Timestamp(seconds: Int64(status.st_ctim.tv_sec) + FileStatus.settlingTime)
    guard case .unfinished(.unsettled, settled.seconds) = try fixture.outcome("a") else {
      throw Unexpected("not unsettled")
    }
    let claim = try fixture.spool.outcome("a", at: settled).claim()
    #expect(claim.identity.inode != status.st_ino, "its writer may be late")
    let local = try Fixture(hook: refusing)
    try writeFile(local.files.path("new/a"), text)
    #expect(try local.outcome("a", secondsLater: 100).label == "unfinished")
  }

  @Test func whereALeaseIsNotBelievedAWriterIsStillSeen() throws {
    let fixture = try Fixture(kind: .fuse)
    try writeFile(fixture.files.path("new/a"), text)
    let writer = open(fixture.files.path("new/a"), O_WRONLY | O_CLOEXEC)
    defer { close(writer) }
    #expect(try fixture.outcome("a", secondsLater: 100).label == "unfinished")
  }

  /// NFS gives an exclusive lock only by a descriptor that is open for writing (flock(2)).
  @Test(arguments: ["new", "partial"])
  func exclusiveLocksThatNeedAWriter(state: String) throws {
    let fixture = try Fixture(hook: Probe.once(.lock, "\(state)/a") { .fail(.badFileDescriptor) })
    try writeFile(fixture.files.path("\(state)/a"), text)
    try setModificationTime(fixture.files.path("\(state)/a"), secondsFromNow: -100)
    let claim = try fixture.outcome("a", from: state == "new" ? .new : .partial).claim()
    let other = open(fixture.files.path("cur/a:alpha.42.00000001"), O_RDONLY | O_CLOEXEC)
    defer { close(other) }
    #expect(try flock(other, LOCK_SH | LOCK_NB) == -1 && claim.holdsLock(), "it has the lock alone")
  }

  /// The shared lock that is taken instead is seen by whoever wants the file for itself.
  @Test func aSharedLockExcludesAsWell() throws {
    let fixture = try Fixture(hook: Probe.once(.lock, "new/a") { .fail(.badFileDescriptor) })
    try writeFile(fixture.files.path("new/a"), text)
    let other = open(fixture.files.path("new/a"), O_RDONLY | O_CLOEXEC)
    defer { close(other) }
    try #require(flock(other, LOCK_EX | LOCK_NB) == 0)
    #expect(try fixture.outcome("a").label == "unfinished")
    #expect(fixture.files.places(of: "a") == ["new/a"])
  }

  @Test func aReaderDoesNot() throws {
    let fixture = try Fixture()
    try writeFile(fixture.files.path("new/a"), text)
    let reader = open(fixture.files.path("new/a"), O_RDONLY | O_CLOEXEC)
    defer { close(reader) }
    #expect(try fixture.outcome("a").label == "claimed")
  }

  /// Where leases tell nothing (another user's file, some network file systems) only age does.
  @Test(arguments: [Errno.invalidArgument, .permissionDenied])
  func withoutLeasesItHasToSettle(errno: Errno) throws {
    let fixture = try Fixture(hook: Probe { $0.kind == .lease ? .fail(errno) : nil })
    try writeFile(fixture.files.path("new/a"), text)
    // An old mtime, as cp -p gives it, says nothing: ctime is what a writer cannot set back.
    try setModificationTime(fixture.files.path("new/a"), secondsFromNow: -10_000)
    #expect(try fixture.outcome("a").label == "unfinished")
    let changed = Int64(try #require(fixture.status("new/a")).st_ctim.tv_sec)
    func label(_ seconds: Int64) throws -> String {
      try fixture.spool.outcome("a", at: Timestamp(seconds: changed + seconds)).label
    }
    #expect(try label(FileStatus.settlingTime - 1) == "unfinished")
    #expect(try label(FileStatus.settlingTime) == "claimed")
  }

  /// Kept from elsewhere, or of a clock that is wrong: it says nothing of a writer. A little ahead a clock may be.
  @Test(arguments: [9, 3600, 400 * 86_400])
  func aTimeInTheFutureSaysNothing(ahead: Int) throws {
    let fixture = try Fixture(hook: Probe { $0.kind == .lease ? .fail(.invalidArgument) : nil })
    try writeFile(fixture.files.path("new/a"), text)
    try setModificationTime(fixture.files.path("new/a"), secondsFromNow: ahead)
    let changed = Int64(try #require(fixture.status("new/a")).st_ctim.tv_sec)
    let later = Timestamp(seconds: changed + FileStatus.settlingTime)
    let label = try fixture.spool.outcome("a", at: later).label
    #expect(label == (ahead == 9 ? "unfinished" : "claimed"))
  }

  @Test(arguments: ["https://host/a", "", "url: https://host/a\nsize: 12", "# only\n#"])
  func withoutItsLastNewline(_ cut: String) throws {
    let fixture = try Fixture()
    try fixture.write("new/a", cut)
    let changed = Int64(try #require(fixture.status("new/a")).st_ctim.tv_sec)
    let young = try fixture.spool.outcome("a", at: Timestamp(seconds: changed + FileStatus.settlingTime - 1))
    guard case .unfinished(_, changed + FileStatus.settlingTime) = young else {
      throw Unexpected("not looked at again when it has rested: \(young)")
    }
    #expect(fixture.files.places(of: "a") == ["new/a"])
    #expect(try fixture.text("new/a") == cut)

    let old = try fixture.spool.outcome("a", at: Timestamp(seconds: changed + FileStatus.settlingTime))
    #expect(old.defect?.reason.contains(cut.isEmpty ? "empty" : "newline") == true, "\(old.label)")
    #expect(fixture.files.places(of: "a") == ["failed/a"])
    let failed = try #require(try fixture.files.lines("failed/a").last)
    #expect(failed.key == "failed" && failed["code"] == "malformed" && failed["class"] == "permanent")
    let separator = cut.isEmpty ? "" : "\n"
    #expect(try fixture.text("failed/a").hasPrefix(cut + separator + "failed: "), "what they wrote is still there")
  }

  /// Comes the rest in time, it is a job.
  @Test func theRestMayStillCome() throws {
    let fixture = try Fixture()
    try fixture.write("new/a", "https://host/a.b")
    #expect(try fixture.outcome("a").label == "unfinished")
    try fixture.write("new/a", "https://host/a.bin\n")
    #expect(try fixture.claim("a").text.request.urls.map(\.text) == ["https://host/a.bin"])
  }
}
