internal import Spool

/// Jobs as spool(5) describes them, separated by blank lines. A block of URLs alone is a job for each.
struct NativeList: LineFormat {
  private var block = Block.none

  private enum Block {
    case none
    /// The last bare URL, and what came after it. The URL is a job of its own if another follows; `isFirst` where none
    /// came before it in the block.
    case url(Stanza, isFirst: Bool)
    case job(Stanza)
    /// A bare URL, and behind it what cannot be used, up to the next URL or blank line.
    case ended(Stanza)
    /// What cannot be used, up to the next URL or blank line.
    case refused
    /// The same, up to the next blank line.
    case spoiled

    var isNone: Bool { if case .none = self { true } else { false } }
  }

  private struct Stanza {
    private(set) var text: String
    let line: Int
    /// One line of the list: a URL and a name.
    let isPair: Bool
    /// Those that the lines of the text have in the list: comments, of which there may be many, are none of them.
    private var numbers: [Int]

    init(_ line: ListLine) {
      (text, isPair) = (line.text + "\n", false)
      (self.line, numbers) = (line.number, [line.number])
    }

    init(_ pair: URLWithName, _ line: Int) {
      (text, isPair) = ("\(pair.url)\noutput: \(pair.name)\n", true)
      (self.line, numbers) = (line, [line, line])
    }

    func line(_ number: Int) -> Int { numbers.indices.contains(number - 1) ? numbers[number - 1] : line }

    mutating func append(_ line: ListLine) throws(Defect) {
      text += line.text
      text += "\n"
      numbers.append(line.number)
      if text.utf8.count > JobText.maximumRequest {
        throw Defect(line: line.number, reason: "a job has at most 64 KiB; a blank line ends it")
      }
    }
  }

  mutating func take(_ line: ListLine) throws(Defect) -> ListedJob? {
    let content = line.content
    if content.isEmpty { return try finish() }
    if content.utf8.first == UInt8(ascii: "#") { return nil }
    if case .spoiled = block { return nil }
    if LineLooks.isURL(content) { return try take(url: line) }
    switch block {
    case .job(let stanza): try grow(stanza, line)
    case _ where line.isIndented && LineLooks.isOption(line.text):
      throw Defect(line: line.number, reason: "an option as in aria2's input files: use --format aria2 for these")
    case _ where !LineLooks.isKey(content) || LineLooks.isURLWithoutSlash(content):
      pass(line)
      throw Defect(line: line.number, reason: LineLooks.odd(content))
    case .none: block = .job(Stanza(line))
    case .url(let stanza, isFirst: true): try grow(stanza, line)
    case .url(let stanza, isFirst: false):
      // It may be meant for the last of them, so that cannot be used either.
      block = .refused
      let advice =
        stanza.isPair
        ? "after a URL and a file name: write the two as lines of their own, `url: URL` and `output: NAME`"
        : "after several URLs, or another line: put a blank line before each job of more than one line"
      throw Defect(
        line: line.number, reason: "\(advice); without it, the URL in line \(stanza.line) cannot be used either")
    case .ended, .refused, .spoiled: break
    }
    return nil
  }

  mutating func refuse(_ line: ListLine) throws(Defect) -> ListedJob? {
    let content = line.content
    if content.utf8.first == UInt8(ascii: "#") { return nil }
    let isURL = LineLooks.isURL(content)
    var isOfJob = isURL || LineLooks.isKey(content)
    if case .job = block { isOfJob = isOfJob || LineLooks.isLikeURL(content) }
    guard isOfJob else {
      pass(line)
      return nil
    }
    switch block {
    case .url(let last, _) where isURL, .ended(let last) where isURL:
      block = .refused
      return try Self.job(last)
    case .url(let stanza, _), .job(let stanza):
      block = .spoiled
      throw Defect(line: stanza.line, reason: "the job has a line that cannot be read, so it cannot be used")
    case .none: block = isURL ? .refused : .spoiled
    case .ended, .refused, .spoiled: break
    }
    return nil
  }

  mutating func finish() throws(Defect) -> ListedJob? {
    defer { block = .none }
    switch block {
    case .none, .refused, .spoiled: return nil
    case .url(let stanza, _), .job(let stanza), .ended(let stanza): return try Self.job(stanza)
    }
  }

  private mutating func take(url line: ListLine) throws(Defect) -> ListedJob? {
    if case .job = block {
    } else if let reason = LineLooks.oddity(ofURL: line.content) {
      // The keys that follow are this one's.
      if case .url(let last, _) = block { block = .ended(last) } else if block.isNone { block = .refused }
      throw Defect(line: line.number, reason: reason)
    }
    let pair = URLWithName(line.content)
    let stanza = pair.map { Stanza($0, line.number) } ?? Stanza(line)
    switch block {
    case .none, .refused, .spoiled:
      block = .url(stanza, isFirst: pair == nil && block.isNone)
      return nil
    case .url(let last, _), .ended(let last):
      block = .url(stanza, isFirst: false)
      return try Self.job(last)
    case .job(let stanza):
      try grow(stanza, line)
      return nil
    }
  }

  private mutating func grow(_ stanza: Stanza, _ line: ListLine) throws(Defect) {
    var stanza = stanza
    block = .refused
    try stanza.append(line)
    block = .job(stanza)
  }

  /// Leaves out a line that is neither a URL nor a key. The keys behind it are its own if it looks like a URL, such as
  /// one without its scheme; otherwise it is not certain whether they are of the URL before it.
  private mutating func pass(_ line: ListLine) {
    let isLikeURL = LineLooks.isLikeURL(line.content)
    switch block {
    case .url(let last, _): block = isLikeURL ? .ended(last) : .url(last, isFirst: false)
    case .none where isLikeURL: block = .refused
    case .none, .job, .ended, .refused, .spoiled: break
    }
  }

  /// Read as a worker reads it. What a journal says is left out.
  private static func job(_ stanza: Stanza) throws(Defect) -> ListedJob {
    var text = stanza.text
    let read = text.withUTF8 { JobText(UnsafeRawBufferPointer($0)) }
    if let defect = read.defect ?? read.request.jobDefect {
      throw Defect(line: stanza.line(defect.line ?? 1), reason: defect.reason)
    }
    var job = ListedJob(read.request, line: stanza.line)
    job.request.urls = read.request.urls.map { .init(text: $0.text, number: stanza.line($0.number)) }
    return job
  }
}
