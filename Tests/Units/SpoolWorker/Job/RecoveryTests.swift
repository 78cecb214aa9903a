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

  private static let lines: [String: String] = [
    "begun": "\(started)\n\(response)", "started": started, "response": response, "checkpoint": checkpoint,
    "interrupted": interrupted, "resumed": "\(interrupted)\n\(goesOn)",
    "started-unknown": started.replacing("b1", with: "unknown"),
    "started-beta": started.replacing("alpha", with: "beta"), "new-version": "response: mirror=1 at=0 part=7 size=9",
    "failed-io": "failed: 2026-11-21T03:00:01Z attempt=1 code=io at=700 crc32=00000007",
    "mismatch": "failed: 2026-11-21T03:00:01Z attempt=1 code=mismatch-crc32 at=0",
  ]

  /// Cases: the lines of the journal; what is found (`new` is made by this attempt, `namesake` another host of the same
  /// name); how much is trusted; from where the checksum goes on, which mark the data has to agree with, and the rest.
  private static let cases = tableRows(
    """
    a dead process lost nothing | begun checkpoint | | 700 | from=400
    a newer soft mark | begun checkpoint resumed | | 700 | from=400 confirms=600
    what the last attempt could not cut off is no data | begun checkpoint interrupted | | 600 | from=400 confirms=600
    a soft mark alone | begun resumed | | 700 | confirms=600
    no marks | begun | | 700 |
    exactly the checkpoint | begun checkpoint | length=400 | 400 | from=400
    a dead process heard of a failed fsync | begun checkpoint | taken-over | 700 | from=400 rewrites
    soft marks tell what was written | begun checkpoint resumed | taken-over | 700 | from=400 rewrites confirms=600
    a take-over after a reboot: only what is durable | begun checkpoint | boot=b2 taken-over | 400 | from=400
    taken over from another host | begun checkpoint | host=beta taken-over | 400 | from=400 new-inode verifies
    taken over from a namesake | begun checkpoint | boot=b2 taken-over namesake | 400 | from=400 new-inode verifies
    another host of this name recorded its end | begun checkpoint | boot=b2 namesake | 400 | from=400
    another boot: the length lies | begun checkpoint | boot=b2 | 400 | from=400
    another boot, soft marks are no promise | begun checkpoint resumed | boot=b2 | 400 | from=400
    another boot, no checkpoint | begun resumed | boot=b2 | 0 |
    the boot is not known | started-unknown response checkpoint | boot=unknown | 400 | from=400
    another host | begun checkpoint | host=beta | 400 | from=400 new-inode verifies
    another host may be about to write, no data yet | started | length=0 host=beta | 0 | new-inode
    another host of the same boot id | begun checkpoint resumed | host=beta | 400 | from=400 new-inode verifies
    no data | begun checkpoint | length=0 new | 0 |
    no data, no journal, but another may have it open | | length=0 taken-over | 0 | new-inode
    no data yet in another inode | begun | length=0 other-inode | 0 | new-inode
    no data yet in its own inode | begun | length=0 | 0 |
    no response: whose data is it? | started | | 0 | new-inode
    no start: whose journal is it? | response checkpoint | | 0 |
    shorter than what was durable | begun checkpoint | length=399 | 0 |
    shorter than the soft mark | begun checkpoint resumed | length=500 | 500 | from=400
    another inode, by the last mark | begun checkpoint resumed | other-inode | 600 | from=600 new-inode verifies
    another inode after a reboot | begun checkpoint | other-inode boot=b2 | 400 | from=400 new-inode verifies
    another inode, no mark | begun | other-inode | 0 | new-inode
    a failed fsync | begun checkpoint failed-io | | 400 | from=400 new-inode
    a mismatch | begun checkpoint mismatch | | 0 | new-inode
    a new version since | begun checkpoint new-version | boot=b2 | 0 |
    the last worker counts | begun checkpoint started-beta | | 400 | from=400 new-inode verifies
    """, columns: 5)

  @Test(arguments: cases)
  func decide(row: [String]) throws {
    let lines = try row[1].split(separator: " ").map { try #require(Self.lines[String($0)]) + "\n" }
    let (found, decided) = (settings(row[2]), settings(row[4]))
    let (trusted, from) = (UInt64(row[3]) ?? 0, UInt64(decided["from"] ?? "") ?? 0)
    let host = found["host"] ?? "alpha"
    let recovery = Recovery.decide(
      length: UInt64(found["length"] ?? "") ?? 700, inode: found["other-inode"] == nil ? 7 : 8,
      isNew: found["new"] != nil, journal: parsed("https://h/a\n\(lines.joined())").journal, host: host,
      boot: found["boot"] ?? "b1", isTakenOver: found["taken-over"] != nil,
      sharesLocks: host == "alpha" && found["namesake"] == nil)
    #expect(recovery.rewritesFrom == (decided["rewrites"] == nil ? nil : from))
    #expect(recovery.length == trusted && recovery.from.offset == from)
    #expect(recovery.from.digests[.crc32] == Digest(Checksum(value: UInt32(from / 100))), "the mark's own checksum")
    #expect(recovery.needsNewInode == (decided["new-inode"] != nil))
    let confirms = UInt64(decided["confirms"] ?? "") ?? 0
    #expect(recovery.confirmation?.offset ?? 0 == confirms)
    #expect(recovery.confirmation == nil || recovery.durable == from)
    #expect(recovery.verifies == (decided["verifies"] == nil ? nil : recovery.from))
    if trusted == 0 { #expect(recovery.from == Mark.zero) }
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
    let journal = parsed("https://h/a\n\(lines.map { $0 + "\n" }.joined())").journal
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
        let journal = parsed("https://h/a\n\(lines.map { $0 + "\n" }.joined())").journal
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
