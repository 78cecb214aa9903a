internal import Spool

/// SHA256SUMS and its kin, or an SFV file: names of files below a URL, and their digests. Lines of one file that follow
/// each other are one job.
struct ChecksumList: LineFormat {
  let isSFV: Bool
  /// Ends in a slash.
  let base: String
  let ignoresUnknown: Bool
  private var job: ListedJob?

  init(isSFV: Bool, base: String, ignoresUnknown: Bool) {
    self.isSFV = isSFV
    self.base = base
    self.ignoresUnknown = ignoresUnknown
  }

  mutating func take(_ line: ListLine) throws(Defect) -> ListedJob? {
    let content = line.content
    if content.isEmpty || content.begins(with: "#") || content.begins(with: ";") { return nil }
    guard let sum = parse(line.text[...]) else {
      if ignoresUnknown { return nil }
      throw Defect(
        line: line.number,
        reason: isSFV
          ? "must be a file's name and 8 hexadecimal digits"
          : "no line of a list of checksums: must be `DIGITS  NAME` or `SHA256 (NAME) = DIGITS`; "
            + "--ignore-unknown leaves such lines out")
    }
    guard let digest = sum.digest else {
      if ignoresUnknown { return nil }
      throw Defect(
        line: line.number,
        reason: "a checksum that is not one of \(DigestAlgorithm.listed); --ignore-unknown leaves such lines out")
    }
    if let output = job?.request.output, output.text.utf8.elementsEqual(sum.name.utf8) {
      try job?.request.declare(digest, line: line.number)
      return nil
    }
    let finished = job
    job = try Self.job(sum.name, digest, base, line.number)
    return finished
  }

  mutating func finish() -> ListedJob? { job.take() }

  private func parse(_ line: Substring) -> ChecksumLine? {
    isSFV ? ChecksumLine(sfv: line) : ChecksumLine(gnu: line) ?? ChecksumLine(tagged: line)
  }

  private static func job(_ name: String, _ digest: Digest, _ base: String, _ line: Int) throws(Defect) -> ListedJob {
    if name == "-" {
      throw Defect(line: line, reason: "`-` is the standard input of the program that wrote the list: name the file")
    }
    var job = ListedJob(line: line)
    try job.request.place(at: name, line: line)
    try job.request.add(url: base + percentEncoded(name), line: line)
    try job.request.declare(digest, line: line)
    return job
  }
}

/// A path as part of a URL: all but slashes and unreserved characters (RFC 3986 section 2.3) encoded.
func percentEncoded(_ path: String) -> String {
  var bytes: [UInt8] = []
  for byte in path.utf8 {
    switch byte {
    case 0x61...0x7A, 0x41...0x5A, 0x30...0x39, 0x2D, 0x2E, 0x2F, 0x5F, 0x7E: bytes.append(byte)
    default: bytes += [0x25] + hexadecimal(UInt64(byte), digits: 2).uppercased().utf8
    }
  }
  return String(decoding: bytes, as: UTF8.self)
}
