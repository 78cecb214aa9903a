package import Spool

/// A job as a list asks for it. Its URLs are not checked yet.
package struct ListedJob: Sendable, Equatable {
  package var request: JobRequest
  /// The directory below the output root in which the list puts it, apart from `output:`; nil for none.
  package var directory: String?
  /// Of the pieces of its file, which ``request`` does not name yet.
  package var pieces: PieceList?
  /// The line of the list where it begins, from 1.
  package let line: Int

  package init(_ request: JobRequest = JobRequest(), line: Int) { (self.request, self.line) = (request, line) }
}

/// The formats of lists. The raw value is that of `--format`.
package enum ListFormat: String, CaseIterable, Sendable {
  /// Jobs separated by blank lines, and plain URLs.
  case native
  /// An input file of aria2 (aria2c(1), Input File).
  case aria2
  /// SHA256SUMS and similar lists: as sha256sum(1) prints them, or with BSD tags.
  case sums
  /// The same; the digests without the name of an algorithm are of this one.
  case md5, sha1, sha256, sha512, blake2b, sha3 = "sha3-256"
  /// A file name and its CRC-32 in each line.
  case sfv
  /// Metalink 4 (RFC 5854) or 3.
  case metalink
  /// fetch.txt of a BagIt bag (RFC 8493 section 2.2.3).
  case bagit

  /// Names files, and no URLs: needs the URL that they are below.
  package var needsBase: Bool { self == .sums || self == .sfv || algorithm != nil }

  var algorithm: DigestAlgorithm? { DigestAlgorithm(rawValue: rawValue) }
}

package struct ListOptions: Sendable {
  /// nil: recognized from the list's first bytes.
  package var format: ListFormat?
  /// The URL that files are below; ends in a slash.
  package var base: String?
  /// The list's own, which may say what its digests are, without a directory; nil for that of its file.
  package var name: [UInt8]?
  /// Whether what cannot be used is left out. Otherwise the list is refused.
  package var ignoresUnknown: Bool

  /// - Parameter base: a URL; the slash at its end may be missing.
  package init(format: ListFormat? = nil, base: String? = nil, ignoresUnknown: Bool = false) {
    self.format = format
    self.base = base.map { $0.ends(with: "/") ? $0 : $0 + "/" }
    self.ignoresUnknown = ignoresUnknown
  }
}

/// A format that is read line by line. A job may need several lines, so each comes out with a later one.
protocol LineFormat {
  /// - Throws: ``Defect`` with the line's number.
  mutating func take(_ line: ListLine) throws(Defect) -> ListedJob?
  /// Leaves out a line that cannot be read, and the job that it may belong to.
  mutating func refuse(_ line: ListLine) throws(Defect) -> ListedJob?
  mutating func finish() throws(Defect) -> ListedJob?
}

extension LineFormat {
  /// Each line is about a file of its own.
  mutating func refuse(_ line: ListLine) -> ListedJob? { nil }
}

extension JobRequest {
  /// Takes in the value of a key as the list has it in `line`.
  mutating func set(_ key: JobKey, _ text: String, line: Int) throws(Defect) {
    do throws(Defect) { try set(key, text) } catch { throw Defect(line: line, reason: error.reason) }
  }

  /// Adds a URL that is still to be checked, but is one value of a job.
  /// - Throws: ``Defect`` for line breaks and other control characters, which XML may contain.
  mutating func add(url: some StringProtocol, line: Int) throws(Defect) {
    if url.utf8.contains(where: { $0 < 0x20 || $0 == 0x7F }) {
      throw Defect(line: line, reason: "url: a line break, or another control character")
    }
    urls.append(Line(text: String(url), number: line))
  }

  /// - Throws: ``Defect`` where another value of the same algorithm is declared.
  mutating func declare(_ digest: Digest, line: Int) throws(Defect) {
    if let known = expected.digests[digest.algorithm], known != digest {
      throw Defect(line: line, reason: "two different values of \(digest.algorithm.rawValue) for one file")
    }
    expected.digests[digest.algorithm] = digest
  }

  /// Sets the output: a name in the list, which must follow the rules of `output:`.
  mutating func place(at path: String, line: Int) throws(Defect) {
    // A job's reader takes away the blanks around a value.
    let isKept = trimmed(path[...]) == path[...]
    if let reason = isKept ? OutputPath.defect(of: path) : "begins or ends with a blank" {
      throw Defect(line: line, reason: "the name `\(escaped(path.prefix(80)))` \(reason)")
    }
    output = Line(text: path, number: line)
  }
}
