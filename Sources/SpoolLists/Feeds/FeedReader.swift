internal import Spool

/// Reads an XML feed. Which kind it is, its outermost element tells.
final class FeedReader: XMLReader.Receiver {
  /// Text in feeds may be XHTML, deep and long; it is not kept.
  private static let deepest = 256

  /// nil: whichever it is.
  private let wanted: EntryFormat?
  private var vocabulary: (any FeedVocabulary)?
  private var namespaces: Set<String> = []
  private var path: [String] = []
  private var entries: [FeedEntry] = []

  private init(_ wanted: EntryFormat?) { self.wanted = wanted }

  /// All entries of the feed, in its order.
  /// - Parameter format: rss, atom or docset; nil for whichever of them it is.
  /// - Throws: ``Defect``, ``SpoolError``.
  static func read(_ source: ByteSource, _ format: EntryFormat?) throws -> [FeedEntry] {
    let reader = FeedReader(format)
    let xml = try XMLReader(reader, deepest: deepest)
    while let block = try source.next() { try xml.take(block, isLast: false) }
    try xml.take([], isLast: true)
    return reader.entries
  }

  var keepsText: Bool { vocabulary?.wantsText(path) ?? false }

  func begin(_ element: XMLReader.Element, depth: Int, line: Int) throws(Defect) {
    if depth == 1 { try choose(element, line) }
    path.append(namespaces.contains(element.namespace) ? element.name : "")
    vocabulary?.begin(element.attributes, path)
  }

  func end(text: String, depth: Int, line: Int) throws(Defect) {
    let found = try vocabulary?.end(text.trimmedAsXML, path, line: line) ?? []
    path.removeLast()
    entries += found
    if entries.count > EntryLimit.most { throw EntryLimit.tooMany(line) }
  }

  private func choose(_ root: XMLReader.Element, _ line: Int) throws(Defect) {
    let kinds: [(EntryFormat, any FeedVocabulary.Type, () -> any FeedVocabulary)] = [
      (.rss, RSS.self, { RSS() }), (.atom, Atom.self, { Atom() }), (.docset, Docset.self, { Docset() }),
    ]
    guard let kind = kinds.first(where: { $0.1.root == root.name && $0.1.namespaces.contains(root.namespace) }) else {
      throw Defect(
        line: line, reason: "<\(escaped(root.name.prefix(40)))> is neither RSS 2.0, Atom, a docset feed nor Metalink")
    }
    if let wanted, wanted != kind.0 {
      throw Defect(line: line, reason: "this is \(kind.0.rawValue), but `entries:` says \(wanted.rawValue)")
    }
    (vocabulary, namespaces) = (kind.2(), kind.1.namespaces)
  }
}
