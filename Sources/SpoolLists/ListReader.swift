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
    case .sums, .sfv, .md5, .sha1, .sha256, .sha512:
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
