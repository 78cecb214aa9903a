internal import Spool

/// The jobs of a list, one after the other. Holds only a few lines at a time.
package final class ListReader {
  /// As it was named, or recognized from the list's first bytes.
  package let format: ListFormat
  private var body: Body

  private enum Body {
    case lines(LineReader, any LineFormat)
    case metalink(MetalinkReader)
  }

  /// - Parameter path: the list's file; nil for standard input.
  /// - Throws: ``Defect``, ``SpoolError``.
  package convenience init(_ path: [UInt8]?, _ options: ListOptions) throws {
    let file = try GzipFile(path)
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
    let lines = LineReader(source)
    switch format {
    case .native: body = .lines(lines, NativeList())
    case .aria2: body = .lines(lines, Aria2List(ignoresUnknown: options.ignoresUnknown))
    case .sums, .sfv:
      body = .lines(lines, ChecksumList(isSFV: format == .sfv, base: base, ignoresUnknown: options.ignoresUnknown))
    case .metalink: body = .metalink(try MetalinkReader(source))
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

  /// nil at the end.
  /// - Throws: ``Defect``, ``SpoolError``.
  package func next() throws -> ListedJob? {
    switch body {
    case .metalink(let reader): return try reader.next()
    case .lines(var lines, var format):
      defer { body = .lines(lines, format) }
      while let line = try lines.next() {
        if let job = try format.take(line) { return job }
      }
      return try format.finish()
    }
  }
}
