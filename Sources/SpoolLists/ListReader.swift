package import Spool

/// The jobs of a list, one after the other. Holds only a few lines at a time.
package final class ListReader {
  /// As it was named, or recognized from the list's first bytes.
  package let format: ListFormat
  /// What was left out so far. To refuse the list for it is the caller's decision.
  package private(set) var problems = ListProblems()
  private var body: Body

  private enum Body {
    case lines(LineReader, any LineFormat)
    case metalink(MetalinkReader)
  }

  /// - Parameter path: the list's file; nil for standard input.
  /// - Throws: ``Defect``, ``SpoolError``.
  package convenience init(_ path: [UInt8]?, _ options: ListOptions) throws {
    let file = try GzipFile(path)
    var options = options
    options.name = options.name ?? path.map { Array($0[Self.directory(of: $0).count...]) }
    try self.init(ByteSource { try file.read(into: $0) }, options, directory: path.map { Self.directory(of: $0) })
  }

  /// A list in memory, without files beside it.
  package convenience init(contents: [UInt8], _ options: ListOptions) throws {
    try self.init(ByteSource(contents), options, directory: nil)
  }

  /// - Parameter directory: where the list is; nil where that is not known.
  init(_ source: ByteSource, _ options: ListOptions, directory: [UInt8]? = nil) throws {
    format = try options.format ?? FormatGuess.format(of: source.peek())
    if format.needsBase, options.base == nil {
      throw Defect(line: nil, reason: "a list of checksums names no URLs: say with --base URL where its files are")
    }
    let base = options.base ?? ""
    // expat reads UTF-16 itself, because an XML file says its encoding.
    let lines = LineReader(format == .metalink ? source : try source.inUTF8())
    switch format {
    case .native: body = .lines(lines, NativeList())
    case .metalink: body = .metalink(try MetalinkReader(source))
    case .aria2: body = .lines(lines, Aria2List())
    case .sums, .sfv, .md5, .sha1, .sha256, .sha512, .blake2b, .sha3:
      let naming = SumsNaming(format, of: options.name ?? [])
      body = .lines(lines, ChecksumList(isSFV: format == .sfv, base: base, naming: naming))
    case .bagit:
      let manifest = try directory.flatMap { try BagManifest.beside($0) }
      if manifest == nil, !options.ignoresUnknown {
        throw Defect(
          line: nil,
          reason:
            "there is no manifest-sha256.txt or the like beside it: --ignore-unknown adds the files without digests")
      }
      body = .lines(lines, BagItList(manifest: manifest))
    }
  }

  private static func directory(of path: [UInt8]) -> [UInt8] {
    path.lastIndex(of: 0x2F).map { Array(path[...$0]) } ?? []
  }

  /// The next job that can be used; nil at the end.
  /// - Throws: ``Defect`` where the rest cannot be read; ``SpoolError``.
  package func next() throws -> ListedJob? {
    while let entry = try nextEntry() {
      switch entry {
      case .success(let job): if let job { return job }
      case .failure(let defect): problems.note(defect)
      }
    }
    return nil
  }

  /// Notes that a job cannot be used, for a reason that the reader does not know of.
  package func leaveOut(_ defect: Defect) { problems.note(defect) }

  /// A job that ends with the next line, if one does; nil at the end.
  private func nextEntry() throws -> Result<ListedJob?, Defect>? {
    switch body {
    case .metalink(let reader): return try reader.next()?.map { $0 }
    case .lines(var lines, var format):
      defer { body = .lines(lines, format) }
      guard let line = try lines.next() else {
        let last = Result { () throws(Defect) in try format.finish() }
        if case .success(nil) = last { return nil }
        return last
      }
      return line.flatMap { line in Result { () throws(Defect) in try format.take(line) } }
    }
  }
}

/// Tells a list's format by its looks.
enum FormatGuess {
  /// - Parameter head: the list's first bytes.
  static func format(of head: [UInt8]) -> ListFormat {
    var text =
      ByteSource.isLittleEndian(head).map {
        String(decoding: ByteSource.units(head, isLittle: $0), as: UTF16.self)
      } ?? String(decoding: head, as: UTF8.self)
    // A byte order mark.
    if text.unicodeScalars.first == "\u{FEFF}" { text.unicodeScalars.removeFirst() }
    // The last line may be cut.
    if head.count == ByteSource.blockSize, let end = text.utf8.lastIndex(of: 0x0A) { text = String(text[...end]) }
    let lines = text.split(at: "\r\n")
    let begun = lines.drop { $0.utf8.allSatisfy(isBlank) || $0.begins(with: "#") }
    guard let first = begun.first else { return .native }
    if trimmed(first).begins(with: "<") { return .metalink }
    if first.begins(with: ";") { return .sfv }
    if LineLooks.isURL(first) { return formatOfURLs(lines, first) }
    if ChecksumLine(first) != nil || first.begins(with: "-----BEGIN PGP") { return .sums }
    // A long name has a line of its own.
    if let name = ChecksumLine(gpg: first), name.value.isEmpty, let next = begun.dropFirst().first,
      ChecksumLine.Rest(next)?.isLong == true
    {
      return .sums
    }
    return ChecksumLine(sfv: first) != nil && !first.utf8.contains(": ".utf8) ? .sfv : .native
  }

  private static func formatOfURLs(_ lines: [Substring], _ first: Substring) -> ListFormat {
    if BagItLine(first) != nil { return .bagit }
    // An option, or several URLs in a line.
    let isAria2 = lines.contains { line in
      if line.utf8.first.map(isBlank) == true { return LineLooks.isOption(line) }
      return LineLooks.isURL(line) && line.split(at: "\t").count(where: LineLooks.isURL) > 1
    }
    return isAria2 ? .aria2 : .native
  }
}

/// The names that the jobs of one list want, or the outputs, and which of them several want.
///
/// They are kept as fingerprints, so that a million names fit 32 MiB.
package struct ListNames: Sendable {
  private var wanted: Set<Fingerprint> = []
  /// Those that the list itself gives, and that so cannot be changed.
  private var fixed: Set<Fingerprint> = []
  private var contested: Set<Fingerprint> = []
  /// The names that came in place of contested ones.
  private var given: Set<Fingerprint> = []

  package init() {}

  package mutating func want(_ name: [UInt8]) {
    let print = Fingerprint(name)
    if fixed.contains(print) || !wanted.insert(print).inserted { contested.insert(print) }
  }

  /// Takes note of a name that cannot be changed.
  /// - Returns: whether no other such job has it.
  package mutating func fix(_ name: [UInt8]) -> Bool {
    let print = Fingerprint(name)
    if wanted.contains(print) { contested.insert(print) }
    return fixed.insert(print).inserted
  }

  /// Whether several jobs want a name, so that those for which it can be changed need others.
  package var isAnyContested: Bool { !contested.isEmpty }

  package func isContested(_ name: [UInt8]) -> Bool { contested.contains(Fingerprint(name)) }

  /// Whether a job wants it, or has it from the list.
  package func isWanted(_ name: [UInt8]) -> Bool {
    let print = Fingerprint(name)
    return wanted.contains(print) || fixed.contains(print)
  }

  /// Gives a name in place of a contested one.
  /// - Returns: whether no other job has or wants it.
  package mutating func give(_ name: [UInt8]) -> Bool { !isWanted(name) && given.insert(Fingerprint(name)).inserted }
}
