/// A file that a list offers, as `spoolrun-entries` prints it and the worker reads it.
package struct FeedEntry: Sendable, Equatable {
  /// What stays the same while this entry is in the list, whatever else of it changes. Entries of one identity are
  /// alternatives: only one of them is wanted.
  package private(set) var identity: String
  /// When it was published, as the list says; nil if it does not.
  package let date: Timestamp?
  /// The path that the list gives the file, or, with a slash at the end, its directory; nil where the URL says all.
  package var name: String?
  /// Mirrors, as in the list: perhaps relative to the list's own URL.
  package var urls: [String]
  /// The size and the digests that the list states.
  package var expected = Expectation()
  /// Whether it is a version of the only file in the list, and takes the place of older ones.
  package var replaces = false
  /// What the list says it is known by, where other entries say the same, so that ``identity`` has its URL as well.
  package private(set) var sharedIdentity: String?

  /// Bytes of an identity that are kept; a longer one becomes a digest of itself.
  private static let longestIdentity = 500

  package init(identity: String, date: Timestamp? = nil, name: String? = nil, urls: [String]) {
    self.identity = Self.short(identity)
    (self.date, self.name) = (date, name)
    self.urls = JobRequest.mirrors(urls)
  }

  private init(_ entry: FeedEntry, sharing url: String) {
    self = entry
    (sharedIdentity, identity) = (entry.identity, Self.short("\(entry.identity) \(url)"))
  }

  private static func short(_ identity: String) -> String {
    identity.utf8.count <= longestIdentity ? identity : "sha256:\(PayloadName.fingerprint(of: [identity]))"
  }

  /// The same entry in a list where others have its identity, and are no alternatives.
  /// - Parameter url: the first one of it and its alternatives.
  package func sharingIdentity(with url: String) -> FeedEntry { FeedEntry(self, sharing: url) }

  /// 16 hexadecimal digits that stand for the identity, in a journal and in a job's name.
  package var key: String { Self.key(of: identity) }

  /// What ``key`` would be, or is, if other entries had the same identity.
  package var keyWithURL: String { sharedIdentity == nil ? sharingIdentity(with: urls.first ?? "").key : key }

  /// 16 hexadecimal digits that stand for a text.
  package static func key(of text: String) -> String { String(PayloadName.fingerprint(of: [text]).prefix(keyLength)) }

  /// 16 hexadecimal digits that stand for a URL without its query, which may be another one each time.
  package static func link(_ url: String) -> String {
    key(of: String(Substring(url.utf8.prefix { $0 != UInt8(ascii: "?") && $0 != UInt8(ascii: "#") })))
  }

  /// Whether a name ends as those of the jobs that orders drop.
  package static func isKeyed(_ name: JobName) -> Bool {
    let end = name.fileName.bytes.suffix(keyLength + 1)
    return end.count > keyLength && end.first == UInt8(ascii: "-")
      && end.dropFirst().allSatisfy { (0x30...0x39).contains($0) || (0x61...0x66).contains($0) }
  }

  package static let keyLength = Journal.Checks.keyLength
}

/// The text is a native list (spoolrun.1, LISTS) in which a comment before each job says what only a standing order
/// needs.
extension FeedEntry {
  private static let head = "# entry: "

  /// The entry as a job of a native list, with the blank line behind it; nil if it has no URL, one with a line break or
  /// another control character, or one that is too long for a job.
  package var text: String? {
    var request = JobRequest()
    request.urls = urls.map { .init(text: $0, number: 0) }
    request.output = name.map { .init(text: $0, number: 0) }
    request.expected = expected
    let body = request.text
    let hasControls = body.utf8.contains { $0 < 0x20 && $0 != 0x0A || $0 == 0x7F }
    let lines = body.utf8.count { $0 == 0x0A }
    let wanted = urls.count + (name == nil ? 0 : 1) + (expected.size == nil ? 0 : 1) + expected.digests.all.count
    if urls.isEmpty || hasControls || lines != wanted || urls.contains(where: \.isEmpty) { return nil }
    let fields = Fields().with("id", identity).with("date", date).with("shared", sharedIdentity)
      .with("replaces", replaces ? "yes" : nil)
    let text = Self.head + fields.text + "\n" + body + "\n"
    return text.utf8.count > JobText.maximumRequest ? nil : text
  }

  fileprivate static func entry(_ stanza: ArraySlice<UInt8>, line: Int) throws(Defect) -> FeedEntry {
    let text = stanza.withUnsafeBytes { JobText($0) }
    guard let fields = fields(stanza, head), let identity = fields["id"], text.defect == nil, !text.hasTornTail
    else { throw Defect(line: line, reason: "no entry: \(text.defect?.reason ?? "`# entry: id=…` and a job")") }
    var entry = FeedEntry(
      identity: identity, date: fields["date"].flatMap { Timestamp($0) }, name: text.request.output?.text,
      urls: text.request.urls.map(\.text))
    entry.expected = text.request.expected
    entry.replaces = fields["replaces"] == "yes"
    entry.sharedIdentity = fields["shared"]
    return entry
  }
}

package struct ReadList: Sendable, Equatable {
  package var entries: [FeedEntry] = []
  package var problems = ListProblems()
  /// Its URLs are relative to the one that was asked for, wherever that has led: as to where a release's checksums are
  /// kept, without its files.
  package var isOfAskedURL = false

  private static let head = "# list: "
  /// A list with more entries is refused.
  package static let mostEntries = 100_000

  package init() {}

  package static func tooMany(_ line: Int) -> Defect {
    Defect(line: line, reason: "more than \(mostEntries) entries")
  }

  /// What is printed behind the entries; empty if there is nothing to say.
  /// - Parameter problems: all that was left out.
  package func end(_ problems: ListProblems) -> String {
    let text = Fields().with("base", isOfAskedURL ? "asked" : nil).with(problems).text
    return text.isEmpty ? "" : Self.head + text + "\n\n"
  }

  /// Reads what ``FeedEntry/text`` and ``end(_:)`` have written. What a job has beside URLs, name, size and digests is
  /// left out: the program that printed it has read a stranger's bytes.
  /// - Throws: ``Defect`` with the line.
  package init(_ bytes: [UInt8]) throws(Defect) {
    var number = 1
    var start = bytes.startIndex
    while start < bytes.endIndex {
      let end = Self.endOfStanza(bytes, from: start)
      let stanza = bytes[start..<end]
      if let fields = fields(stanza, Self.head) {
        problems.add(fields.problems)
        isOfAskedURL = fields["base"] == "asked"
      } else {
        entries.append(try FeedEntry.entry(stanza, line: number))
        if entries.count > Self.mostEntries { throw Self.tooMany(number) }
      }
      number += stanza.count { $0 == 0x0A } + 1
      start = end + 1
    }
  }

  /// Where the blank line behind a job is, or the end.
  private static func endOfStanza(_ bytes: [UInt8], from start: Int) -> Int {
    var position = start
    while let end = bytes[position...].firstIndex(of: 0x0A) {
      if end == position { return end }
      position = end + 1
    }
    return bytes.endIndex
  }
}

/// What the comment says with which a stanza begins; nil if it begins with another line.
private func fields(_ stanza: ArraySlice<UInt8>, _ head: String) -> Fields? {
  let line = stanza.prefix { $0 != 0x0A }
  guard line.starts(with: head.utf8) else { return nil }
  return Fields(parsing: String(decoding: line.dropFirst(head.utf8.count), as: UTF8.self))
}
