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
  /// - Returns: the entries of the item that is complete with it; nil if none is.
  mutating func end(_ text: String, _ path: [String], line: Int) throws(Defect) -> [FeedEntry]?
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
    if path == Self.itemPath + ["enclosure"], let url = attributes["url"] { item.add(url, attributes["type"]) }
  }

  func wantsText(_ path: [String]) -> Bool {
    path == Self.itemPath + ["guid"] || path == Self.itemPath + ["pubDate"]
  }

  mutating func end(_ text: String, _ path: [String], line: Int) -> [FeedEntry]? {
    if path == Self.itemPath + ["guid"] { item.identity = text }
    if path == Self.itemPath + ["pubDate"] { item.date = FeedDate.rss(text) }
    return path == Self.itemPath ? item.entries : nil
  }
}

/// RSS 1.0 and 0.90, whose items are beside the channel and known by `rdf:about`, with enclosures of the module
/// mod_enclosure (purl.oclc.org/net/rss_2.0/enc), or as RSS 2.0 has them.
struct RDF: FeedVocabulary {
  static let namespaces: Set<String> = [
    "http://www.w3.org/1999/02/22-rdf-syntax-ns#", "http://purl.org/rss/1.0/",
    "http://my.netscape.com/rdf/simple/0.9/", "http://purl.oclc.org/net/rss_2.0/enc#",
    "http://purl.org/dc/elements/1.1/",
  ]
  static let root = "RDF"

  private var item = EnclosingItem()
  private static let itemPath = ["RDF", "item"]

  mutating func begin(_ attributes: [String: String], _ path: [String]) {
    if path == Self.itemPath {
      item = EnclosingItem()
      item.identity = attributes["about"]?.trimmedAsXML ?? ""
    }
    if path == Self.itemPath + ["enclosure"], let url = attributes["resource"] ?? attributes["url"] {
      item.add(url, attributes["type"])
    }
  }

  func wantsText(_ path: [String]) -> Bool { path == Self.itemPath + ["date"] }

  mutating func end(_ text: String, _ path: [String], line: Int) -> [FeedEntry]? {
    if wantsText(path) { item.date = FeedDate.atom(text) }
    return path == Self.itemPath ? item.entries : nil
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
      item.add(url, attributes["type"])
    }
  }

  func wantsText(_ path: [String]) -> Bool {
    path.count == 3 && path.starts(with: Self.itemPath) && ["id", "published", "updated"].contains(path[2])
  }

  mutating func end(_ text: String, _ path: [String], line: Int) -> [FeedEntry]? {
    if wantsText(path) {
      switch path[2] {
      case "id": item.identity = text
      case "published": item.date = FeedDate.atom(text) ?? item.date
      default: item.date = item.date ?? FeedDate.atom(text)
      }
    }
    return path == Self.itemPath ? item.entries : nil
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

  mutating func end(_ text: String, _ path: [String], line: Int) throws(Defect) -> [FeedEntry]? {
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
    return nil
  }
}

/// An item with enclosures, while it is read.
private struct EnclosingItem {
  var identity = ""
  var date: Timestamp?
  private var enclosures: [(url: String, rank: Int)] = []

  private static let pictures: Set<String> = ["jpg", "jpeg", "png", "gif", "webp"]
  private static let media: Set<String> = [
    "mp3", "m4a", "m4b", "aac", "ogg", "oga", "opus", "flac", "wav", "mp4", "m4v", "mkv", "webm", "mov",
  ]

  mutating func add(_ url: String, _ type: String?) {
    let url = url.trimmedAsXML
    if !url.isEmpty { enclosures.append((url, Self.rank(url, type?.trimmedAsXML.lowercasedASCII ?? ""))) }
  }

  /// Sound and film come before other files, and pictures, which are covers mostly, behind them.
  private static func rank(_ url: String, _ type: String) -> Int {
    let place = url.utf8.prefix { $0 != UInt8(ascii: "?") && $0 != UInt8(ascii: "#") }
    let name = place.split(separator: UInt8(ascii: "/")).last ?? place
    let end = name.split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false).dropFirst().last
    let suffix = end.map { Substring($0).lowercasedASCII } ?? ""
    if type.begins(with: "audio/") || type.begins(with: "video/") { return 0 }
    if type.begins(with: "image/") { return 2 }
    return media.contains(suffix) ? 0 : pictures.contains(suffix) ? 2 : 1
  }

  /// One for each enclosure, the best first. Without an identity of its own, the item is known by its first URL.
  var entries: [FeedEntry] {
    let identity = identity.isEmpty ? enclosures.first?.url ?? "" : identity
    let order = enclosures.indices.sorted { (enclosures[$0].rank, $0) < (enclosures[$1].rank, $1) }
    return order.map { FeedEntry(identity: identity, date: date, urls: [enclosures[$0].url]) }
  }
}

enum EntryLimit {
  /// A list with more entries is refused.
  static let most = 100_000

  static func tooMany(_ line: Int) -> Defect { Defect(line: line, reason: "more than \(most) entries") }
}
