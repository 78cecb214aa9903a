import Glibc
import TestSupport

/// A job file as it stands somewhere in the spool.
struct JobFile {
  let state: String
  /// The entry's name, with the claim.
  let entry: String
  let inode: UInt64
  let lines: [JobLine]

  /// Without the claim.
  var name: String { state == "cur" ? String(entry.prefix { $0 != ":" }) : entry }
  var place: String { "\(state)/\(entry)" }
  var output: String? { lines.first { $0.key == "output" }?.words.first }

  func last(_ key: String) -> JobLine? { lines.last { $0.key == key } }

  /// The index of the last line with this key; -1 if there is none.
  private func index(of key: String) -> Int { lines.lastIndex { $0.key == key } ?? -1 }

  /// All job files of a spool, whatever their names.
  static func all(in spool: TemporarySpool) throws -> [JobFile] {
    try TemporarySpool.states.flatMap { state in
      try spool.names(state).compactMap { entry -> JobFile? in
        let place = "\(state)/\(entry)"
        guard !entry.hasSuffix(".part"), !entry.hasSuffix(".record"), let status = fileStatus(spool.path(place)),
          status.st_mode & S_IFMT == S_IFREG
        else { return nil }
        return JobFile(state: state, entry: entry, inode: UInt64(status.st_ino), lines: try spool.lines(place))
      }
    }
  }

  /// What the next worker has to ask for, if the process just died and the machine lives on.
  indirect enum Expectation: Equatable {
    case anything
    /// All the data is there.
    case nothing
    case from(Int)
    /// From the last checkpoint at the earliest.
    case atLeast(Int)
    /// The death may have cut off the last line.
    case either(Expectation, Expectation)
  }

  func expectation(in spool: TemporarySpool) throws -> Expectation {
    let dataPath = spool.path("partial/\(name).part")
    guard let response = last("response"), let status = fileStatus(dataPath), status.st_mode & S_IFMT == S_IFREG else {
      return .anything
    }
    let failure = last("failed")?["code"] ?? ""
    if index(of: "failed") > index(of: "response"), failure.hasPrefix("mismatch") { return .anything }
    let bytes = try readFile(dataPath)
    let start = last("started")
    let isOurs = start?["worker"]?.hasPrefix("\(try hostName()).") == true
    let checkpoint =
      index(of: "checkpoint") > index(of: "response") ? last("checkpoint")?.words.first.flatMap { Int($0) } ?? 0 : 0
    let isKnown = isOurs && response["part"] == "\(status.st_ino)"
    let trusted = isKnown ? bytes.count : checkpoint
    // Cut down below the checkpoint: it was thrown away.
    guard trusted > 0, trusted <= bytes.count, Version.current.bytes.starts(with: bytes[..<trusted]) else {
      return .anything
    }
    if !isKnown { return .atLeast(resumePoint(after: trusted, from: Self.brokenFrom(lines) ?? trusted)) }
    let proofs = ["crc32", "sha256", "md5", "pieces"]
    let isProven = trusted == Version.length && lines.contains { proofs.contains($0.key) }
    func request(_ lines: some Collection<JobLine>) -> Expectation {
      if !isProven, let floor = Self.brokenFrom(lines), floor < trusted {
        return .from(resumePoint(after: trusted, from: floor))
      }
      return trusted == Version.length ? .nothing : .from(trusted)
    }
    let (whole, torn) = (request(lines), request(lines.dropLast()))
    return whole == torn ? whole : .either(whole, torn)
  }

  /// Where the answer began whose end is in doubt; nil if there is none (INTERNALS.md, answers that break off).
  private static func brokenFrom(_ lines: some Collection<JobLine>) -> Int? {
    var broken: Int?
    for line in lines {
      switch line.key {
      case "response":
        let offset = line["at"].flatMap { Int($0) } ?? 0
        broken = min(broken ?? offset, offset)
      case "interrupted": broken = line["broken"].flatMap { Int($0) }
      case "failed":
        let isCut = ["cut", "short-body", "stalled"].contains(line["code"])
        broken = line["broken"].flatMap { Int($0) } ?? (isCut || line["crc32"] == nil ? broken : nil)
      case "verified": broken = nil
      default: break
      }
    }
    return broken
  }
}
