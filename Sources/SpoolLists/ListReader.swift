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
    var options = options
    options.name = options.name ?? path.map { Array($0[Self.directory(of: $0).count...]) }
    try self.init(ByteSource(PlainFile.open(path)).inflated(), options, directory: path.map { Self.directory(of: $0) })
  }

  /// A list in memory, which may be gzipped, without files beside it.
  package convenience init(contents: [UInt8], _ options: ListOptions) throws {
    try self.init(ByteSource(contents).inflated(), options, directory: nil)
  }

  /// - Parameter directory: where the list is; nil where that is not known.
  init(_ source: ByteSource, _ options: ListOptions, directory: [UInt8]? = nil) throws {
    format = try options.format ?? ListFormat.guess(by: source.peek())
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
        let fact =
          directory == nil
          ? "its manifest, which is a file beside it, is not known here"
          : "there is no manifest-sha256.txt or the like beside it"
        throw Defect(line: nil, reason: "\(fact): --ignore-unknown adds the files without digests")
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
      if let defect = line.defect { problems.note(defect) }
      return Result { () throws(Defect) in try line.defect == nil ? format.take(line) : format.refuse(line) }
    }
  }
}

extension ListFormat {
  /// The format that a list seems to have.
  /// - Parameter head: the list's first bytes.
  static func guess(by head: [UInt8]) -> ListFormat {
    var text =
      ByteSource.isLittleEndian(head).map { String(decoding: ByteSource.units(head, isLittle: $0), as: UTF16.self) }
      ?? String(decoding: head, as: UTF8.self)
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

/// What the jobs of one list want, and which of it several want. A million fit 32 MiB, because of each only a hash is
/// kept, with a key of this process.
package protocol ListTable {
  /// What several want, so that those for which it can be changed need something else.
  var contested: Set<Int> { get }
  /// What came in its place.
  var given: Set<Int> { get set }

  /// Whether a job wants it, or has it from the list.
  func isWanted(_ text: Fingerprint) -> Bool
}

extension ListTable {
  package func isContested(_ text: Fingerprint) -> Bool { contested.contains(text.low) }

  /// Gives something in place of what is contested.
  /// - Returns: whether no other job has or wants it.
  package mutating func give(_ text: Fingerprint) -> Bool { !isWanted(text) && given.insert(text.low).inserted }
}

package struct ListNames: ListTable {
  private var wanted: Set<Int> = []
  package private(set) var contested: Set<Int> = []
  package var given: Set<Int> = []

  package init() {}

  package mutating func want(_ name: Fingerprint) {
    if !wanted.insert(name.low).inserted { contested.insert(name.low) }
  }

  package func isWanted(_ name: Fingerprint) -> Bool { wanted.contains(name.low) }
}

/// The outputs of jobs, and the jobs that have them.
package struct ListOutputs: ListTable {
  /// By the output; the lowest bit says whether the list itself gives it, so that it cannot be changed.
  private var first: [Int: Int] = [:]
  /// The further jobs of an output: nearly always none.
  private var others: Set<Fingerprint> = []
  package private(set) var contested: Set<Int> = []
  package var given: Set<Int> = []

  package init() {}

  package enum Finding { case new, repeated, taken }

  /// - Parameter job: all that it asks for.
  /// - Parameter isFixed: whether the list itself gives the output.
  /// - Returns: also whether the list gives another job the same.
  package mutating func note(_ output: Fingerprint, of job: Fingerprint, isFixed: Bool) -> Finding {
    let bit = isFixed ? 1 : 0
    guard let known = first[output.low] else {
      first[output.low] = job.low & ~1 | bit
      return .new
    }
    if known & ~1 == job.low & ~1 || !others.insert(job).inserted { return .repeated }
    first[output.low] = known | bit
    if known & bit == 1 { return .taken }
    contested.insert(output.low)
    return .new
  }

  package func isWanted(_ output: Fingerprint) -> Bool { first[output.low] != nil }
}
