import Testing

@testable import Spool
@testable import SpoolWorker

/// How much of what an earlier worker left is trusted (INTERNALS.md, invariant 4).
@Suite struct RecoveryTests {
  private static let started = "started: 2026-11-21T03:00:00Z attempt=1 worker=alpha.1.2 boot=b1 mirror=1 url=u"
  private static let response = "response: mirror=1 at=0 part=7 size=1000 etag=\"\\\"v1\\\"\""
  private static let checkpoint = "checkpoint: 400 crc32=00000004"
  private static let interrupted = "interrupted: 2026-11-21T03:00:01Z attempt=1 at=600 crc32=00000006"
  private static let goesOn = "response: mirror=1 at=600 part=7 size=1000 etag=\"\\\"v1\\\"\""

  struct Row: Sendable, CustomTestStringConvertible {
    let name: String
    var lines = [started, response, checkpoint]
    var length: UInt64 = 700
    var inode: UInt64 = 7
    var host = "alpha"
    var boot = "b1"
    var isTakenOver = false
    /// Made by this attempt.
    var isNew = false
    /// Another host of the same name.
    var isNamesake = false
    /// Trusted length; 0: nothing.
    let trusted: UInt64
    /// Where the checksum goes on from.
    var from: UInt64 = 0
    var needsNewInode = false
    var verifies = false
    var rewrites = false
    /// The mark that the data has to agree with; 0: none.
    var confirms: UInt64 = 0
    var testDescription: String { name }
  }

  @Test(arguments: [
    Row(name: "a dead process lost nothing", trusted: 700, from: 400),
    Row(
      name: "a newer soft mark", lines: [started, response, checkpoint, interrupted, goesOn], trusted: 700, from: 400,
      confirms: 600),
    Row(
      name: "what the last attempt could not cut off is no data", lines: [started, response, checkpoint, interrupted],
      trusted: 600, from: 400, confirms: 600),
    Row(name: "a soft mark alone", lines: [started, response, interrupted, goesOn], trusted: 700, confirms: 600),
    Row(name: "no marks", lines: [started, response], trusted: 700, from: 0),
    Row(name: "exactly the checkpoint", length: 400, trusted: 400, from: 400),
    Row(name: "a dead process heard of a failed fsync", isTakenOver: true, trusted: 700, from: 400, rewrites: true),
    Row(
      name: "and soft marks tell what was written", lines: [started, response, checkpoint, interrupted, goesOn],
      isTakenOver: true, trusted: 700, from: 400, rewrites: true, confirms: 600),
    Row(
      name: "a take-over after a reboot: only what is durable", boot: "b2", isTakenOver: true, trusted: 400, from: 400),
    Row(
      name: "a take-over from another host: in a new inode anyway", host: "beta", isTakenOver: true, trusted: 400,
      from: 400, needsNewInode: true, verifies: true),
    Row(
      name: "a take-over from another host of this name", boot: "b2", isTakenOver: true, isNamesake: true, trusted: 400,
      from: 400, needsNewInode: true, verifies: true),
    Row(name: "another host of this name recorded its end", boot: "b2", isNamesake: true, trusted: 400, from: 400),
    Row(name: "another boot: the length lies", boot: "b2", trusted: 400, from: 400),
    Row(
      name: "another boot, soft marks are no promise", lines: [started, response, checkpoint, interrupted, goesOn],
      boot: "b2", trusted: 400, from: 400),
    Row(name: "another boot, no checkpoint", lines: [started, response, interrupted, goesOn], boot: "b2", trusted: 0),
    Row(
      name: "the boot is not known", lines: [started.replacing("b1", with: "unknown"), response, checkpoint],
      boot: "unknown", trusted: 400, from: 400),
    Row(name: "another host", host: "beta", trusted: 400, from: 400, needsNewInode: true, verifies: true),
    Row(
      name: "another host may be about to write, no data yet", lines: [started], length: 0, host: "beta", trusted: 0,
      needsNewInode: true),
    Row(
      name: "another host of the same boot id", lines: [started, response, checkpoint, interrupted, goesOn],
      host: "beta", trusted: 400, from: 400, needsNewInode: true, verifies: true),
    Row(name: "no data", length: 0, isNew: true, trusted: 0),
    Row(
      name: "no data, no journal, but another may have it open", lines: [], length: 0, isTakenOver: true, trusted: 0,
      needsNewInode: true),
    Row(
      name: "no data yet in another inode", lines: [started, response], length: 0, inode: 8, trusted: 0,
      needsNewInode: true),
    Row(name: "no data yet in its own inode", lines: [started, response], length: 0, trusted: 0),
    Row(name: "no response: whose data is it?", lines: [started], trusted: 0, needsNewInode: true),
    Row(name: "no start: whose journal is it?", lines: [response, checkpoint], trusted: 0),
    Row(name: "shorter than what was durable", length: 399, trusted: 0),
    Row(
      name: "shorter than the soft mark", lines: [started, response, checkpoint, interrupted, goesOn], length: 500,
      trusted: 500, from: 400),
    Row(
      name: "another inode, by the last mark", lines: [started, response, checkpoint, interrupted, goesOn], inode: 8,
      trusted: 600, from: 600, needsNewInode: true, verifies: true),
    Row(
      name: "another inode after a reboot", inode: 8, boot: "b2", trusted: 400, from: 400, needsNewInode: true,
      verifies: true),
    Row(name: "another inode, no mark", lines: [started, response], inode: 8, trusted: 0, needsNewInode: true),
    Row(
      name: "a failed fsync",
      lines: [started, response, checkpoint, "failed: 2026-11-21T03:00:01Z attempt=1 code=io at=700 crc32=00000007"],
      trusted: 400, from: 400, needsNewInode: true),
    Row(
      name: "a mismatch",
      lines: [started, response, checkpoint, "failed: 2026-11-21T03:00:01Z attempt=1 code=mismatch-crc32 at=0"],
      trusted: 0, needsNewInode: true),
    Row(
      name: "a new version since", lines: [started, response, checkpoint, "response: mirror=1 at=0 part=7 size=9"],
      boot: "b2", trusted: 0),
    Row(
      name: "the last worker counts", lines: [started, response, checkpoint, started.replacing("alpha", with: "beta")],
      trusted: 400, from: 400, needsNewInode: true, verifies: true),
  ])
  func decide(_ row: Row) {
    let bytes = Array("https://h/a\n\(row.lines.map { $0 + "\n" }.joined())".utf8)
    let journal = bytes.withUnsafeBytes { JobText($0) }.journal
    let recovery = Recovery.decide(
      length: row.length, inode: row.inode, isNew: row.isNew, journal: journal, host: row.host, boot: row.boot,
      isTakenOver: row.isTakenOver, sharesLocks: row.host == "alpha" && !row.isNamesake)
    #expect(recovery.rewritesFrom == (row.rewrites ? row.from : nil))
    #expect(recovery.length == row.trusted)
    #expect(recovery.from.offset == row.from)
    #expect(recovery.from.digests[.crc32] == Digest(Checksum(value: UInt32(row.from / 100))), "the mark's own checksum")
    #expect(recovery.needsNewInode == row.needsNewInode)
    #expect(recovery.confirmation?.offset ?? 0 == row.confirms)
    #expect(recovery.confirmation == nil || recovery.durable == row.from)
    #expect(recovery.verifies == (row.verifies ? recovery.from : nil))
    if row.trusted == 0 { #expect(recovery.from == Mark.zero) }
  }

  /// What a mark lacks is read again; how much of the data is trusted does not depend on it.
  @Test(
    arguments: [
      ([], "", 400), ([.md5], "both", 400), ([.md5], "checkpoint", 400), ([.md5], "", 0),
      ([.md5, .sha1], "both", 0), ([.md5], "other version", 0),
    ] as [(Set<DigestAlgorithm>, String, UInt64)])
  func marksWithoutAWantedDigest(wanted: Set<DigestAlgorithm>, has: String, from: UInt64) {
    func states(_ length: Int) -> String {
      var states = DigestStates([.md5])
      [UInt8](repeating: 1, count: length).withUnsafeBytes { states.update($0) }
      let text = Fields().with(states).text.split(separator: " ").last.map { " \($0)" } ?? ""
      return has == "other version" ? text.replacing("/1:", with: "/0:") : text
    }
    let checkpoint = Self.checkpoint + (has.isEmpty ? "" : states(400))
    let interrupted = Self.interrupted + (has == "both" ? states(600) : "")
    let lines = [Self.started, Self.response, checkpoint, interrupted, Self.goesOn]
    let bytes = Array("https://h/a\n\(lines.map { $0 + "\n" }.joined())".utf8)
    let journal = bytes.withUnsafeBytes { JobText($0) }.journal
    func decide(boot: String, isTakenOver: Bool) -> Recovery {
      Recovery.decide(
        length: 700, inode: 7, isNew: false, journal: journal, host: "alpha", boot: boot, isTakenOver: isTakenOver,
        sharesLocks: true,
        digests: wanted)
    }
    let recovery = decide(boot: "b1", isTakenOver: false)
    #expect(
      recovery.length == 700 && recovery.from.offset == from
        && recovery.from.states.algorithms == wanted.union([.crc32]))
    let rebooted = decide(boot: "b2", isTakenOver: false)
    #expect(rebooted.length == 400 && rebooted.from.offset == min(from, 400))
    let takenOver = decide(boot: "b1", isTakenOver: true)
    #expect(takenOver.rewritesFrom == 400 && takenOver.from.offset == min(from, 400))
  }

  /// Whatever the journal says, no more is trusted than is there, and after a reboot no more than the checkpoint.
  @Test func bounds() {
    for length in [0, 1, 399, 400, 401, 599, 600, 601, 5000] as [UInt64] {
      for lines in [
        [Self.started, Self.response, Self.checkpoint],
        [Self.started, Self.response, Self.checkpoint, Self.interrupted, Self.goesOn],
      ] {
        let bytes = Array("https://h/a\n\(lines.map { $0 + "\n" }.joined())".utf8)
        let journal = bytes.withUnsafeBytes { JobText($0) }.journal
        for (host, boot) in [("alpha", "b1"), ("alpha", "b2"), ("beta", "b1"), ("beta", "b2")] {
          for inode in [7, 8] as [UInt64] {
            for isTakenOver in [false, true] {
              let recovery = Recovery.decide(
                length: length, inode: inode, isNew: false, journal: journal, host: host, boot: boot,
                isTakenOver: isTakenOver,
                sharesLocks: host == "alpha")
              #expect(recovery.length <= length && recovery.from.offset <= recovery.length)
              if (host, boot) != ("alpha", "b1") { #expect(recovery.length <= 400) }
            }
          }
        }
      }
    }
  }
}
