internal import Spool

/// A line of fetch.txt: the URL, the length or `-`, the file's path in the bag (RFC 8493 section 2.2.3).
struct BagItLine {
  let url: Substring
  let size: Substring
  let path: String

  init?(_ line: Substring) {
    let parts = line.split(maxSplits: 2, whereSeparator: { $0 == " " || $0 == "\t" })
    guard parts.count == 3, FormatGuess.isURL(parts[0]),
      parts[1] == "-" || parts[1].utf8.allSatisfy({ (0x30...0x39).contains($0) })
    else { return nil }
    (url, size) = (parts[0], parts[1])
    path = Self.decoded(trimmed(parts[2]))
  }

  /// A path in a bag: line breaks and the percent sign itself are encoded, and nothing else (RFC 8493 section 2.1.3).
  static func decoded(_ path: Substring) -> String {
    guard path.contains("%") else { return String(path) }
    return String(path).replacing(/%(25|0[AaDd])/) { match in
      switch match.1.lowercased() {
      case "25": "%"
      case "0a": "\n"
      default: "\r"
      }
    }
  }
}

/// fetch.txt of a BagIt bag, with the digests of the manifest beside it.
struct BagItList: LineFormat {
  let manifest: BagManifest?

  mutating func take(_ line: ListLine) throws(Defect) -> ListedJob? {
    if line.content.isEmpty { return nil }
    guard let item = BagItLine(line.text[...]) else {
      throw Defect(line: line.number, reason: "must be a URL, a length or `-`, and a path, as in a bag's fetch.txt")
    }
    var job = ListedJob(line: line.number)
    job.request.add(url: item.url, line: line.number)
    if item.size != "-" { try job.request.set(.size, String(item.size), line: line.number) }
    guard item.path.hasPrefix("data/") else {
      throw Defect(line: line.number, reason: "a path that is not below data/: a bag fetches only its payload")
    }
    try job.request.place(at: item.path, line: line.number)
    guard let manifest else { return job }
    guard let digest = try manifest.digest(of: item.path) else {
      throw Defect(line: line.number, reason: "`\(escaped(item.path))` is not in \(manifest.name)")
    }
    try job.request.declare(digest, line: line.number)
    return job
  }

  mutating func finish() -> ListedJob? { nil }
}
