import TestSupport
import Testing

@testable import Spool
@testable import SpoolWorker

/// The order of jobs of one age.
@Suite struct SharedOrderTests {
  private func order(_ kind: FileSystemKind) throws -> (names: [String], delays: Set<Int64>) {
    let fixture = try Fixture(kind: kind)
    let names = (0..<300).map { "job-\($0)" }
    for name in names {
      try fixture.files.drop(name, "https://h/a\n")
      try setModificationTime(fixture.files.path("new/\(name)"), to: 1_000_000)
    }
    let reader = SpoolReader(fixture.spool)
    let now = Timestamp(seconds: 2_000_000)
    var backlog = Backlog()
    var delays: Set<Int64> = []
    for name in names {
      guard case .candidate(let candidate) = try reader.look(.new, FileName(name), at: now) else { continue }
      #expect(candidate.modified == 1_000_000)
      delays.insert(candidate.delay)
      backlog.add([candidate])
    }
    var found: [String] = []
    while let candidate = backlog.nextUnread() {
      found.append(candidate.name.display)
      backlog.add(candidate, Peek(host: nil))
    }
    return (found, delays)
  }

  @Test func itIsThatOfTheNamesWhereNobodyElseIs() throws {
    let (names, delays) = try order(FileSystemKind(name: "ext4", sharing: .local))
    #expect(delays == [0] && names.count == 300)
    #expect(names.prefix(10).allSatisfy { $0.utf8.count == 5 }, "shorter names first")
  }

  /// What a dead worker had in hand goes on before all jobs that wait.
  @Test func whatHasBegunIsFirst() throws {
    let fixture = try Fixture()
    let now = Timestamp.now()
    let claims = ["cur/a:beta.1.00000009": 300, "cur/b:beta.1.00000009": 400]
    let names = claims.merging(["new/old": 100_000, "partial/due": 50_000]) { $1 }
    var backlog = Backlog()
    for (place, age) in names {
      try fixture.write(place, "https://h/a\n")
      try setModificationTime(fixture.files.path(place), secondsFromNow: -age)
      let parts = place.split(separator: "/")
      let directory = try #require(Directory(rawValue: String(parts[0])))
      let found = try SpoolReader(fixture.spool).look(directory, FileName(String(parts[1])), at: now)
      guard case .candidate(let candidate) = found else { continue }
      backlog.add([candidate])
    }
    var order: [String] = []
    while let candidate = backlog.nextUnread() { order.append(candidate.name.display) }
    #expect(Set(order.prefix(2)) == ["a:beta.1.00000009", "b:beta.1.00000009"] && order.suffix(2) == ["old", "due"])
  }

  /// Each other job of a host that was lost would have to wait for all that never began.
  @Test func aHostThatWasLostMakesNoSuspects() {
    #expect(Probation.counted(1, isByLease: true) == 0)
    #expect(Probation.counted(2, isByLease: true) == 2)
    #expect(Probation.counted(1, isByLease: false) == 1)
  }

  /// Other workers have another one, since each process has other hash values.
  @Test func itIsAWorkersOwnElsewhere() throws {
    let (names, delays) = try order(.fuse)
    #expect(delays.count > 15 && delays.allSatisfy { (0..<SpoolReader.spread).contains($0) })
    #expect(Set(names).count == 300 && !names.prefix(10).allSatisfy { $0.utf8.count == 5 })
  }
}
