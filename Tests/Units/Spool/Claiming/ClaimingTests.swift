import Glibc
import Synchronization
import SystemPackage
import TestSupport
import Testing

@testable import Spool

/// Who gets a job, when several want it.
@Suite struct ClaimingTests {
  private let url = "https://host/a\n"

  @Test func aClaimIsARename() throws {
    let fixture = try Fixture()
    try fixture.files.drop("a", url)
    let inode = fixture.status("new/a")?.st_ino
    let claim = try fixture.claim("a")
    #expect(fixture.files.places(of: "a") == ["cur/a:alpha.42.00000001"])
    #expect(fixture.status("cur/a:alpha.42.00000001")?.st_ino == inode)
    #expect(claim.job.display == "a" && claim.origin == .new)
    #expect(try claim.ownership() == .ours)
    #expect(try claim.holdsLock())
    #expect(try fixture.outcome("a").label == "unavailable", "it is gone from new")
  }

  /// The receipt of a delivered file is believed without a look for the file.
  @Test func `that a delivered job came again survives a power cut`() throws {
    let probe = Probe()
    let fixture = try Fixture(hook: probe)
    let done = JournalLine.done(
      .now(), attempts: 1, output: "a", fetched: 0, milliseconds: 0, existing: false, unproven: nil, directory: nil,
      delivered: .now())
    try fixture.files.drop("a", url + done.text)
    _ = try fixture.claim("a")
    let kinds = probe.calls.map(\.kind)
    let rename = kinds.firstIndex(of: .rename) ?? 0
    #expect(kinds[..<rename].suffix(3).contains(.fdatasync) && kinds[..<rename].contains(.write), "\(kinds)")
  }

  /// Four workers on their own threads want the same 40 jobs.
  @Test func eachJobIsClaimedOnce() async throws {
    let fixture = try Fixture()
    for number in 0..<40 { try fixture.files.drop("job-\(number)", url) }
    let workers = try (2...5).map { try Fixture.open(fixture.files, tag: $0) }
    let counts = try await withThrowingTaskGroup(of: [String].self) { group in
      for worker in workers {
        group.addTask {
          var claimed: [String] = []
          for number in 0..<40 {
            if case .claimed(let claim) = try Claims(worker).claim(FileName("job-\(number)"), from: .new, now: .now()) {
              claimed.append(claim.job.display)
              try claim.finish()
            }
          }
          return claimed
        }
      }
      return try await group.reduce(into: [String: Int]()) { counts, names in
        for name in names { counts[name, default: 0] += 1 }
      }
    }
    // A worker may find another's lease or lock in its way and leave a job to it: none is claimed twice, none is lost.
    #expect(counts.values.allSatisfy { $0 == 1 })
    #expect(fixture.names("done").count == counts.count)
    #expect(fixture.names("done").count + fixture.names("new").count == 40)
    #expect(counts.count > 0 && fixture.names("cur") == [])
  }

  /// At each call of one worker's claim, another tries as well: it never gets the job in addition.
  @Test func noMomentLetsTwoIn() throws {
    let recorder = Probe()
    let rehearsal = try Fixture(hook: recorder)
    let before = recorder.calls.count
    try rehearsal.files.drop("a", url)
    _ = try rehearsal.claim("a")
    let sites = recorder.calls.count - before
    #expect(sites >= 6)
    for site in 1...sites {
      let files = try TemporarySpool()
      let second = try Fixture.open(files, tag: 2)
      let taken = Mutex("")
      let countdown = Atomic(-1)
      let hook = Probe { _ in
        guard countdown.subtract(1, ordering: .relaxed).newValue == 0 else { return nil }
        do {
          let outcome = try second.outcome("a")
          taken.withLock { $0 = outcome.label }
          if case .claimed(let claim) = outcome { try claim.finish() }
        } catch {
          taken.withLock { $0 = "\(error)" }
        }
        return nil
      }
      let first = try Fixture.open(files, hook: hook)
      try files.drop("a", url)
      countdown.store(site, ordering: .relaxed)
      let outcome = try first.outcome("a")
      let other = taken.withLock { $0 }
      #expect(["claimed", "unavailable", "unfinished"].contains(other), "site \(site): \(other)")
      #expect((outcome.label == "claimed") != (other == "claimed"), "site \(site): \(outcome.label), \(other)")
      #expect(files.places(of: "a").count == 1, "site \(site)")
    }
  }

  /// Between open and rename the name may pass to another file: that one is claimed then, read and locked anew.
  @Test func aReplacedFileIsTheOneClaimed() throws {
    let fixture = try Fixture { files in
      Probe.meanwhile(.rename, "cur/a:") { try files.move("tmp/other", "new/a") }
    }
    try fixture.files.drop("a", "https://host/old\n")
    try fixture.write("tmp/other", "https://host/new\n")
    let claim = try fixture.claim("a")
    #expect(claim.text.request.urls.map(\.text) == ["https://host/new"])
    #expect(try claim.ownership() == .ours)
    #expect(try fixture.another().outcome("a:alpha.42.00000001", from: .cur).label == "leased", "it is locked")
  }

  /// A child has the worker's open files between its fork and its exec, and with them their locks, whatever the worker
  /// closes meanwhile.
  @Test func aForkedChildKeepsNoLock() throws {
    let copies = Copies()
    let fixture = try Fixture { files in
      Probe { call in
        if [.lock, .close].contains(call.kind) { copies.add(of: files.path(call.path)) }
        return nil
      }
    }
    try fixture.files.drop("a", url)
    let claim = try fixture.claim("a")
    let part = try #require(try PartFile.open(claim.job, in: fixture.spool))
    try part.close()
    try claim.park(until: .now())
    let again = try fixture.claim("a", from: .partial)
    #expect(try PartFile.open(again.job, in: fixture.spool) != nil)
    #expect(copies.count >= 4)
  }

  /// Other descriptors of the same open files, as a child has them.
  private final class Copies: Sendable {
    private let descriptors = Mutex<[Int32]>([])

    func add(of path: String) {
      for name in names(in: "/proc/self/fd") {
        var target = [CChar](repeating: 0, count: 4096)
        guard let descriptor = Int32(name), readlink("/proc/self/fd/\(name)", &target, target.count - 1) > 0,
          String(decoding: target.prefix { $0 != 0 }.map(UInt8.init(bitPattern:)), as: UTF8.self) == path
        else { continue }
        descriptors.withLock { $0.append(fcntl(descriptor, F_DUPFD_CLOEXEC, 0)) }
      }
    }

    var count: Int { descriptors.withLock { $0.count } }

    deinit { for descriptor in descriptors.withLock({ $0 }) { close(descriptor) } }
  }

  /// While another worker looks for writers it holds a lease for a moment: that is no error, and nobody dies of it.
  @Test func anothersLeaseIsNoError() throws {
    signal(SIGIO, SIG_IGN)
    let fixture = try Fixture()
    try fixture.files.drop("a", url)
    let descriptor = open(fixture.files.path("new/a"), O_RDONLY | O_CLOEXEC)
    let setLease: Int32 = 1024
    try #require(fcntl(descriptor, setLease, F_RDLCK) == 0)
    let inode = try #require(fixture.status("new/a")).st_ino
    let claim = try fixture.claim("a")
    close(descriptor)
    // Its file cannot be opened for writing at this moment, so a copy has taken its place.
    #expect(fixture.files.places(of: "a") == ["cur/a:alpha.42.00000001"] && fixture.names("tmp") == [])
    #expect(fixture.status("cur/a:alpha.42.00000001")?.st_ino != inode)
    try claim.append(.requeued(.now()))
    #expect(try claim.ownership() == .ours && claim.holdsLock())
  }

  /// Between two looks another worker may have tried it, and been told to wait.
  @Test func whatIsNotDueIsLeft() throws {
    let fixture = try Fixture()
    try fixture.files.drop("a", url)
    let due = Timestamp.now() + 3600
    try fixture.claim("a").park(until: due)
    #expect(try fixture.outcome("a", from: .partial).label == "not due until \(due.seconds)")
    #expect(fixture.files.places(of: "a") == ["partial/a"])
    // Someone has postponed it since it was known to be due.
    let early = try fixture.spool.outcome("a", from: .partial, knownDue: due.seconds - 1)
    #expect(early.label == "not due until \(due.seconds)")
    #expect(try fixture.spool.outcome("a", from: .partial, knownDue: due.seconds).label == "claimed")
  }

  /// A hard link or somebody else's file could be changed while we append to it: we go on with a copy of our own.
  @Test func aLinkedFileIsCopied() throws {
    let fixture = try Fixture()
    try fixture.files.drop("a", url)
    let other = fixture.files.path("tmp/other-name")
    try #require(link(fixture.files.path("new/a"), other) == 0)
    let claim = try fixture.claim("a")
    try claim.append(.requeued(.now()))
    #expect(try readFile(other) == Array(url.utf8))
    #expect(fileStatus(other)?.st_nlink == 1)
    #expect(try claim.ownership() == .ours)
    #expect(try fixture.text("cur/a:alpha.42.00000001").hasPrefix(url + "requeued: "))
    #expect(try fixture.another().outcome("a:alpha.42.00000001", from: .cur).label == "leased", "the copy is locked")
    #expect(fixture.names("tmp") == ["other-name"])
  }

  /// btrfs, after a power cut: the claim's rename has made the new name durable and kept the old one. It is one job,
  /// not two.
  @Test(arguments: [Directory.new, .cur])
  func aHalfDurableClaimIsOneJob(foundIn origin: Directory) throws {
    let fixture = try Fixture()
    try fixture.files.drop("a", url)
    let left = "a:alpha.7.00000009"
    try fixture.link("new/a", "cur/\(left)")
    if origin == .new {
      #expect(try fixture.outcome("a").label == "unavailable")
      #expect(fixture.names("cur") == [left])
    }
    let inode = fixture.status("cur/\(left)")?.st_ino
    _ = try fixture.claim(left, from: .cur)
    #expect(fixture.files.places(of: "a") == ["cur/a:alpha.42.00000001"])
    #expect(
      fixture.status("cur/a:alpha.42.00000001")?.st_ino != inode,
      "the worker that had it may have lost lines by an fsync that failed")
  }

  @Test(.enabled("needs root, to give files away") { try await Need.users.isMet() })
  func somebodyElsesFileIsCopied() throws {
    let fixture = try Fixture()
    try fixture.files.drop("a", url)
    try #require(chown(fixture.files.path("new/a"), 65534, 65534) == 0)
    let inode = fixture.status("new/a")?.st_ino
    let claim = try fixture.claim("a")
    let status = fixture.status("cur/a:alpha.42.00000001")
    #expect(status?.st_uid == 0 && status?.st_ino != inode)
    #expect((status?.st_mode ?? 0) & 0o777 == 0o600)
    #expect(claim.text.defect == nil)
  }
}
