import Glibc

/// A spool in a temporary directory, made and read without the program's own code.
package final class TemporarySpool: Sendable {
  private let directory: TemporaryDirectory?
  /// The spool's root, an absolute path.
  package let root: String

  /// The states that a job can be in, by directory.
  package static let states = ["new", "urgent", "cur", "partial", "done", "failed", "hold"]

  /// - Parameter place: where to make it, if not in a temporary directory; whoever owns that removes it.
  package init(in place: String? = nil) throws {
    directory = place == nil ? try TemporaryDirectory() : nil
    root = "\(place ?? directory?.path ?? "")/spool"
    for path in [root] + (TemporarySpool.states + ["tmp", "files"]).map({ "\(root)/\($0)" }) {
      guard mkdir(path, 0o700) == 0 else { throw TestSupportError("mkdir", path, errno: errno) }
    }
  }

  /// The absolute path of something in the spool.
  package func path(_ relative: String) -> String {
    "\(root)/\(relative)"
  }

  /// The text of a file in the spool.
  package func text(_ relative: String) throws(TestSupportError) -> String { try readText(path(relative)) }

  /// Creates or replaces the contents of a file in the spool.
  package func write(_ relative: String, _ text: String) throws(TestSupportError) {
    try writeFile(path(relative), text)
  }

  package func write(_ relative: String, _ bytes: some Collection<UInt8>) throws(TestSupportError) {
    try writeFile(path(relative), bytes)
  }

  /// Drops a job as the protocol asks: written in `tmp/`, renamed into `new/`.
  package func drop(_ name: String, _ job: String) throws {
    try write("tmp/\(name)", job)
    guard rename(path("tmp/\(name)"), path("new/\(name)")) == 0 else {
      throw TestSupportError("rename", name, errno: errno)
    }
  }

  /// Makes a job that an earlier worker of this host and boot began: `partial/NAME` with its journal, due for two
  /// minutes, and `partial/NAME.part` with `part`.
  package func addPartial(_ name: String, job: String, facts: PartialFacts, part: [UInt8]) throws {
    let data = path("partial/\(name).part")
    try writeFile(data, part)
    guard let inode = fileStatus(data)?.st_ino else { throw TestSupportError("stat", data, errno: errno) }
    let lines = try facts.journal(inode: UInt64(inode), length: part.count, checksum: independentCRC32(part), of: job)
    try write("partial/\(name)", job + lines)
    try setModificationTime(path("partial/\(name)"), secondsFromNow: -120)
  }

  /// Makes a waiting job due, as `touch partial/NAME` does.
  package func makeDue(_ name: String) throws {
    try setModificationTime(path("partial/\(name)"), secondsFromNow: 0)
  }

  /// Where a job stands: each `DIRECTORY/ENTRY` whose name is `name`, with or without a claim. Lawful is one.
  package func places(of name: String) -> [String] {
    TemporarySpool.states.flatMap { state in
      names(in: path(state)).filter { $0 == name || $0.hasPrefix("\(name):") }.map { "\(state)/\($0)" }
    }
  }

  /// The length of a file of the spool; -1 if there is none.
  package func length(_ relative: String) -> Int { Int(fileStatus(path(relative))?.st_size ?? -1) }

  /// The one claim in `cur/`.
  package func claim(of job: String) throws -> String {
    let claims = places(of: job).filter { $0.hasPrefix("cur/") }
    guard claims.count == 1 else { throw TestSupportError("\(claims.count) claims of \(job)") }
    return claims[0]
  }

  /// The last `failed:` line of a job file.
  package func lastFailure(_ relative: String) throws -> JobLine {
    guard let line = try lines(relative).last(where: { $0.key == "failed" }) else {
      throw TestSupportError("no record of a failure in \(relative)")
    }
    return line
  }

  /// As mv(1) within the spool.
  package func move(_ from: String, _ to: String) throws {
    guard rename(path(from), path(to)) == 0 else { throw TestSupportError("rename \(from)", to, errno: errno) }
  }

  /// The names in one directory of the spool.
  package func names(_ state: String) -> [String] {
    names(in: path(state))
  }

  private func names(in path: String) -> [String] {
    TestSupport.names(in: path)
  }

  /// The lines of a job file, such as `done/NAME`.
  package func lines(_ relative: String) throws -> [JobLine] {
    JobLine.lines(of: try readFile(path(relative)))
  }

  /// The contents of a payload below `files/`; nil if it isn't there.
  package func payload(_ output: String) throws -> [UInt8]? {
    guard fileStatus(path("files/\(output)")) != nil else { return nil }
    return try readFile(path("files/\(output)"))
  }

  /// All payloads, as paths below `files/`.
  package var payloads: [String] {
    filesBelow(path("files"))
  }

  /// All entries of one job for the report of a failed test: lengths of data, job files in full.
  package func listing(of job: String) -> String {
    TemporarySpool.states.flatMap { state in
      names(state).filter { $0 == job || $0 == "\(job).part" || $0.hasPrefix("\(job):") }.map { name in
        let path = path("\(state)/\(name)")
        if name.hasSuffix(".part") { return "\(state)/\(name) (\(fileStatus(path)?.st_size ?? -1) bytes)" }
        do {
          return "\(state)/\(name):\n" + latin1(try readFile(path))
        } catch {
          return "\(state)/\(name): \(error)"
        }
      }
    }.joined(separator: "\n")
  }
}

/// What a journal says of the data that a job already has.
package struct PartialFacts: Sendable {
  /// The total that the response gave.
  package var size: Int?
  /// As sent, with quotes and `W/`.
  package var etag: String?
  /// An HTTP-date that was a strong validator.
  package var modified: String?
  package var isIfRangeIgnored = false

  package init(size: Int? = nil, etag: String? = nil, modified: String? = nil, isIfRangeIgnored: Bool = false) {
    self.size = size
    self.etag = etag
    self.modified = modified
    self.isIfRangeIgnored = isIfRangeIgnored
  }

  /// The lines of one attempt that a signal stopped.
  /// - Parameter job: the job's text, whose first URL was asked.
  func journal(inode: UInt64, length: Int, checksum: UInt32, of job: String) throws -> String {
    let boot = try readText("/proc/sys/kernel/random/boot_id").prefix { $0 != "\n" }
    let host = try hostName()
    let time = "2026-01-02T03:04:05Z"
    let asked = (job.split(separator: "\n").first { $0.contains("://") } ?? "").split(separator: " ").last ?? ""
    let parts = asked.split(separator: "?", maxSplits: 1)
    let query = parts.count < 2 ? "" : " query=\(hex8(independentCRC32(Array(parts[1].utf8))))"
    return """
      started: \(time) attempt=1 worker=\(host).1.0000 boot=\(boot) mirror=1 url=\(parts.first ?? "")\(query)
      response: mirror=1 at=0 part=\(inode)\(responseFields)
      interrupted: \(time) attempt=1 at=\(length) crc32=\(hex8(checksum)) reason="stopped by signal 15"

      """
  }

  /// What a `response:` line says of them, each field after a blank.
  package var responseFields: String {
    var response = ""
    if let size { response += " size=\(size)" }
    if let etag { response += " etag=\(quoted(etag))" }
    if let modified { response += " modified=\(quoted(modified))" }
    if isIfRangeIgnored { response += " if-range=ignored" }
    return response
  }

  private func quoted(_ value: String) -> String {
    let escaped = value.unicodeScalars.map { scalar in
      scalar == "\"" || scalar == "\\" ? "\\\(scalar)" : String(scalar)
    }
    return "\"\(escaped.joined())\""
  }
}
