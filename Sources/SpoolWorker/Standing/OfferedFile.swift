internal import Glibc
internal import Spool
internal import Transfer

/// An entry of a list with what the worker makes of it: absolute URLs, and a name that is safe.
struct OfferedFile: Equatable, Sendable {
  /// ``FeedEntry/key``
  let key: String
  let date: Timestamp?
  /// The path below the order's directory.
  let name: String
  let urls: [String]
  let expected: Expectation
  /// Whether it takes the place of an older version.
  let replaces: Bool

  /// - Parameter lists: the URLs of the list, each a mirror to which its URLs may be relative.
  /// - Returns: nil if the entry has no URL that can be fetched, or a name that cannot be an output.
  init?(_ entry: FeedEntry, from lists: [URLParts]) {
    var urls: [String] = []
    for url in entry.urls {
      for list in lists {
        // Others than those that a worker knows are left out, such as magnet links.
        guard let absolute = try? list.absolute(url), !urls.contains(absolute) else { continue }
        urls.append(absolute)
      }
    }
    guard let first = urls.first else { return nil }
    key = entry.key
    date = entry.date
    self.urls = urls
    expected = entry.expected
    replaces = entry.replaces
    // A path that the list states is taken as it is, by the rules of `output:`. A URL's last part need not be safe.
    if let name = entry.name {
      guard OutputPath.defect(of: name) == nil else { return nil }
      self.name = name
    } else {
      guard let parts = try? URLParts(first) else { return nil }
      name = parts.lastPathSegment.flatMap { PayloadName.cleaned($0) } ?? "entry-\(entry.key)"
    }
  }

  /// Whether one of its URLs does not encrypt, and is elsewhere than the list, to which the person has told the way.
  func isInTheClear(besides lists: [URLParts]) -> Bool {
    urls.contains { url in
      guard let parts = try? URLParts(url) else { return true }
      return !parts.scheme.isEncrypted && !lists.contains { $0.hasSameOrigin(as: parts) }
    }
  }

  /// Whether the name is like a pattern (glob(7)): all of it if the pattern has a slash, otherwise its last part.
  func matches(_ pattern: String?) -> Bool {
    guard let pattern else { return true }
    let isPath = pattern.utf8.contains(0x2F)
    let text = isPath ? name : name.utf8.split(separator: 0x2F).last.map { String(Substring($0)) } ?? name
    return fnmatch(pattern, text, isPath ? FNM_PATHNAME : 0) == 0
  }
}

/// Which entries of a list become jobs now, and which are known from then on. Pure.
struct NewEntries: Equatable {
  /// In the order in which they are to be fetched: the oldest first if all of them have a date, otherwise as in the
  /// list.
  let files: [OfferedFile]
  /// The keys to remember, as in ``Journal/Checks/seen``.
  let seen: [String]

  /// So many keys are remembered at least, and those of the list and this many that left it.
  static let fewestSeen = 10_000
  static let margin = 1000

  /// - Parameters:
  ///   - keys: those of all entries, in the list's order. An entry that cannot be fetched, or has another name than
  ///     wanted, counts as known.
  ///   - files: the same entries, as far as they can be fetched. Of several with one key, the first that matches
  ///     counts.
  ///   - known: nil at the first check.
  init(keys: [String], files: [OfferedFile], order: StandingOrder, known: [String]?) {
    var taken = Set(known ?? [])
    var wanted = files.filter { $0.matches(order.match) && taken.insert($0.key).inserted }
    // The oldest first, and those of one time as in the list.
    if wanted.allSatisfy({ $0.date != nil }) {
      let dates = wanted.map { $0.date?.seconds ?? 0 }
      // Feeds have the newest first.
      let ascending = wanted.indices.sorted { (dates[$0], -$0) < (dates[$1], -$1) }
      wanted = ascending.map { wanted[$0] }
      if known == nil { wanted = Array(wanted.suffix(order.first ?? StandingOrder.defaultFirst)) }
    } else if known == nil {
      wanted = Array(wanted.prefix(order.first ?? StandingOrder.defaultFirst))
    }
    self.files = wanted
    seen = Self.remembered(keys, known ?? [])
  }

  /// The keys of the list, each once, and then those that left it, the last ones first. A list that is empty for once,
  /// or lacks some entries, does not make them new when they are back.
  private static func remembered(_ keys: [String], _ known: [String]) -> [String] {
    var taken: Set<String> = []
    let present = keys.filter { taken.insert($0).inserted }
    let gone = known.filter { !taken.contains($0) }
    return present + gone.prefix(max(margin, fewestSeen - present.count))
  }
}
