import Glibc
import TestSupport
import Testing

@testable import Spool

/// `release`, while the worker that had the job lets go of it.
@Suite struct ReleaseTests {
  /// A worker takes the job between a person's look and the removal: the job is found again, and removed.
  @Test func aJobThatWasTakenAtThatMomentIsCancelled() throws {
    let fixture = try Fixture { files in
      Probe.meanwhile(.rename, "new/a tmp/") { try files.move("new/a", "cur/a:alpha.9.00000009") }
    }
    try fixture.files.drop("a", "https://host/a\n")
    let outcome = try Steering(fixture.spool).perform(.cancel, FileName("a"))
    guard case .removed(let place) = outcome else { throw Unexpected("\(outcome)") }
    #expect(place.directory == .cur && fixture.files.places(of: "a") == [])
  }

  /// In `new/`, a file that a worker or its child still has open for writing would seem half written, and be left for
  /// later.
  @Test func itWaitsUntilNobodyHasTheJobOpen() throws {
    let files = try TemporarySpool()
    try writeFile(files.path("hold/a"), Array("https://host/a\n".utf8))
    let writer = open(files.path("hold/a"), O_RDWR | O_CLOEXEC)
    let looks = Counter()
    let hook = Probe { call in
      if call.kind == .lease, looks.next() == 3 { close(writer) }
      return nil
    }
    _ = try Steering(Fixture.open(files, hook: hook)).perform(.release, FileName("a")).movedTo()
    // More than three where another test forks meanwhile: its child has the file open until it executes a program.
    #expect(looks.current >= 3 && files.names("new") == ["a"])
  }

  /// What a crash left of a journal line goes, because in `new/` it would look like a person's. A person's line stays.
  @Test(arguments: [
    ("https://host/a\n", "started: 20"), ("https://host/a\n", "\0\0\0\n"),
    ("https://host/a\nrequeued: 2026-01-01T00:00:00Z\n", "fai"),
  ])
  func aLineThatACrashToreGoes(whole: String, torn: String) throws {
    let fixture = try Fixture()
    for (name, tail) in [("a", torn), ("b", "priority: high")] {
      try fixture.write("failed/\(name)", whole + tail)
      _ = try Steering(fixture.spool).perform(.retry, FileName(name))
      #expect(try fixture.text("new/\(name)") == (tail == torn ? whole : whole + tail))
    }
  }

  /// A power cut has left zeros in place of a line. Without them, the lines behind would count.
  @Test func whatIsBehindALostLineStaysLost() throws {
    let fixture = try Fixture()
    let journal = "requeued: 2026-01-01T00:00:00Z\n"
    let lost = "https://host/a\n\(journal)\0\0\0\nrequeued: 2026-01-02T00:00:00Z\npriority: low\n"
    try fixture.write("failed/a", lost)
    let place = try #require(JobSearch(fixture.spool).places(of: FileName("a")).first)
    try Steering(fixture.spool).requeue(place, as: jobName("a"), asking: "https://host/b\n")
    let text = try fixture.text("new/a")
    #expect(text.hasPrefix("https://host/b\n\(journal)requeued: ") && text.utf8.count { $0 == 0x0A } == 3, "\(text)")
    #expect(JobText.withoutAttempts(Array(lost.utf8)) == Array("https://host/a\n".utf8))
  }

  private func journal(of text: String) -> Journal { parsed(text).journal }

  /// A power cut may leave the file in `cur/`, by way of which it goes to `new/`.
  @Test func theTextOfADoneJobThatIsFetchedAgainHasNoReceipt() throws {
    let fixture = try Fixture()
    let whole = "size=1 crc32=E8B7BE43"
    let receipt =
      "https://host/a\nverified: 2026-01-01T00:00:00Z \(whole) part=1\ndone: 2026-01-01T00:00:01Z output=a\n"
    for request in [nil, "https://host/a\n"] {
      try fixture.write("done/a", receipt)
      let verified = try #require(journal(of: receipt).publication.done?.verified)
      let place = try #require(JobSearch(fixture.spool).places(of: FileName("a")).first)
      let steering = Steering(fixture.spool)
      if let request {
        try steering.requeue(place, as: jobName("a"), asking: request)
      } else {
        try steering.refetch(place, verified)
      }
      let publication = journal(of: try fixture.text("new/a")).publication
      #expect(publication.receipt == nil && publication.verified == nil && publication.lastReceipt != nil)
      unlink(fixture.files.path("new/a"))
    }
  }

  /// Where nobody can see who still writes a file, a job that was put back need not settle: its journal is behind the
  /// line by which its dropper said that it is complete.
  @Test(arguments: [Gesture.release, .retry, .high, .low])
  func aJobThatIsPutBackIsComplete(gesture: Gesture) throws {
    let fixture = try Fixture(kind: .fuse)
    let origin: Directory = gesture == .release ? .hold : gesture == .retry ? .failed : .new
    let text = "https://host/a\n# complete\nrequeued: 2026-01-01T00:00:00Z\n"
    try fixture.write("\(origin.rawValue)/a", text)
    if origin == .new { #expect(try fixture.outcome("a").label == "unfinished") }
    let to = try Steering(fixture.spool).perform(gesture, FileName("a")).movedTo()
    #expect(fixture.names("hold") == [] && fixture.names("tmp") == [])
    #expect(try fixture.text(to.display).hasSuffix("\n# complete\n"))
    var label = try fixture.outcome("a", from: to.directory).label
    // A child of another test has the file open until it executes a program.
    for _ in 0..<1000 where label == "unfinished" {
      usleep(1000)
      label = try fixture.outcome("a", from: to.directory).label
    }
    #expect(label == "claimed")
  }
}
