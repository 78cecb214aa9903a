internal import Spool

/// Reads an XML feed. Which kind it is, its outermost element tells.
final class FeedReader: XMLReader.Receiver {
  /// Text in feeds may be XHTML, deep and long; it is not kept.
  private static let deepest = 256

  private let wanted: EntryFormat?
  private var vocabulary: (any FeedVocabulary)?
  private var path: [String] = []
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
    var list = ReadList()
    list.entries = reader.distinctEntries
    if list.entries.isEmpty, !reader.items.isEmpty {
      list.problems.note("none of its \(reader.items.count) items has an enclosure, which is a link to a file")
    }
    list.problems.add(xml.problems)
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

  func begin(_ element: XMLReader.Element, line: Int) throws(Defect) {
    if path.isEmpty { try choose(element, line) }
    path.append(vocabulary?.namespaces.contains(element.namespace) == true ? element.name : "")
    vocabulary?.begin(element, path)
  }

  func end(text: String, line: Int) throws(Defect) {
    defer { path.removeLast() }
    guard let item = try vocabulary?.end(text.trimmedAsXML, path, line: line) else { return }
    items.append(item)
    count += item.count
    if max(count, items.count) > ReadList.mostEntries { throw ReadList.tooMany(line) }
  }

  private func choose(_ root: XMLReader.Element, _ line: Int) throws(Defect) {
    let kinds: [any FeedVocabulary] = [ItemFeed.rss(root.namespace), ItemFeed.rdf, ItemFeed.atom, Docset()]
    guard let kind = kinds.first(where: { $0.root == root.name && $0.namespaces.contains(root.namespace) }) else {
      throw Defect(
        line: line, reason: "<\(escaped(root.name.prefix(40)))> is neither RSS, Atom, a docset feed nor Metalink")
    }
    if let wanted, wanted != kind.format {
      throw Defect(line: line, reason: "this is \(kind.format.rawValue), but `entries:` says \(wanted.rawValue)")
    }
    vocabulary = kind
  }
}

/// What the elements of one kind of feed mean. Paths are the names of the open elements, from the outermost; an element
/// of another namespace, such as those for iTunes, is the empty name.
protocol FeedVocabulary {
  var format: EntryFormat { get }
  var namespaces: Set<String> { get }
  var root: String { get }

  mutating func begin(_ element: XMLReader.Element, _ path: [String])
  func wantsText(_ path: [String]) -> Bool
  /// The element at `path` has ended.
  /// - Parameter text: its text, if it is wanted, without white space around it.
  /// - Returns: the entries of the item that is complete with it; nil if none is.
  mutating func end(_ text: String, _ path: [String], line: Int) throws(Defect) -> [FeedEntry]?
}

/// A feed of items, whose enclosures are alternatives. The length that one gives is often wrong: it is not the file's
/// size.
struct ItemFeed: FeedVocabulary {
  let format: EntryFormat
  let namespaces: Set<String>
  let itemPath: [String]
  let enclosure: String
  let links: [String]
  /// The element that tells items apart; nil: the item's attribute `about`.
  let identity: String?
  /// The elements that are a date, the best first.
  let dates: [String]
  let date: @Sendable (String) -> Timestamp?
  private var item = EnclosingItem()
  /// Of Atom's links (RFC 4287 section 4.2.7.2).
  private static let relations = ["enclosure", "http://www.iana.org/assignments/relation/enclosure"]

  /// RSS 2.0 and its forerunners 0.91 and 0.92. They have no namespace, but several are used for them.
  static func rss(_ namespace: String) -> ItemFeed {
    ItemFeed(
      format: .rss, namespaces: ["", namespace], itemPath: ["rss", "channel", "item"], enclosure: "enclosure",
      links: ["url"], identity: "guid", dates: ["pubDate"], date: { FeedDate.rss($0) ?? FeedDate.atom($0) })
  }

  /// RSS 1.0 and 0.90, whose items are beside the channel and known by `rdf:about`, with enclosures of the module
  /// mod_enclosure (purl.oclc.org/net/rss_2.0/enc), or as RSS 2.0 has them.
  static let rdf = ItemFeed(
    format: .rss,
    namespaces: [
      "http://www.w3.org/1999/02/22-rdf-syntax-ns#", "http://purl.org/rss/1.0/",
      "http://my.netscape.com/rdf/simple/0.9/", "http://purl.oclc.org/net/rss_2.0/enc#",
      "http://purl.org/dc/elements/1.1/",
    ],
    itemPath: ["RDF", "item"], enclosure: "enclosure", links: ["resource", "url"], identity: nil, dates: ["date"],
    date: FeedDate.atom)

  /// Atom (RFC 4287).
  static let atom = ItemFeed(
    format: .atom, namespaces: ["http://www.w3.org/2005/Atom"], itemPath: ["feed", "entry"], enclosure: "link",
    links: ["href"], identity: "id", dates: ["published", "updated"], date: FeedDate.atom)

  var root: String { itemPath[0] }

  mutating func begin(_ element: XMLReader.Element, _ path: [String]) {
    let attributes = element.attributes
    if path == itemPath {
      item = EnclosingItem()
      if identity == nil { item.identity = attributes["about"]?.trimmedAsXML ?? "" }
    }
    if element.namespace == "http://search.yahoo.com/mrss/", element.name == "content", path.starts(with: itemPath) {
      item.add(attributes["url"]?.trimmedAsXML ?? "", from: element.base, attributes["type"], isMedia: true)
    }
    guard path == itemPath + [enclosure], let url = links.lazy.compactMap({ attributes[$0] }).first,
      format != .atom || Self.relations.contains(attributes["rel"] ?? "")
    else { return }
    item.add(url.trimmedAsXML, from: element.base, attributes["type"])
  }

  func wantsText(_ path: [String]) -> Bool {
    path.dropLast() == itemPath[...] && ([identity] + dates).contains(path.last)
  }

  mutating func end(_ text: String, _ path: [String], line: Int) -> [FeedEntry]? {
    if path == itemPath { return item.entries }
    guard wantsText(path) else { return nil }
    switch path.last {
    case identity: item.identity = text
    case dates.first: item.date = date(text) ?? item.date
    default: item.date = item.date ?? date(text)
    }
    return nil
  }
}

/// A docset feed of Dash and Zeal: one docset with its version, and URLs that are mirrors.
struct Docset: FeedVocabulary {
  let format = EntryFormat.docset
  let namespaces: Set<String> = [""]
  let root = "entry"

  private var version = ""
  private var urls: [String] = []

  mutating func begin(_ element: XMLReader.Element, _ path: [String]) {}

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

private struct EnclosingItem {
  var identity = ""
  var date: Timestamp?
  private var enclosures: [Link] = []
  /// Those of Media RSS, which count where there is no enclosure. Most are pictures for a text.
  private var soundAndFilm: [Link] = []

  private typealias Link = (url: String, rank: Int)

  private static let pictures: Set<String> = ["jpg", "jpeg", "png", "gif", "webp"]
  private static let media: Set<String> = [
    "mp3", "m4a", "m4b", "aac", "ogg", "oga", "opus", "flac", "wav", "mp4", "m4v", "mkv", "webm", "mov",
  ]

  mutating func add(_ url: String, from base: String, _ type: String?, isMedia: Bool = false) {
    if url.isEmpty { return }
    let link = (url: resolved(url, against: base), rank: Self.rank(url, type?.trimmedAsXML.lowercasedASCII ?? ""))
    if !isMedia { enclosures.append(link) } else if link.rank == 0 { soundAndFilm.append(link) }
  }

  /// Sound and film come before other files, and pictures, which are covers mostly, behind them.
  private static func rank(_ url: String, _ type: String) -> Int {
    let name = url.prefix(before: "?#").split(at: "/").last ?? ""
    let end = name.split(at: ".", omittingEmptySubsequences: false).dropFirst().last
    let suffix = end?.lowercasedASCII ?? ""
    if type.begins(with: "audio/") || type.begins(with: "video/") { return 0 }
    if type.begins(with: "image/") { return 2 }
    return media.contains(suffix) ? 0 : pictures.contains(suffix) ? 2 : 1
  }

  /// One for each enclosure, the best first. Without an identity of its own, the item is known by its first URL.
  var entries: [FeedEntry] {
    let links = enclosures.isEmpty ? soundAndFilm : enclosures
    let identity = identity.isEmpty ? links.first?.url ?? "" : identity
    return links.sorted { $0.rank < $1.rank }.map { FeedEntry(identity: identity, date: date, urls: [$0.url]) }
  }
}

private enum FeedDate {
  /// RFC 822 section 5 as RSS uses it: `Sat, 07 Sep 2002 09:42:31 GMT`, also without the day of the week and the
  /// seconds; nil for anything else.
  static func rss(_ text: String) -> Timestamp? {
    var words = text.split(at: " \t,\r\n")
    if let first = words.first, first.utf8.first.map({ 0x61...0x7A ~= $0 | 0x20 }) == true { words.removeFirst() }
    guard words.count >= 4, let day = number(words[0]), var year = number(words[2]),
      let month = months.firstIndex(of: words[1].prefix(3).lowercasedASCII),
      let time = Self.time(words[3]), let offset = words.count > 4 ? Self.offset(words[4]) : 0
    else { return nil }
    // RFC 822 had two digits; some programs write three (RFC 5322 section 4.3).
    switch words[2].utf8.count {
    case 2: year += year < 70 ? 2000 : 1900
    case 3: year += 1900
    default: break
    }
    return moment(year, month + 1, day, time, offset)
  }

  /// RFC 3339: `2003-12-13T18:30:02.25+01:00`; also without the seconds, the zone, which is UTC then, or the time, as
  /// W3CDTF has it; nil for anything else.
  static func atom(_ text: String) -> Timestamp? {
    let parts = text.utf8.split(maxSplits: 1) { "Tt ".utf8.contains($0) }.map { Substring($0) }
    let days = parts.first?.split(at: "-", omittingEmptySubsequences: false) ?? []
    guard days.count == 3, days[0].utf8.count == 4, let year = number(days[0]), let month = number(days[1]),
      (1...12).contains(month), let day = number(days[2])
    else { return nil }
    guard parts.count == 2 else { return moment(year, month, day, 0, 0) }
    let clock = parts[1].utf8.prefix { 0x30...0x3A ~= $0 }
    var zone = Substring(parts[1].utf8[clock.endIndex...])
    if zone.begins(with: ".") { zone = Substring(zone.utf8.dropFirst().drop { 0x30...0x39 ~= $0 }) }
    guard let time = Self.time(Substring(clock)), let offset = Self.offset(trimmed(zone)) else { return nil }
    return moment(year, month, day, time, offset)
  }

  private static let months = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"]

  /// Hours from UTC.
  private static let zones = [
    "UT": 0, "GMT": 0, "UTC": 0, "Z": 0, "EST": -5, "EDT": -4, "CST": -6, "CDT": -5, "MST": -7, "MDT": -6, "PST": -8,
    "PDT": -7,
  ]

  private static func number(_ text: Substring) -> Int? {
    guard (1...4).contains(text.utf8.count), text.utf8.allSatisfy({ (0x30...0x39).contains($0) }) else { return nil }
    return Int(text)
  }

  /// `09:42` or `09:42:31` in seconds. A leap second counts as the one after it.
  private static func time(_ text: Substring) -> Int? {
    let parts = text.split(at: ":", omittingEmptySubsequences: false).map(number)
    guard (2...3).contains(parts.count), let hours = parts[0], let minutes = parts[1],
      let seconds = parts.count == 3 ? parts[2] : 0, hours < 25, minutes < 60, seconds < 61
    else { return nil }
    return hours * 3600 + minutes * 60 + seconds
  }

  /// `+0100`, `+01:00` or a name, in seconds. Names that are not known count as UTC (RFC 5322 section 4.3): a few hours
  /// do less harm than no date.
  private static func offset(_ text: Substring) -> Int? {
    if text.utf8.allSatisfy({ 0x61...0x7A ~= $0 | 0x20 }) { return (zones[text.uppercased()] ?? 0) * 3600 }
    let text = Substring(text.split(at: ":").joined())
    guard text.utf8.count == 5, let sign = ["+": 1, "-": -1][String(text.prefix(1))],
      let hours = number(text.dropFirst().prefix(2)), let minutes = number(text.suffix(2)), minutes < 60
    else { return nil }
    return sign * (hours * 3600 + minutes * 60)
  }

  private static func moment(_ year: Int, _ month: Int, _ day: Int, _ time: Int, _ offset: Int) -> Timestamp? {
    func padded(_ value: Int, _ width: Int) -> String {
      String(repeating: "0", count: max(0, width - "\(value)".utf8.count)) + "\(value)"
    }
    // Refuses days that do not exist.
    guard let midnight = Timestamp("\(padded(year, 4))-\(padded(month, 2))-\(padded(day, 2))") else { return nil }
    return midnight + Int64(time - offset)
  }
}
