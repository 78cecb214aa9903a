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
  /// The entries of each item that has ended.
  private var items: [[FeedEntry]] = []
  private var count = 0

  private init(_ wanted: EntryFormat?) { self.wanted = wanted }

  /// All entries of the feed, in its order.
  /// - Parameter format: rss, atom or docset; nil for whichever of them it is.
  /// - Throws: ``Defect``, ``SpoolError``.
  static func read(_ source: ByteSource, _ decoder: TextDecoder, _ format: EntryFormat?) throws -> ReadList {
    let reader = FeedReader(format)
    let xml = try XMLReader(reader, deepest: deepest, mending: XMLMender(decoder))
    while let block = try source.next() { try xml.take(block, isLast: false) }
    try xml.take([], isLast: true)
    var list = reader.list
    list.problems.add(xml.problems)
    return list
  }

  private var list: ReadList {
    var list = ReadList()
    list.entries = distinctEntries
    if count == 0, !items.isEmpty {
      list.problems.note("none of its \(items.count) items has an enclosure, which is a link to a file")
    }
    return list
  }

  /// Some feeds give one identity to several items. Unless these have the same URLs, each is known by its own.
  private var distinctEntries: [FeedEntry] {
    var links: [String: String] = [:]
    var shared: Set<String> = []
    for item in items {
      guard let key = item.first?.key else { continue }
      let own = PayloadName.fingerprint(of: item.flatMap(\.urls))
      if links.updateValue(own, forKey: key).map({ $0 != own }) ?? false { shared.insert(key) }
    }
    return items.flatMap { item in
      guard let first = item.first, let url = first.urls.first, shared.contains(first.key) else { return item }
      return item.map { $0.sharingIdentity(with: url) }
    }
  }

  var keepsText: Bool { vocabulary?.wantsText(path) ?? false }

  func begin(_ element: XMLReader.Element, depth: Int, line: Int) throws(Defect) {
    if depth == 1 { try choose(element, line) }
    path.append(namespaces.contains(element.namespace) ? element.name : "")
    vocabulary?.begin(element.attributes, path)
  }

  func end(text: String, depth: Int, line: Int) throws(Defect) {
    defer { path.removeLast() }
    guard let item = try vocabulary?.end(text.trimmedAsXML, path, line: line) else { return }
    items.append(item)
    count += item.count
    if max(count, items.count) > EntryLimit.most { throw EntryLimit.tooMany(line) }
  }

  private func choose(_ root: XMLReader.Element, _ line: Int) throws(Defect) {
    let kinds: [(EntryFormat, any FeedVocabulary.Type, () -> any FeedVocabulary)] = [
      (.rss, RSS.self, { RSS() }), (.rss, RDF.self, { RDF() }), (.atom, Atom.self, { Atom() }),
      (.docset, Docset.self, { Docset() }),
    ]
    guard let kind = kinds.first(where: { $0.1.root == root.name && $0.1.namespaces.contains(root.namespace) }) else {
      throw Defect(
        line: line, reason: "<\(escaped(root.name.prefix(40)))> is neither RSS, Atom, a docset feed nor Metalink")
    }
    if let wanted, wanted != kind.0 {
      throw Defect(line: line, reason: "this is \(kind.0.rawValue), but `entries:` says \(wanted.rawValue)")
    }
    (vocabulary, namespaces) = (kind.2(), kind.1.namespaces)
  }
}
