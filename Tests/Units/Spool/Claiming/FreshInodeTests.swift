import Glibc
import SystemPackage
import TestSupport
import Testing

@testable import Spool

/// A claimed job gets a new inode, for example after a failed fsync, or to shorten its journal.
@Suite struct FreshInodeTests: ClaimedJob {
  @Test func aFreshInode() throws {
    let (fixture, claim) = try claimed()
    try claim.append(mark(1))
    let before = fixture.status(own)?.st_ino
    try claim.replaceFile()
    #expect(fixture.status(own)?.st_ino != before)
    #expect(try claim.ownership() == .ours)
    try claim.append(mark(2))
    #expect(try fixture.text(own) == url + "checkpoint: 1 crc32=00000000\ncheckpoint: 2 crc32=00000000\n")
    #expect(fixture.names("tmp") == [])
  }

  /// A gesture comes between the last look and the replacement: one job stays one.
  @Test func aFreshInodeForAClaimThatIsTakenAway() throws {
    let (fixture, claim) = try claimed { files in
      Probe.meanwhile(.rename, "tmp/a:") { [own] in try files.move(own, "hold/a") }
    }
    #expect(throws: SpoolError.self) { try claim.renew() }
    #expect(fixture.names("cur") == [] && fixture.names("tmp") == [])
    #expect(try fixture.text("hold/a") == url)
    #expect(try claim.ownership() == .moved)
  }

  /// A gesture by link and unlink has made its link just before the replacement: it moves the old file on.
  @Test func `a fresh inode gives way to half a move`() throws {
    let (fixture, claim) = try claimed { files in
      Probe.meanwhile(.rename, "tmp/a:") { [own] in _ = link(files.path(own), files.path("hold/a")) }
    }
    let inode = fixture.status(own)?.st_ino
    #expect(throws: SpoolError.self) { try claim.replaceFile() }
    #expect(fixture.status(own)?.st_ino == inode)
    #expect(fixture.status("hold/a")?.st_ino == inode && fixture.names("tmp") == [])
  }

  /// What came out of the exchange may be another job's file, and then it would be removed with the copy.
  @Test func `a fresh inode gives its name back if what had it cannot be looked at`() throws {
    let (isExchanged, isSpent) = (Switch(), Switch())
    let hook = Probe { call in
      if call.kind == .rename, call.path.hasPrefix("tmp/a:") { isExchanged.turnOn() }
      guard call.kind == .stat, call.path.hasPrefix("tmp/a:"), isExchanged.isOn, !isSpent.isOn else { return nil }
      isSpent.turnOn()
      return .fail(.ioError)
    }
    let (fixture, claim) = try claimed(hook: hook)
    let inode = fixture.status(own)?.st_ino
    #expect(throws: SpoolError.self) { try claim.replaceFile() }
    #expect(try isSpent.isOn && claim.ownership() == .ours)
    #expect(fixture.status(own)?.st_ino == inode && fixture.names("tmp") == [])
  }

  /// Some file systems have no RENAME_EXCHANGE.
  @Test(arguments: [Errno.invalidArgument, .noFunction])
  func aFreshInodeWithoutExchange(errno: Errno) throws {
    let (fixture, claim) = try claimed(hook: Probe.once(.rename, "tmp/a:") { .fail(errno) })
    let before = fixture.status(own)?.st_ino
    try claim.renew()
    #expect(fixture.status(own)?.st_ino != before)
    #expect(try fixture.text(own) == url && fixture.names("tmp") == [])
  }

  @Test(arguments: [Call.Kind.write, .fdatasync, .rename])
  func aFailedFreshInodeChangesNothing(kind: Call.Kind) throws {
    let hook = Probe { $0.kind == kind && $0.path.contains("tmp/a:") ? .fail(.ioError) : nil }
    let (fixture, claim) = try claimed(hook: hook)
    #expect(throws: SpoolError.self) { try claim.replaceFile() }
    #expect(try claim.ownership() == .ours)
    #expect(fixture.names("tmp") == [])
    try claim.append(mark(1))
    #expect(try fixture.text(own) == url + "checkpoint: 1 crc32=00000000\n")
  }

  /// What a failed fsync lost stays known until a new inode holds all of it.
  @Test func aFailedFsyncIsRememberedUntilAFreshInode() throws {
    let armed = Switch()
    let hook = Probe { armed.isOn && $0.path.contains("tmp/a:") ? .fail(.noSpace) : nil }
    let (fixture, claim) = try claimed(hook: hook)
    let failure = SpoolError(call: .fsync, path: own, errno: .ioError)
    armed.turnOn()
    #expect(throws: SpoolError.self) { try claim.renew(after: failure) }
    #expect(claim.lostWrites?.errno == .ioError)
    #expect(throws: SpoolError.self) { try claim.renew() }
    #expect(claim.lostWrites?.errno == .ioError)
    armed.turnOff()
    try claim.renew()
    #expect(claim.lostWrites == nil)
    #expect(try fixture.text(own) == url)
  }

  /// Weeks of checkpoints: the job must not grow into what is no job any more.
  @Test func aLongJournalIsCompacted() throws {
    let (fixture, claim) = try claimed()
    try claim.append(mark(0))
    let inode = fixture.status(own)?.st_ino
    try claim.compact(beyond: 1000)
    #expect(fixture.status(own)?.st_ino == inode, "a short one stays as it is")
    var offset: UInt64 = 0
    while claim.length <= 1000 {
      offset += 1
      try claim.append(mark(offset))
    }
    try claim.compact(beyond: 1000)
    let kept = url + "checkpoint: 0 crc32=00000000\ncheckpoint: \(offset) crc32=00000000\n"
    #expect(try fixture.text(own) == kept && claim.length == Int64(kept.utf8.count))
    #expect(fixture.names("tmp") == [])
    try claim.append(mark(offset + 1))
    #expect(try claim.ownership() == .ours)
    #expect(try fixture.another().outcome("a:alpha.42.00000001", from: .cur).label == "leased")
    #expect(try fixture.text(own) == kept + "checkpoint: \(offset + 1) crc32=00000000\n")
  }
}
