internal import Spool

/// SHA256SUMS and its kin, or an SFV file: names of files below a URL, and their digests. Lines of one file that follow
/// each other are one job.
struct ChecksumList: LineFormat {
  let isSFV: Bool
  /// Ends in a slash.
  let base: String
  let naming: SumsNaming
  private var job: ListedJob?
  /// A digest of the job whose digits may go on in the next line, and its line; without a job, one that is of no use,
  /// and why.
  private var open: (sum: ChecksumLine, line: Int, defect: Defect?)?
  /// How the lines end that are not the list's, but of OpenPGP's frame around it (RFC 9580 section 7).
  private var frameEnd: String?
  /// Files whose digests contradict each other: no further line makes one of them a job.
  private var refused: Set<ExactText> = []

  init(isSFV: Bool, base: String, naming: SumsNaming) { (self.isSFV, self.base, self.naming) = (isSFV, base, naming) }

  mutating func take(_ line: ListLine) throws(Defect) -> ListedJob? {
    if isFrame(line.content) { return nil }
    if open != nil, let rest = ChecksumLine.Rest(line.content) {
      open?.sum.append(rest)
      return nil
    }
    let content = line.content
    if content.isEmpty || content.begins(with: "#") || content.begins(with: ";") { return nil }
    guard let sum = isSFV ? ChecksumLine(sfv: content) : ChecksumLine(line.text[...]) ?? ChecksumLine(gpg: content)
    else {
      throw Defect(
        line: line.number,
        reason: isSFV
          ? "must be a file's name and 8 hexadecimal digits"
          : "no line of a list of checksums: must be `DIGITS  NAME` or `SHA256 (NAME) = DIGITS`")
    }
    let name: String
    if let own = sum.name { name = own } else { name = try naming.file(line.number) }
    let isRefused = refused.contains(name.exact)
    if isRefused, !sum.isOpen { return nil }
    let digest = sum.isOpen ? nil : try naming.digest(sum, line.number)
    var finished = Result<ListedJob?, Defect>.success(nil)
    var defect: Defect?
    if let output = job?.request.output, output.text.utf8.elementsEqual(name.utf8) {
      try close()
    } else {
      var next: ListedJob?
      do throws(Defect) { if !isRefused { next = try Self.job(name, base, line.number) } } catch  where sum.isOpen {
        defect = error
      }
      finished = Result { () throws(Defect) in try finish() }
      job = next
    }
    if let digest { try declare(digest, line.number) } else { open = (sum, line.number, defect) }
    return try finished.get()
  }

  mutating func finish() throws(Defect) -> ListedJob? {
    defer { job = nil }
    try close()
    return job
  }

  /// A signed list has a few lines before it, up to a blank one, and its signature behind it.
  private mutating func isFrame(_ content: Substring) -> Bool {
    if content.begins(with: "-----BEGIN PGP ") {
      frameEnd = content.begins(with: "-----BEGIN PGP SIGNED MESSAGE") ? "" : "-----END PGP "
    } else if let end = frameEnd {
      if end.isEmpty ? content.isEmpty : content.begins(with: end) { frameEnd = nil }
    } else {
      return false
    }
    return true
  }

  /// A file with contradicting digests cannot be used.
  private mutating func declare(_ digest: Digest, _ line: Int) throws(Defect) {
    guard var changed = job.take() else { return }
    do throws(Defect) { try changed.request.declare(digest, line: line) } catch {
      if let output = changed.request.output { refused.insert(output.text.exact) }
      throw error
    }
    job = changed
  }

  /// The digits of the open digest are all there.
  private mutating func close() throws(Defect) {
    guard let (sum, line, defect) = open.take() else { return }
    if let defect { throw defect }
    if job == nil { return }
    // gpg(1) prints digests by all algorithms that it has.
    let isKnown = sum.title.map { DigestAlgorithm(title: $0) != nil } ?? true
    if !isKnown, job?.request.expected.digests.isEmpty == false { return }
    do throws(Defect) { try declare(naming.digest(sum, line), line) } catch {
      job = nil
      throw error
    }
  }

  private static func job(_ name: String, _ base: String, _ line: Int) throws(Defect) -> ListedJob {
    if name == "-" {
      throw Defect(line: line, reason: "`-` is the standard input of the program that wrote the list: name the file")
    }
    var job = ListedJob(line: line)
    try job.request.place(at: name, line: line)
    try job.request.add(url: base + percentEncoded(name, keeping: "-._~/"), line: line)
    return job
  }
}
