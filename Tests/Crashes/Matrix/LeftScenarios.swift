import Glibc
import TestSupport

/// What an earlier worker left.
extension Scenario {
  static let left = [
    Scenario(name: "resume", setUp: { try $0.addHalf(of: .current) }),
    Scenario(
      name: "take-over",
      setUp: { world in
        try world.addHalf(of: .current)
        try world.edit("partial/a") { lines in lines.removeAll { $0.hasPrefix("interrupted: ") } }
        try world.move("partial/a", "cur/a:\(try hostName()).1.00000000")
      }),
    Scenario(
      name: "requeue",
      setUp: { world in
        try world.addHalf(of: .current)
        try world.edit("partial/a") { lines in
          let mark = "at=\(Version.half) crc32=\(hex8(independentCRC32(Version.current.bytes[..<Version.half])))"
          lines.append(
            #"failed: 2026-01-02T03:04:06Z attempt=2 class=permanent code=http-403 \#(mark) reason="forbidden""#)
        }
        try world.move("partial/a", "new/a")
      }),
    Scenario(
      // A person moved it there while it waited for its next attempt.
      name: "urgent",
      setUp: { world in
        try world.addHalf(of: .current)
        try world.move("partial/a", "urgent/a")
      }),
    Scenario(
      // The remote changed since: what is there must not be joined with what comes.
      name: "changed remote",
      setUp: { world in
        try world.addHalf(of: .previous)
        try world.edit("partial/a") { lines in
          let sum = hex8(independentCRC32(Version.previous.bytes[..<8192]))
          lines.insert("checkpoint: 8192 crc32=\(sum)", at: lines.count - 1)
        }
      }),
    Scenario(
      // A worker of another host got to a checkpoint, and its machine stopped: what lies beyond is not what was
      // fetched.
      name: "other host",
      setUp: { world in
        try world.addHalf(of: .current)
        let sum = hex8(independentCRC32(Version.current.bytes[..<8192]))
        try world.edit("partial/a") { lines in
          let own = "worker=\(try hostName())."
          lines = lines.map { $0.hasPrefix("started: ") ? $0.replacing(own, with: "worker=elsewhere.") : $0 }
          lines[lines.count - 1] = "checkpoint: 8192 crc32=\(sum)"
        }
        let data = world.spool.path("partial/a.part")
        let descriptor = open(data, O_WRONLY)
        defer { close(descriptor) }
        let zeros = [UInt8](repeating: 0, count: Version.half - 8192)
        guard pwrite(descriptor, zeros, zeros.count, 8192) == zeros.count else {
          throw TestSupportError("pwrite \(data)")
        }
      }),
    Scenario(
      // Dead between the record of a failure and the move that it calls for.
      name: "unfinished record",
      setUp: { world in
        try world.addHalf(of: .current)
        try world.edit("partial/a") { lines in
          let mark = "at=\(Version.half) crc32=\(hex8(independentCRC32(Version.current.bytes[..<Version.half])))"
          let failure = "failed: 2026-01-02T03:04:06Z attempt=2 class=temporary code=cut"
          lines.append("\(failure) \(mark) retry=2026-01-02T04:04:06Z reason=\"cut\"")
        }
        try world.move("partial/a", "cur/a:\(try hostName()).1.00000000")
      }),
  ]
}

extension World {
  /// Job `a` with the first half of `version`, waiting in `partial/` and due.
  func addHalf(of version: Version) throws {
    try spool.addPartial(
      "a", job: job([], output: "a.bin"), facts: PartialFacts(size: Version.length, etag: version.etag),
      part: Array(version.bytes[..<Version.half]))
  }

  /// Whether a job has data.
  var hasData: Bool {
    spool.names("partial").contains {
      $0.hasSuffix(".part") && fileStatus(spool.path("partial/\($0)"))?.st_size ?? 0 > 0
    }
  }

  /// Changes the lines of a job file, which stays due.
  func edit(_ path: String, _ change: (inout [String]) throws -> Void) throws {
    var lines = String(decoding: try readFile(spool.path(path)), as: UTF8.self).split(separator: "\n").map(String.init)
    try change(&lines)
    try writeFile(spool.path(path), Array((lines.joined(separator: "\n") + "\n").utf8))
    try setModificationTime(spool.path(path), secondsFromNow: -60)
  }

  func move(_ from: String, _ to: String) throws {
    guard rename(spool.path(from), spool.path(to)) == 0 else { throw TestSupportError("rename \(from) \(to)") }
  }
}
