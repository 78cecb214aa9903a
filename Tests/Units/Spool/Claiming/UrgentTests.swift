import Glibc
import SystemPackage
import TestSupport
import Testing

@testable import Spool

/// Jobs in `urgent/`, which are dropped there or moved there.
@Suite struct UrgentTests {
  private let url = "https://host/a\n"

  private func moved(_ fixture: Fixture, _ name: String, _ text: String) throws {
    try fixture.files.drop(name, text)
    try fixture.files.move("new/\(name)", "urgent/\(name)")
  }

  /// Its later attempts wait in `partial/`, where only the journal tells.
  @Test func theJournalTellsThatItCameThatWay() throws {
    let fixture = try Fixture()
    try moved(fixture, "a", url)
    let claim = try fixture.claim("a", from: .urgent)
    #expect(claim.isOpen && claim.text.journal.isEmpty)
    try claim.append(.cleared(.now()))
    try claim.park(until: .now())
    #expect(try fixture.text("partial/a").contains("\nurgent: "))
    let again = try fixture.claim("a", from: .partial)
    #expect(again.text.priority(inheriting: JobRequest()) == .high)
  }

  @Test func aTextThatSaysSoNeedsNoLine() throws {
    let fixture = try Fixture()
    try moved(fixture, "a", url + "priority: high\n")
    try fixture.claim("a", from: .urgent).finish()
    #expect(try fixture.text("done/a") == url + "priority: high\n")
  }

  /// As through `new/`.
  @Test func aJobWithAJournalGetsItsAttemptsAgain() throws {
    let fixture = try Fixture()
    try moved(
      fixture, "a", url + "failed: 2026-11-21T03:00:00Z attempt=1 class=permanent code=http-404 at=0 reason=x\n")
    let claim = try fixture.claim("a", from: .urgent)
    #expect(claim.isRequeueNoted && claim.text.journal.attempts.failures == 1)
    try claim.park(until: .now())
    let lines = try fixture.files.lines("partial/a").map(\.key)
    #expect(lines.suffix(3) == ["failed", "requeued", "urgent"])
    #expect(try fixture.claim("a", from: .partial).text.journal.attempts.failures == 0)
  }

  @Test func whatIsStillWrittenIsLeftAlone() throws {
    let fixture = try Fixture()
    try fixture.write("urgent/a", "https://host/a")
    #expect(try fixture.outcome("a", from: .urgent).label == "unfinished")
    #expect(try fixture.outcome("a", from: .urgent, secondsLater: 20).defect != nil)
  }

  /// A spool of version 0.1 has no such directory.
  @Test func itIsMadeWhereItIsMissing() throws {
    let fixture = try Fixture()
    try #require(rmdir(fixture.files.path("urgent")) == 0)
    let spool = try fixture.another()
    #expect(try spool.list(.urgent) == [] && spool.modified(.urgent) == nil)
    let name = try #require(JobName(FileName("a")))
    #expect(try Drops(spool).drop(url, as: name).directory == .new)
    #expect(fixture.names("").contains("urgent") == false)
    #expect(try Drops(spool).drop(url, as: name, .high).directory == .urgent)
    guard case .taken(_, let other) = try Steering(spool).perform(.high, FileName("a"), in: .new) else {
      throw Unexpected("not refused")
    }
    #expect(other.display == "urgent/a" && fixture.files.places(of: "a") == ["new/a", "urgent/a"])
  }

  /// A rename that a crash cut in two, by file systems that keep no order of names.
  @Test(arguments: ["new", "partial"], [true, false])
  func aMoveThatWasCutIsCompleted(from: String, isSeenFirst: Bool) throws {
    let fixture = try Fixture()
    try moved(fixture, "a", url)
    try fixture.link("urgent/a", "\(from)/a")
    let origin = try #require(Directory(rawValue: from))
    if isSeenFirst { #expect(try fixture.outcome("a", from: origin).label == "unavailable") }
    #expect(try fixture.claim("a", from: .urgent).isOpen)
    #expect(fixture.files.places(of: "a") == ["cur/a:alpha.42.00000001"])
  }

  // MARK: the gestures

  /// A job keeps its age in `new/`, and its next attempt in `partial/`.
  @Test(arguments: [("new", "new"), ("partial", "partial"), ("urgent", "new")])
  func anotherPriorityIsWrittenIntoTheJob(from: String, to: String) throws {
    let fixture = try Fixture()
    try fixture.write("\(from)/a", url + "started: x\nurgent: y\n")
    try setModificationTime(fixture.files.path("\(from)/a"), to: 1_790_000_000)
    let place = try Steering(fixture.spool).perform(.low, FileName("a")).movedTo()
    #expect(place.display == "\(to)/a" && fixture.files.places(of: "a") == ["\(to)/a"])
    #expect(try fixture.text("\(to)/a") == url + "priority: low\nstarted: x\n")
    #expect(fixture.status("\(to)/a")?.st_mtim.tv_sec == 1_790_000_000)
    #expect(fixture.names("tmp") == [])
  }

  /// Nothing is replaced, and the job stays where it can be seen.
  @Test func aNameThatIsTakenIsNotReplaced() throws {
    let fixture = try Fixture()
    try moved(fixture, "a", url)
    try fixture.files.drop("a", "https://host/other\n")
    guard case .taken(_, let other) = try Steering(fixture.spool).perform(.low, FileName("a"), in: .urgent) else {
      throw Unexpected("not refused")
    }
    #expect(other.display == "new/a")
    #expect(try fixture.text("urgent/a") == url)
  }

  @Test(arguments: [Gesture.high, .normal, .low])
  func onlyWhatWaits(gesture: Gesture) throws {
    let fixture = try Fixture()
    for place in ["hold/a", "failed/b", "done/c", "partial/d.part"] {
      try fixture.write(place, url)
      let name = FileName(String(place.split(separator: "/")[1]))
      guard case .notFound = try Steering(fixture.spool).perform(gesture, name) else { throw Unexpected("\(place)") }
    }
  }
}
