import Glibc
import SystemPackage
import TestSupport
import Testing

@testable import Spool

/// Claims of workers that are gone, and of those that are not.
@Suite struct TakeOverTests {
  private let job =
    "https://host/a\nstarted: 2026-01-01T00:00:00Z attempt=1 worker=alpha.1.00000009 boot=b mirror=1 url=u\n"

  private func leave(_ name: String, in fixture: Fixture, _ text: String? = nil) throws {
    try fixture.write("cur/\(name)", text ?? job)
  }

  @Test func aDeadNeighboursClaimIsTakenAtOnce() throws {
    let fixture = try Fixture()
    try leave("a:alpha.1.00000009", in: fixture)
    let claim = try fixture.claim("a:alpha.1.00000009", from: .cur)
    #expect(claim.job.display == "a" && claim.origin == .cur)
    #expect(fixture.names("cur") == ["a:alpha.42.00000001"])
  }

  @Test(arguments: ["alpha", "beta"])
  func aLiveOneNever(host: String) throws {
    let fixture = try Fixture()
    try fixture.files.drop("a", job)
    let claim = try fixture.claim("a")
    let rival = try fixture.another(host: host)
    for later in [0, Leases(rival).length - 2] {
      #expect(try rival.outcome("a:alpha.42.00000001", from: .cur, at: .now() + later).label == "leased")
    }
    #expect(try claim.ownership() == .ours)
  }

  /// All heartbeats seem to be as much older then. Who lives gives another one at once.
  @Test(arguments: ["alpha", "beta"], [true, false])
  func afterAClockHasJumpedNoneUntilAHeartbeatHadItsTime(name: String, sleeps: Bool) throws {
    let host = MovedHost()
    try Host.$current.withValue(host) {
      let fixture = try Fixture()
      try fixture.files.drop("a", job)
      let claim = try fixture.claim("a")
      let rival = try fixture.another(host: name)
      func take() throws -> ClaimOutcome {
        try rival.outcome("a:alpha.42.00000001", from: .cur, at: rival.now())
      }
      func isBeatDue() -> Bool {
        Leases(fixture.spool).isBeatDue(since: host.milliseconds() - 1, at: host.milliseconds())
      }
      #expect(!isBeatDue())
      if sleeps { host.sleep(seconds: 300) } else { host.set(by: 300) }
      #expect(try take().label == "leased" && claim.ownership() == .ours)
      #expect(isBeatDue())
      host.pass(milliseconds: 1000)
      #expect(!isBeatDue())
      host.pass(milliseconds: Leases(rival).heartbeatInterval)
      #expect(try take().label == "claimed")
    }
  }

  /// Its owner holds the lock, and is frozen. What it writes when it wakes up goes nowhere.
  @Test(arguments: ["alpha", "beta"])
  func aSilentOneAfterItsLease(host: String) throws {
    let fixture = try Fixture()
    try fixture.files.drop("a", job)
    let claim = try fixture.claim("a")
    let rival = try fixture.another(host: host)
    let taken = try rival.outcome("a:alpha.42.00000001", from: .cur, at: .now() + Leases(rival).length)
      .claim()
    #expect(taken.formerOwner == .mayWake && taken.text.request.urls.count == 1)
    let names = fixture.names("cur")
    #expect(names == ["a:\(rival.owner.text)"] && fixture.names("tmp") == [])
    #expect(try taken.holdsLock() && taken.ownership() == .ours)
    // It does not know how long it slept, and writes at once.
    let text = try fixture.text("cur/\(names[0])")
    try claim.append(.checkpoint(Mark(offset: 1, checksum: Checksum())))
    #expect(try fixture.text("cur/\(names[0])") == text && text.hasPrefix(job))
    // It knows.
    claim.lastSign -= Leases(fixture.spool).length
    let line = JournalLine.checkpoint(Mark(offset: 2, checksum: Checksum()))
    #expect(#expect(throws: SpoolError.self) { try claim.append(line) }?.isGone == true)
    #expect(#expect(throws: SpoolError.self) { try claim.heartbeat() }?.isGone == true)
    #expect(#expect(throws: SpoolError.self) { try claim.finish() }?.errno == .noSuchFileOrDirectory)
    #expect(try claim.ownership() == .takenOver)
    // And when its successor is done, although it has journaled nothing itself.
    try taken.append(.started(.now(), attempt: 1, worker: rival.owner, boot: "b", mirror: 1, url: "https://host/a"))
    try taken.finish()
    #expect(try claim.ownership() == .takenOver)
  }

  /// Its successor had to make the last move only, and is not named anywhere.
  @Test(arguments: [true, false])
  func aReceiptThatItsSuccessorMoved(isOwn: Bool) throws {
    let fixture = try Fixture()
    try fixture.files.drop("a", job)
    let claim = try fixture.claim("a")
    try claim.append(
      .started(.now(), attempt: 1, worker: fixture.spool.owner, boot: "b", mirror: 1, url: "https://host/a"))
    let name = try #require(fixture.names("cur").first)
    var receipt = try fixture.text("cur/\(name)")
    // An older job of the name, which this worker did, too.
    if !isOwn { receipt = receipt.replacing("started: 2", with: "started: 1") }
    try fixture.remove("cur/\(name)")
    try fixture.write("done/a", receipt)
    #expect(try claim.ownership() == .removed, "it was never silent")
    claim.lastSign -= Leases(fixture.spool).length
    #expect(try claim.ownership() == (isOwn ? .takenOver : .removed))
  }

  /// A frozen worker that has published the data keeps it locked. Its successor removes the data's own name, unless it
  /// is another job's.
  @Test(arguments: [true, false])
  func publishedDataLosesItsOwnName(isPublished: Bool) throws {
    let fixture = try Fixture()
    try fixture.files.drop("a", job)
    let claim = try fixture.claim("a")
    let part = try #require(try PartFile.open(claim.job, in: fixture.spool))
    let payload = fixture.files.path("files/payload")
    if isPublished {
      #expect(link(fixture.files.path("partial/a.part"), payload) == 0)
    } else {
      try writeFile(payload, [])
    }
    let rival = try fixture.another(host: "beta")
    let taken = try rival.outcome("a:alpha.42.00000001", from: .cur, at: .now() + Leases(rival).length)
      .claim()
    try taken.removeData(publishedAs: try rival.system.status(AT_FDCWD, Path(payload)))
    #expect(fixture.names("partial") == (isPublished ? [] : ["a.part"]))
    try part.close()
  }

  /// It goes on after a silence that nobody used.
  @Test func anUnusedSilence() throws {
    let fixture = try Fixture()
    try fixture.files.drop("a", job)
    let claim = try fixture.claim("a")
    try setModificationTime(fixture.files.path("cur/a:alpha.42.00000001"), secondsFromNow: -1000)
    claim.lastSign -= 1000
    try claim.append(.checkpoint(Mark(offset: 1, checksum: Checksum())))
    let status = try #require(fixture.status("cur/a:alpha.42.00000001"))
    #expect(Int64(status.st_mtim.tv_sec) > Timestamp.now().seconds - 100, "it gave a sign of life")
    #expect(!claim.isSilent)
  }

  /// A worker that was too busy for a heartbeat does not take its own jobs from itself.
  @Test func itsOwnNever() throws {
    let fixture = try Fixture()
    try fixture.files.drop("a", job)
    let claim = try fixture.claim("a")
    #expect(try fixture.outcome("a:alpha.42.00000001", from: .cur, secondsLater: 1000).label == "unavailable")
    #expect(try claim.ownership() == .ours)
  }

  /// The lease is on the file's mtime, to the second, by the file system's clock.
  @Test(arguments: [("a:beta.1.00000009", true), ("a", true), ("a:alpha.1.00000009", false)])
  func anotherHostsClaimHasALease(name: String, hasLease: Bool) throws {
    let fixture = try Fixture()
    try leave(name, in: fixture)
    try setModificationTime(fixture.files.path("cur/\(name)"), secondsFromNow: -1_000_000)
    let beat = Int64(try #require(fixture.status("cur/\(name)")).st_mtim.tv_sec)
    let end = Timestamp(seconds: beat + Leases(fixture.spool).length)
    #expect(try fixture.spool.outcome(name, from: .cur, at: end + -1).label == (hasLease ? "leased" : "claimed"))
    if hasLease {
      #expect(fixture.names("cur") == [name])
      #expect(try fixture.spool.outcome(name, from: .cur, at: end).label == "claimed")
    }
    #expect(fixture.names("cur") == ["a:alpha.42.00000001"])
  }

  /// Whoever waits for it knows when to look again.
  @Test func anotherHostsLeaseHasAnEnd() throws {
    let fixture = try Fixture()
    let name = "a:beta.1.00000009"
    try leave(name, in: fixture)
    try setModificationTime(fixture.files.path("cur/\(name)"), to: 1_000_000)
    let outcome = try fixture.spool.outcome(name, from: .cur, at: Timestamp(seconds: 1_000_010))
    guard case .leased(let end) = outcome else { throw Unexpected(outcome.label) }
    #expect(end == 1_000_000 + Leases(fixture.spool).length)
  }

  /// A clock was a year ahead, or is: the lease begins when somebody sees it.
  @Test func aHeartbeatFromTheFutureIsNotBelievedForLong() throws {
    let fixture = try Fixture()
    let name = "a:beta.1.00000009"
    try leave(name, in: fixture)
    try setModificationTime(fixture.files.path("cur/\(name)"), secondsFromNow: 365 * 86_400)
    #expect(try fixture.outcome(name, from: .cur).label == "leased")
    #expect(try fixture.outcome(name, from: .cur, secondsLater: Leases(fixture.spool).length - 20).label == "leased")
    #expect(try fixture.outcome(name, from: .cur, secondsLater: Leases(fixture.spool).length + 20).label == "claimed")
  }

  /// Further ahead than any wait: a clock was wrong when the attempt failed.
  @Test func anAttemptThatIsTooFarAheadIsDue() throws {
    let fixture = try Fixture()
    try fixture.write("partial/a", job)
    for (ahead, label) in [(24 * 3600, "not due"), (365 * 86_400, "claimed")] {
      try setModificationTime(fixture.files.path("partial/a"), secondsFromNow: ahead)
      #expect(try fixture.outcome("a", from: .partial).label.hasPrefix(label))
    }
  }

  @Test func aHeartbeatRenewsIt() throws {
    let fixture = try Fixture()
    try fixture.files.drop("a", job)
    let claim = try fixture.claim("a")
    let path = fixture.files.path("cur/a:alpha.42.00000001")
    try setModificationTime(path, secondsFromNow: -1000)
    let before = try fixture.spool.fileSystemTime()
    try claim.heartbeat()
    #expect(Int64(try #require(fileStatus(path)).st_mtim.tv_sec) >= before.seconds)
  }

  /// A move by link and unlink that was cut in the middle.
  @Test(arguments: [
    ("a", "done/a"), ("a", "failed/a"), ("a", "partial/a"), ("a", "done/a~2"), ("a", "done/a~3"),
    ("a", "done/a~123456789"), ("a~2", "done/a~3"),
    // As 0.1 numbered.
    ("a~2", "done/a~2~2"),
  ])
  func aHalfDoneMoveIsCompleted(name: String, target: String) throws {
    let fixture = try Fixture()
    try leave("\(name):alpha.1.00000009", in: fixture)
    if target != "done/\(name)" { try fixture.write("done/\(name)", "") }
    try fixture.link("cur/\(name):alpha.1.00000009", target)
    #expect(try fixture.outcome("\(name):alpha.1.00000009", from: .cur).label == "unavailable")
    #expect(fixture.names("cur") == [])
    #expect(try fixture.text(target) == job)
  }

  /// Its own last line lacks the newline: it did not happen, and the next one must not be glued to it.
  @Test(arguments: ["respon", "\u{0}\u{0}\u{0}", "done: 2026-01-01T00:00:00Z attempts=1 output=a"])
  func aTornLineIsCutOff(_ torn: String) throws {
    let fixture = try Fixture()
    try leave("a:alpha.1.00000009", in: fixture, job + torn)
    let claim = try fixture.claim("a:alpha.1.00000009", from: .cur)
    #expect(try fixture.text("cur/a:alpha.42.00000001") == job)
    try claim.append(.checkpoint(Mark(offset: 1, checksum: Checksum())))
    #expect(try fixture.text("cur/a:alpha.42.00000001") == job + "checkpoint: 1 crc32=00000000\n")
  }

  /// The same for the very first line of the journal. A worker had this job, so it was whole when it was dropped.
  @Test(arguments: ["start", "s", "requeued: 2026", "\u{0}\u{0}\u{0}", "started\u{0}\u{0}"], ["cur", "partial"])
  func aTornFirstLineIsCutOff(torn: String, state: String) throws {
    let fixture = try Fixture()
    let name = state == "cur" ? "a:alpha.1.00000009" : "a"
    try fixture.write("\(state)/\(name)", "https://host/a\n" + torn)
    let claim = try fixture.claim(name, from: state == "cur" ? .cur : .partial, secondsLater: 100)
    #expect(claim.text.defect == nil)
    #expect(try fixture.text("cur/a:alpha.42.00000001") == "https://host/a\n")
  }

  /// But a person's own unfinished line stays for them to read.
  @Test func apersonsCutLineStays() throws {
    let fixture = try Fixture()
    try leave("a:alpha.1.00000009", in: fixture, "url: https://host/a\nsize: 12")
    #expect(try fixture.outcome("a:alpha.1.00000009", from: .cur).defect?.reason.contains("newline") == true)
    #expect(try fixture.text("failed/a").hasPrefix("url: https://host/a\nsize: 12\nfailed: "))
  }

  @Test func whatIsNoClaimIsLeftAlone() throws {
    let fixture = try Fixture()
    for name in [".nfs0001", "a\nb:alpha.1.2"] { try leave(name, in: fixture) }
    #expect(try fixture.outcome(".nfs0001", from: .cur).label == "unavailable")
    #expect(try fixture.outcome("a\nb:alpha.1.2", from: .cur).label == "unavailable")
    #expect(try fixture.outcome("gone:alpha.1.2", from: .cur).label == "unavailable")
  }
}
