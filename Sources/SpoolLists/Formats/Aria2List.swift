internal import Spool

/// An input file of aria2 (aria2c(1), Input File): mirrors with tabs between them, and indented options below. What
/// `--save-session` writes is one, too.
struct Aria2List: LineFormat {
  let ignoresUnknown: Bool
  private var job: ListedJob?
  private var name: String?

  init(ignoresUnknown: Bool) { self.ignoresUnknown = ignoresUnknown }

  mutating func take(_ line: ListLine) throws(Defect) -> ListedJob? {
    let content = line.content
    if content.isEmpty || content.utf8.first == UInt8(ascii: "#") { return nil }
    if line.isIndented {
      try take(option: content, line.number)
      return nil
    }
    let finished = try finish()
    var job = ListedJob(line: line.number)
    // Tabs between mirrors, at the end, or with blanks beside them.
    for url in line.text.utf8.split(separator: UInt8(ascii: "\t")).map({ trimmed(Substring($0)) }) where !url.isEmpty {
      try job.request.add(url: url, line: line.number)
    }
    self.job = job
    return finished
  }

  mutating func finish() throws(Defect) -> ListedJob? {
    defer { (job, name) = (nil, nil) }
    guard var job else { return nil }
    if let name { try job.request.place(at: name, line: job.line) }
    return job
  }

  private mutating func take(option: Substring, _ line: Int) throws(Defect) {
    guard job != nil else { throw Defect(line: line, reason: "an option before the first URL") }
    guard let equals = option.utf8.firstIndex(of: UInt8(ascii: "=")) else {
      throw Defect(line: line, reason: "neither a URL nor an indented option=value")
    }
    let value = String(trimmed(option[equals...].dropFirstBytes()))
    switch trimmed(option[..<equals]) {
    case "out": name = value
    case "dir": job?.directory = Self.directory(value)
    case "checksum": try take(checksum: value, line)
    case "header": try job?.request.set(.header, value, line: line)
    case "referer" where value != "*": try job?.request.set(.referer, value, line: line)
    case "user-agent": try job?.request.set(.userAgent, value, line: line)
    // The session's own number of the download.
    case "gid": break
    case let other:
      if ignoresUnknown { return }
      throw Defect(
        line: line,
        reason: "the option `\(escaped(other.prefix(40)))` has no counterpart here: remove it, or give --ignore-unknown"
      )
    }
  }

  /// Without `./` at the start and slashes at the end; nil for the directory itself.
  private static func directory(_ text: String) -> String? {
    var text = text[...]
    while text.begins(with: "./") { text = text.dropFirstBytes(2) }
    while text.utf8.count > 1, text.ends(with: "/") { text = Substring(text.utf8.dropLast()) }
    return text.isEmpty || text == "." ? nil : String(text)
  }

  /// `TYPE=DIGEST`, such as `sha-256=…`.
  private mutating func take(checksum: String, _ line: Int) throws(Defect) {
    let parts = checksum.split(at: "=", maxSplits: 1)
    guard parts.count == 2, let algorithm = DigestAlgorithm(title: parts[0]) else {
      if ignoresUnknown { return }
      throw Defect(line: line, reason: "checksum: must be TYPE=DIGEST, of the types \(DigestAlgorithm.listed)")
    }
    guard let digest = Digest(algorithm, String(parts[1])) else {
      throw Defect(line: line, reason: "checksum: must be \(algorithm.wanted)")
    }
    try job?.request.declare(digest, line: line)
  }
}
