package import Spool

/// The entries of a list that a standing order watches, in the list's order, and what of it cannot be read. Nothing is
/// returned of a list that is cut, or is none.
package struct EntryList {
  /// Bytes of a list when it is inflated; a longer one is refused.
  private static let longest = 512 << 20
  /// Bytes of its entries, as they are printed.
  package static let longestOutput = 64 << 20

  private let source: ByteSource
  private let decoder: TextDecoder

  package init(contents: [UInt8]) throws { try self.init(ByteSource(contents)) }

  /// A list in a file, which may be gzipped. Opens what it takes to read the file, also the tables of its charset, and
  /// reads its first bytes.
  /// - Parameter path: nil for standard input.
  /// - Throws: ``Defect``, ``SpoolError``.
  package init(_ path: [UInt8]?) throws {
    let file = try ByteSource(PlainFile.open(path)).inflated()
    var left = Self.longest
    try self.init(
      ByteSource(parts: {
        let block = try file.next()
        left -= block?.count ?? 0
        if left < 0 { throw Defect(line: nil, reason: "the list is longer than \(Self.longest >> 20) MiB") }
        return block
      }))
  }

  private init(_ source: ByteSource) throws {
    self.source = source
    decoder = TextDecoder(try source.peek())
  }

  /// What keeps a list from being read, or its entries from being written.
  /// - Returns: also the exit status that says it (sysexits(3)).
  package static func failure(_ error: any Error) -> (status: Int32, reason: String) {
    switch error as? SpoolError {
    case nil: (65, "\(error)")
    case let error? where error.call == .write && error.isTooLargeHere:
      (65, "its entries take more than \(longestOutput >> 20) MiB")
    case let error?: (error.call == .open ? 66 : 74, "\(error)")
    }
  }

  /// - Parameter format: nil where it is told by the list's looks.
  /// - Parameter name: bytes of the list's own, which may say what its digests are; empty if it has none.
  /// - Throws: ``Defect``, ``SpoolError``.
  package func entries(_ format: EntryFormat?, name: [UInt8] = []) throws -> ReadList {
    let head = try source.peek()
    let looks = ListFormat.guess(by: head)
    switch format {
    case .rss, .atom, .docset: return try FeedReader.read(source, decoder, format)
    case .list: return try Self.listed(source, .native, name)
    case .metalink: return try Self.listed(source, .metalink, name)
    case .file: throw Defect(line: nil, reason: "a file is no list")
    case .sums: return try Self.listed(source, looks == .sfv ? .sfv : .sums, name)
    case nil:
      // What a server sends in place of a list may be nothing, perhaps behind a byte order mark.
      if head.allSatisfy({ $0 <= 0x20 || [0xEF, 0xBB, 0xBF, 0xFE, 0xFF].contains($0) }) {
        throw Defect(line: nil, reason: "the list is empty, as only one with `entries: list` may be")
      }
      if looks == .metalink ? !Self.isMetalink(head) : looks == .native && Self.hasFeed(head) {
        return try FeedReader.read(source, decoder, nil)
      }
      return try Self.listed(source, looks == .bagit ? .native : looks, name)
    }
  }

  /// Whether a feed begins behind text that is none, such as a server's warning.
  private static func hasFeed(_ head: [UInt8]) -> Bool {
    let text = String(decoding: head, as: UTF8.self)
    return ["<?xml ", "<rss", "<feed ", "<rdf:RDF"].contains { text.utf8.firstRange(of: $0.utf8) != nil }
  }

  /// Whether the outermost element of an XML file is Metalink's.
  private static func isMetalink(_ head: [UInt8]) -> Bool {
    // In UTF-16 each letter has a NUL beside it.
    let text = String(decoding: head.filter { $0 != 0 }, as: UTF8.self)
    var rest = text[...]
    while let start = rest.utf8.firstIndex(of: UInt8(ascii: "<")) {
      rest = rest[start...].dropFirstBytes()
      if rest.begins(with: "!--") {
        guard let end = rest.utf8.firstRange(of: "-->".utf8) else { return false }
        rest = rest[end.upperBound...]
      } else if !rest.begins(with: "?") {
        let name = rest.prefix(before: ">/ \t\r\n")
        return name == "metalink" || name.ends(with: ":metalink")
      }
    }
    return false
  }

  private static func listed(_ source: ByteSource, _ format: ListFormat, _ name: [UInt8]) throws -> ReadList {
    // Relative to the list's own URL, which only the worker knows.
    var options = ListOptions(format: format, base: "./", ignoresUnknown: format.needsBase)
    // Digests of 128 digits count as SHA-512, unless the list's name says something else: an order cannot say it.
    let isUnsaid = SumsNaming(format, of: name).isUnsaid
    options.name = isUnsaid ? Array("SHA512SUMS".utf8) : name
    let list = try ListReader(source, options)
    var found = ReadList()
    while let job = try list.next() {
      do throws(Defect) { found.entries.append(try entry(job)) } catch { list.leaveOut(error) }
      if found.entries.count > ReadList.mostEntries { throw ReadList.tooMany(job.line) }
    }
    (found.problems, found.isOfAskedURL) = (list.problems, format.needsBase)
    // An error page in place of the list has no such line, and hardly one that reads as a URL.
    if found.entries.isEmpty, format.needsBase {
      let first = isUnsaid ? "" : found.problems.named.first.map { "; \($0)" } ?? ""
      throw Defect(line: nil, reason: "no line is one of a list of checksums\(first)")
    }
    if !format.needsBase, found.problems.count > found.entries.count, let first = found.problems.named.first {
      throw first
    }
    return found
  }

  /// A file with a name and a digest is known by these, wherever it is; any other by its URLs as well.
  private static func entry(_ job: ListedJob) throws(Defect) -> FeedEntry {
    let request = job.request
    let path = (job.directory.map { $0 + "/" } ?? "") + (request.output?.text ?? "")
    let name = path.isEmpty ? nil : path
    let isDirectory = path.ends(with: "/")
    if let name, let reason = OutputPath.defect(of: isDirectory ? name + "x" : name) {
      throw Defect(line: job.line, reason: "the output `\(escaped(name.prefix(80)))` \(reason)")
    }
    let urls = request.urls.map(\.text)
    let digests = request.expected.digests.all.map { "\($0)" }
    let isKnown = name != nil && !isDirectory && !digests.isEmpty
    var entry = FeedEntry(
      identity: ((name.map { [$0] } ?? []) + digests + (isKnown ? [] : urls)).joined(separator: " "), name: name,
      urls: urls)
    // An order has no lists of pieces.
    entry.expected = Expectation(size: request.expected.size, digests: request.expected.digests)
    return entry
  }
}
