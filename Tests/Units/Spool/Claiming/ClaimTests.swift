import Glibc
import SystemPackage
import TestSupport
import Testing

@testable import Spool

/// What a claim's owner does with it, and what persons do behind its back.
@Suite struct ClaimTests: ClaimedJob {
  @Test func linesAreAppended() throws {
    let (fixture, claim) = try claimed()
    try claim.append(mark(1))
    try claim.append(mark(2))
    #expect(try fixture.text(own) == url + "checkpoint: 1 crc32=00000000\ncheckpoint: 2 crc32=00000000\n")
    #expect(claim.length == Int64(try fixture.text(own).utf8.count))
  }

  /// The disk fills up in the middle of a line: what got there is taken back, and the next line stands alone.
  @Test(arguments: [Errno.noSpace, .ioError, .diskQuotaExceeded])
  func aFailedLineLeavesNothing(errno: Errno) throws {
    let hook = Probe.writing("cur/a", bytes: 5, then: errno)
    let (fixture, claim) = try claimed(hook: hook)
    let error = #expect(throws: SpoolError.self) { try claim.append(mark(1)) }
    #expect(error?.errno == errno && error?.isDiskFull == (errno != .ioError))
    #expect(try fixture.text(own) == url)
    try claim.append(mark(2))
    #expect(try fixture.text(own) == url + "checkpoint: 2 crc32=00000000\n")
  }

  /// Who may write to `tmp/` may have seen the worker's tag.
  @Test func namesThatAreTakenInTmp() throws {
    let fixture = try Fixture()
    try fixture.files.drop("a", url)
    // Then the claim is a copy.
    try fixture.link("new/a", "hold/b")
    for name in ["a", "a.part", ".clock"] { try fixture.write("tmp/\(name):alpha.42.00000001", "") }
    _ = try fixture.spool.fileSystemTime()
    let claim = try fixture.claim("a", secondsLater: 100)
    #expect(try fixture.text(own) == url && fixture.names("tmp").count == 2)
    let part = try #require(try PartFile.open(claim.job, in: fixture.spool))
    try part.append([1, 2, 3])
    _ = try part.rebuilding(to: 3, owner: claim.job).run()
    #expect(try fixture.bytes("partial/a.part") == [1, 2, 3])
  }

  private func started(_ worker: String) -> String {
    "started: 2026-01-02T03:04:05Z attempt=1 worker=\(worker) boot=b mirror=1 url=https://a\n"
  }

  @Test func ownership() throws {
    do {
      let (fixture, claim) = try claimed()
      #expect(try claim.ownership() == .ours)
      try fixture.move(own, "hold/a")
      #expect(try claim.ownership() == .moved)
      try fixture.write(own, url)
      #expect(try claim.ownership() == .moved, "another file bears its name")
      try fixture.remove("hold/a")
      #expect(try claim.ownership() == .removed)
      for place in ["new/a", "failed/a"] { try fixture.write(place, url) }
      #expect(try claim.ownership() == .removed, "others of its name")
      let begun = url + started("alpha.42.00000001")
      for place in ["hold/a", "hold/a:alpha.42.00000001", "partial/a", own] {
        try fixture.write(place, begun)
        #expect(try claim.ownership() == .moved, "\(place), saved by an editor in a new inode")
        try fixture.remove(place)
      }
      #expect(try claim.ownership() == .removed)
    }
    let (fixture, claim) = try claimed()
    try fixture.remove(own)
    try fixture.write("cur/b:beta.1.00000009", url)
    #expect(try claim.ownership() == .removed)
    try fixture.write("cur/a:beta.1.00000009", url)
    #expect(try claim.ownership() == .takenOver, "in a new inode")
  }

  /// The successor has the job, or has had it, wherever it is now.
  @Test(arguments: ["cur/a:beta.1.00000009", "partial/a", "failed/a", "done/a", "hold/a", "hold/a:beta.1.00000009"])
  func takenOver(place: String) throws {
    let (fixture, claim) = try claimed()
    try fixture.move(own, place)
    let text = url + started("alpha.42.00000001") + started("beta.1.00000009")
    try fixture.write(place, text)
    #expect(try claim.ownership() == .takenOver)
    // The successor continues in a new inode.
    try fixture.remove(place)
    try fixture.write(place, text)
    #expect(try claim.ownership() == .takenOver)
  }

  /// An older job of the name, by another worker.
  @Test func cancelledBesideADoneJobOfItsName() throws {
    let (fixture, claim) = try claimed()
    try fixture.write("done/a", url + started("beta.1.00000009"))
    try fixture.remove(own)
    #expect(try claim.ownership() == .removed)
  }

  /// Another job of the name was dropped since, and another worker has begun with it.
  @Test(arguments: ["cur/a:beta.1.00000009", "partial/a", "failed/a", "hold/a", "hold/a:beta.1.00000009"])
  func cancelledBesideANewJobOfItsName(place: String) throws {
    let (fixture, claim) = try claimed()
    try claim.append(.started(.now(), attempt: 1, worker: fixture.spool.owner, boot: "b", mirror: 1, url: "https://a"))
    try fixture.remove(own)
    try fixture.write(place, url + started("beta.1.00000009"))
    #expect(try claim.ownership() == .removed)
  }

  /// Where another host's changes count, the number of names that this kernel knows proves nothing.
  @Test func fromAnotherHost() throws {
    let fixture = try Fixture(kind: .fuse)
    try fixture.files.drop("a", url)
    let claim = try fixture.claim("a", secondsLater: 100)
    // Kept, so that the file has a name that the spool does not.
    try fixture.link(own, "tmp/kept")
    try fixture.move(own, "hold/a")
    #expect(try claim.ownership() == .moved)
    try fixture.remove("hold/a")
    #expect(try claim.ownership() == .removed)
  }

  /// Before this worker has begun: the journal is an earlier worker's.
  @Test func heldBeforeItWasBegun() throws {
    let fixture = try Fixture()
    try fixture.write("partial/a", url + started("beta.1.00000009"))
    let claim = try fixture.claim("a", from: .partial, secondsLater: 100)
    try fixture.move(own, "hold/a")
    #expect(try claim.ownership() == .moved)
  }

  @Test func parkingSaysWhen() throws {
    let (fixture, claim) = try claimed()
    let due = Timestamp.now() + 3600
    try claim.park(until: due)
    #expect(fixture.files.places(of: "a") == ["partial/a"])
    #expect(fixture.status("partial/a").map { Int64($0.st_mtim.tv_sec) } == due.seconds)
    #expect(try fixture.claim("a", from: .partial, secondsLater: 3600).origin == .partial, "its lock is free again")
  }

  /// Writes data that the job's journal names.
  private func noteData(of claim: Claim, _ bytes: [UInt8], _ fixture: Fixture) throws {
    let path = fixture.files.path("partial/a.part")
    try writeFile(path, bytes)
    let version = RemoteVersion(mirror: 1, size: nil, etag: nil, modified: nil)
    try claim.append(.response(version, at: 0, part: UInt64(#require(fileStatus(path)).st_ino)))
  }

  /// Nothing that stands anywhere is replaced by a move; the data goes along.
  @Test func movesAreNumbered() throws {
    let (fixture, claim) = try claimed()
    try fixture.write("failed/a", "older")
    try fixture.write("failed/a~2", "old")
    try noteData(of: claim, [1, 2, 3], fixture)
    try claim.giveUp()
    #expect(fixture.names("failed") == ["a", "a~2", "a~3"])
    #expect(try fixture.text("failed/a") == "older" && fixture.text("failed/a~3").hasPrefix(url))
    #expect(fixture.names("partial") == ["a~3.part"])
    #expect(claim.job.display == "a~3")
  }

  /// Somebody takes the number between the look and the move: the data goes on to the next.
  @Test func aNumberThatIsTakenMeanwhile() throws {
    let (fixture, claim) = try claimed { files in
      Probe.meanwhile(.rename, " failed/a~2") { try writeFile(files.path("failed/a~2"), []) }
    }
    try fixture.write("failed/a", "older")
    try noteData(of: claim, [1, 2, 3], fixture)
    try claim.giveUp()
    #expect(fixture.names("failed") == ["a", "a~2", "a~3"])
    #expect(fixture.names("partial") == ["a~3.part"])
  }

  /// A job that is done has no data: what bears its name is another worker's, whose job got the name while there was
  /// none.
  @Test func anothersDataStaysWhenAJobIsDone() throws {
    let (fixture, claim) = try claimed()
    try fixture.write("done/a", "older")
    try writeFile(fixture.files.path("partial/a.part"), [1, 2, 3])
    let other = open(fixture.files.path("partial/a.part"), O_RDWR | O_CLOEXEC)
    defer { close(other) }
    #expect(flock(other, LOCK_EX | LOCK_NB) == 0)
    try claim.removeData()
    #expect(fixture.names("partial") == ["a.part"])
    #expect(flock(other, LOCK_UN) == 0)
    try claim.removeData()
    #expect(fixture.names("partial") == [])
    try claim.finish()
    #expect(fixture.names("done") == ["a", "a~2"])
  }

  /// While this job had no data, another one got its name, began, and waits now: nobody has its data locked.
  @Test func theDataOfAWaitingNamesakeStays() throws {
    let (fixture, claim) = try claimed()
    try fixture.write("partial/a", "https://host/other\n")
    try writeFile(fixture.files.path("partial/a.part"), [1, 2, 3])
    try claim.removeData()
    #expect(try claim.dataStatus() == nil)
    try claim.park(until: .now())
    #expect(fixture.names("partial") == ["a", "a.part", "a~2"])
  }

  @Test func aNumberIsFreeOnlyIfItsDataIs() throws {
    let (fixture, claim) = try claimed()
    try fixture.write("failed/a", "")
    try writeFile(fixture.files.path("partial/a~2.part"), [9])
    try claim.giveUp()
    #expect(fixture.names("failed") == ["a", "a~3"])
    #expect(try fixture.bytes("partial/a~2.part") == [9])
  }

  /// A file system without RENAME_NOREPLACE: link(2) refuses an existing name everywhere.
  @Test(arguments: [Errno.invalidArgument, .noFunction])
  func movesWithoutNoReplace(errno: Errno) throws {
    let hook = Probe { $0.kind == .rename && $0.path.contains(" done/") ? .fail(errno) : nil }
    let (fixture, claim) = try claimed(hook: hook)
    try fixture.write("done/a", "older")
    try claim.finish()
    #expect(fixture.names("done") == ["a", "a~2"] && fixture.names("cur") == [])
    #expect(try fixture.text("done/a") == "older" && fixture.text("done/a~2") == url)
  }

  @Test func aMovedClaimIsNotMovedAgain() throws {
    let (fixture, claim) = try claimed()
    try fixture.move(own, "hold/a")
    let error = #expect(throws: SpoolError.self) { try claim.finish() }
    #expect(error?.errno == .noSuchFileOrDirectory)
    #expect(fixture.files.places(of: "a") == ["hold/a"])
  }

  /// After its last move a claim's descriptor is closed, and its number may be another job's file: no line may go
  /// there.
  @Test func aFinishedClaimWritesNowhere() throws {
    let (fixture, claim) = try claimed()
    try claim.finish()
    let bystanders = (0..<64).map { index in
      open(fixture.files.path("tmp/bystander-\(index)"), O_RDWR | O_CREAT | O_CLOEXEC, 0o600)
    }
    defer { for descriptor in bystanders { close(descriptor) } }
    #expect(throws: SpoolError.self) { try claim.append(mark(1)) }
    for index in bystanders.indices { #expect(try fixture.bytes("tmp/bystander-\(index)") == []) }
    #expect(try fixture.text("done/a") == url)
  }
}

extension Probe {
  /// Lets the first write to a path through for some bytes only, and fails the one that goes on.
  static func writing(_ part: String, bytes: Int, then errno: Errno) -> Probe {
    let seen = Counter()
    return Probe { call in
      guard call.kind == .write, call.path.contains(part) else { return nil }
      switch seen.next() {
      case 1: return .short(bytes)
      case 2: return .fail(errno)
      default: return nil
      }
    }
  }
}
