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
  /// - Throws: ``Defect`` if the entry has no URL that can be fetched, or a name that cannot be an output.
  init(_ entry: FeedEntry, from lists: [URLParts]) throws(Defect) {
    let urls = try Self.absolute(entry.urls, lists)
    key = entry.key
    date = entry.date
    self.urls = JobRequest.mirrors(urls)
    expected = entry.expected
    replaces = entry.replaces
    // A path that the list states is taken as it is, by the rules of `output:`. A URL's last part need not be safe.
    if let name = entry.name {
      if let reason = OutputPath.defect(of: name) {
        throw Defect(line: nil, reason: "the name `\(escaped(name.prefix(80)))` \(reason)")
      }
      self.name = name
    } else {
      name = Self.name(of: urls[0]) ?? "entry-\(entry.key)"
    }
  }

  /// Whether one of its URLs does not encrypt, and is elsewhere than the list, to which the person has told the way.
  func isInTheClear(besides lists: [URLParts]) -> Bool {
    urls.contains { url in
      guard let parts = try? URLParts(url) else { return true }
      return !parts.scheme.isEncrypted && !lists.contains { $0.hasSameOrigin(as: parts) }
    }
  }

  /// ``FeedEntry/link(_:)`` of its first URL.
  var link: String { FeedEntry.link(urls[0]) }

  /// - Returns: at least one.
  private static func absolute(_ urls: [String], _ lists: [URLParts]) throws(Defect) -> [String] {
    var found: [String] = []
    var known: Set<ExactText> = []
    var problem: Defect?
    for url in urls {
      for list in lists {
        do throws(URLProblem) {
          let absolute = try list.absolute(url)
          if known.insert(absolute.exact).inserted { found.append(absolute) }
        } catch {
          // Others than those that a worker knows are left out, such as magnet links.
          problem = problem ?? Defect(line: nil, reason: "`\(escaped(shownURL(url).prefix(80)))`: \(error.reason)")
        }
      }
    }
    if found.isEmpty { throw problem ?? Defect(line: nil, reason: "an entry without a URL") }
    return found
  }

  private static func name(of url: String) -> String? {
    (try? URLParts(url))?.lastPathSegment.flatMap { PayloadName.cleaned($0) }
  }

  /// Whether the name is like a pattern (glob(7)): all of it if the pattern has a slash, otherwise its last part.
  func matches(_ pattern: String?) -> Bool { Self.matches(name, pattern) }

  /// Whether an entry that cannot be fetched would match, as far as its text tells.
  static func mayMatch(_ entry: FeedEntry, _ pattern: String?) -> Bool {
    matches(entry.name ?? shownURL(entry.urls.first ?? ""), pattern)
  }

  private static func matches(_ name: String, _ pattern: String?) -> Bool {
    guard let pattern else { return true }
    let isPath = pattern.utf8.contains(0x2F)
    let text = isPath ? name : name.utf8.split(separator: 0x2F).last.map { String(Substring($0)) } ?? name
    return fnmatch(pattern, text, isPath ? FNM_PATHNAME : 0) == 0
  }
}
