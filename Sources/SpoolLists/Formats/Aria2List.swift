internal import Spool

/// An input file of aria2 (aria2c(1), Input File): mirrors with tabs between them, and indented options below. What
/// `--save-session` writes is one, too.
struct Aria2List: LineFormat {
  private var job: ListedJob?
  private var name: String?
  /// The options here belong to a job that cannot be used.
  private var skips = false

  mutating func take(_ line: ListLine) throws(Defect) -> ListedJob? {
    let content = line.content
    if content.isEmpty || content.utf8.first == UInt8(ascii: "#") { return nil }
    if line.isIndented {
      if skips { return nil }
      try take(option: content, line.number)
      return nil
    }
    let finished = job
    let place = name
    (job, name, skips) = (ListedJob(line: line.number), nil, false)
    // Tabs between mirrors, at the end, or with blanks beside them. A line has no control bytes but those.
    for url in line.text.utf8.split(separator: UInt8(ascii: "\t")).map({ trimmed(Substring($0)) }) where !url.isEmpty {
      try job?.request.add(url: url, line: line.number)
    }
    return try Self.placed(finished, at: place)
  }

  mutating func refuse(_ line: ListLine) throws(Defect) -> ListedJob? {
    if line.content.utf8.first == UInt8(ascii: "#") { return nil }
    defer { (job, name, skips) = (nil, nil, true) }
    if !line.isIndented { return try Self.placed(job, at: name) }
    guard let job else { return nil }
    throw Defect(line: job.line, reason: "the job has an option that cannot be read, so it cannot be used")
  }

  mutating func finish() throws(Defect) -> ListedJob? {
    defer { (job, name) = (nil, nil) }
    return try Self.placed(job, at: name)
  }

  private static func placed(_ job: ListedJob?, at name: String?) throws(Defect) -> ListedJob? {
    guard var job else { return nil }
    if let name { try job.request.place(at: name, line: job.line) }
    return job
  }

  /// An option that is not known is left out, and the job goes on.
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
    case "header": try change { job throws(Defect) in try job.set(.header, value, line: line) }
    case "referer" where value != "*": try change { job throws(Defect) in try job.set(.referer, value, line: line) }
    case "user-agent": try change { job throws(Defect) in try job.set(.userAgent, value, line: line) }
    // The session's own number of the download.
    case "gid": break
    case let other:
      throw Defect(line: line, reason: "the option `\(escaped(other.prefix(40)))` has no counterpart here: remove it")
    }
  }

  /// If an option has a wrong value, its job cannot be used.
  private mutating func change(_ body: (inout JobRequest) throws(Defect) -> Void) throws(Defect) {
    guard var changed = job else { return }
    do throws(Defect) { try body(&changed.request) } catch {
      (job, name, skips) = (nil, nil, true)
      throw error
    }
    job = changed
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
      throw Defect(line: line, reason: "checksum: must be TYPE=DIGEST, of the types \(DigestAlgorithm.listed)")
    }
    try change { job throws(Defect) in
      guard let digest = Digest(algorithm, String(parts[1])) else {
        throw Defect(line: line, reason: "checksum: must be \(algorithm.wanted)")
      }
      try job.declare(digest, line: line)
    }
  }
}
