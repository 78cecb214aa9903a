internal import Spool

/// What the elements of one kind of feed mean. Paths are the names of the open elements, from the outermost; an element
/// of another namespace, such as those for iTunes, is the empty name.
protocol FeedVocabulary {
  /// The namespaces that its elements may be in.
  static var namespaces: Set<String> { get }
  /// The name of the outermost element.
  static var root: String { get }

  mutating func begin(_ attributes: [String: String], _ path: [String])
  /// Whether the text of the element at `path` is wanted.
  func wantsText(_ path: [String]) -> Bool
  /// The element at `path` has ended.
  /// - Parameter text: its text, if it is wanted, without white space around it.
  /// - Returns: the entries that are complete with it.
  mutating func end(_ text: String, _ path: [String], line: Int) throws(Defect) -> [FeedEntry]
}

/// RSS 2.0 and its forerunners 0.91 and 0.92. An item's enclosures are alternatives. Its length attribute is often
/// wrong, so it is not the file's size.
struct RSS: FeedVocabulary {
  static let namespaces: Set<String> = ["", "http://backend.userland.com/rss2"]
  static let root = "rss"

  private var item = EnclosingItem()
  private static let itemPath = ["rss", "channel", "item"]

  mutating func begin(_ attributes: [String: String], _ path: [String]) {
    if path == Self.itemPath { item = EnclosingItem() }
    if path == Self.itemPath + ["enclosure"], let url = attributes["url"] { item.add(url) }
  }

  func wantsText(_ path: [String]) -> Bool {
    path == Self.itemPath + ["guid"] || path == Self.itemPath + ["pubDate"]
  }

  mutating func end(_ text: String, _ path: [String], line: Int) -> [FeedEntry] {
    if path == Self.itemPath + ["guid"] { item.identity = text }
    if path == Self.itemPath + ["pubDate"] { item.date = FeedDate.rss(text) }
    return path == Self.itemPath ? item.entries : []
  }
}

/// Atom (RFC 4287). An entry's links with `rel="enclosure"` are alternatives.
struct Atom: FeedVocabulary {
  static let namespaces: Set<String> = ["http://www.w3.org/2005/Atom"]
  static let root = "feed"

  private var item = EnclosingItem()
  private static let itemPath = ["feed", "entry"]

  mutating func begin(_ attributes: [String: String], _ path: [String]) {
    if path == Self.itemPath { item = EnclosingItem() }
    if path == Self.itemPath + ["link"], attributes["rel"] == "enclosure", let url = attributes["href"] {
      item.add(url)
    }
  }

  func wantsText(_ path: [String]) -> Bool {
    path.count == 3 && path.starts(with: Self.itemPath) && ["id", "published", "updated"].contains(path[2])
  }

  mutating func end(_ text: String, _ path: [String], line: Int) -> [FeedEntry] {
    if wantsText(path) {
      switch path[2] {
      case "id": item.identity = text
      case "published": item.date = FeedDate.atom(text) ?? item.date
      default: item.date = item.date ?? FeedDate.atom(text)
      }
    }
    return path == Self.itemPath ? item.entries : []
  }
}

/// A docset feed of Dash and Zeal: one docset with its version, and URLs that are mirrors.
struct Docset: FeedVocabulary {
  static let namespaces: Set<String> = [""]
  static let root = "entry"

  private var version = ""
  private var urls: [String] = []

  mutating func begin(_ attributes: [String: String], _ path: [String]) {}

  func wantsText(_ path: [String]) -> Bool { path == ["entry", "version"] || path == ["entry", "url"] }

  mutating func end(_ text: String, _ path: [String], line: Int) throws(Defect) -> [FeedEntry] {
    switch path {
    case ["entry", "version"]: version = text
    case ["entry", "url"]: if !text.isEmpty { urls.append(text) }
    case ["entry"]:
      guard !version.isEmpty else { throw Defect(line: line, reason: "a docset feed without a version") }
      guard let first = urls.first else { throw Defect(line: line, reason: "a docset feed without a url") }
      let name = URLText(first).place.split(at: "/").last.map { String($0) } ?? first
      var entry = FeedEntry(identity: "\(name) \(version)", urls: urls)
      entry.replaces = true
      return [entry]
    default: break
    }
    return []
  }
}

/// An item with enclosures, while it is read.
private struct EnclosingItem {
  var identity = ""
  var date: Timestamp?
  private var urls: [String] = []

  mutating func add(_ url: String) {
    let url = url.trimmedAsXML
    if !url.isEmpty { urls.append(url) }
  }

  /// One for each enclosure. Without an identity of its own, the item is known by its first URL.
  var entries: [FeedEntry] {
    urls.map { FeedEntry(identity: identity.isEmpty ? urls[0] : identity, date: date, urls: [$0]) }
  }
}

enum EntryLimit {
  /// A list with more entries is refused.
  static let most = 100_000

  static func tooMany(_ line: Int) -> Defect { Defect(line: line, reason: "more than \(most) entries") }
}
