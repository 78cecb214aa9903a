internal import Glibc
internal import Spool
internal import Transfer

/// What has come of an entry that was dropped as a job.
enum EntryJob: Equatable {
  /// There is no job of it any more.
  case gone
  case done
  /// It failed, or waits after a failure, with these links.
  case stuck(Set<String>)
  /// It waits or runs.
  case underway
}

/// Which entries of a list become jobs now, which jobs get another link, and which entries are known from then on.
/// Pure, but for the question what has come of a job.
///
/// An entry is known by a word: its key, if it needs nothing more; or its key and the link that its job got, until that
/// job is done. If the list names another link then, a job that failed gets it, and one that was cancelled is dropped
/// again.
struct NewEntries: Equatable {
  /// In the order in which they are to be fetched: the oldest first if all of them have a date, otherwise as in the
  /// list.
  private(set) var files: [OfferedFile] = []
  /// Those whose jobs failed with other links.
  private(set) var relinked: [OfferedFile] = []
  /// What was remembered of these, by their keys.
  private var formerWords: [String: String] = [:]
  /// What to remember, as in ``Journal/Checks/seen``.
  private(set) var seen: [String] = []
  /// The entries that cannot be fetched. They are not remembered, so that they are new when they can be.
  private(set) var problems = ListProblems()
  /// The names that files of several entries have, whether or not they are new.
  private(set) var sharedNames: Set<ExactText> = []

  /// The entries of one key, which are alternatives.
  private struct Group {
    let key: String
    var date: Timestamp?
    /// Keys that it had when it shared its identity, and when it did not.
    var formerKeys: [String] = []
    var sharedKey: String?
    /// The first that can be fetched and matches.
    var file: OfferedFile?
    /// Why none can be fetched.
    var problem: String?

    /// What is remembered of it once it has a job.
    var word: String? { file.map { "\(key).\($0.ownLink)" } }
    /// The same if no other had its identity.
    var sharedWord: String? { sharedKey.flatMap { key in file.map { "\(key).\($0.ownLink)" } } }
  }

  /// - Parameters lists, own: see ``OfferedFile/init(_:from:of:)``.
  /// - Parameter known: nil at the first check.
  /// - Parameter job: what has come of the job of a key; asked for those that are known. The second parameter is
  ///   whether it was not done at the last check.
  init(
    _ entries: [FeedEntry], from lists: [URLParts], of own: [URLParts]? = nil, order: StandingOrder, known: [String]?,
    job: (String, Bool) -> EntryJob = { _, _ in .underway }
  ) {
    let groups = Self.grouped(entries, lists, own, order.match)
    var names: Set<ExactText> = []
    for name in groups.compactMap(\.file?.name.exact) where !names.insert(name).inserted { sharedNames.insert(name) }
    let memory = Memory(known ?? [])
    let sharedWords = Dictionary(groups.compactMap(\.sharedWord).map { ($0, 1) }, uniquingKeysWith: +)
    var words: [String?] = []
    var fresh: [Int] = []
    for (index, group) in groups.enumerated() {
      // A link is without its query: of several that differ in that alone, it does not tell which one was known.
      let sharedKey = group.sharedWord.flatMap { sharedWords[$0] == 1 ? group.sharedKey : nil }
      switch memory.step(group.key, former: group.formerKeys, shared: sharedKey, group.file, job) {
      case .keep(let word): words.append(word)
      case .relink(let former):
        words.append(group.word)
        relinked += group.file.map { [$0] } ?? []
        formerWords[group.key] = former
      case .fetch:
        // What does not match is known.
        words.append(group.file == nil && group.problem == nil ? group.key : nil)
        if words[index] == nil { fresh.append(index) }
      }
    }
    // Older ones would be removed as soon as they are there.
    let most = min(known == nil ? order.first ?? StandingOrder.defaultFirst : .max, order.keep ?? .max)
    choose(groups, fresh, most, &words)
    if order.keep != nil, groups.allSatisfy({ $0.date != nil || $0.file == nil }) {
      words = Self.newestFirst(Array(groups.indices), groups).map { words[$0] }
    }
    let present = Set(groups.map(\.key))
    let gone = (known ?? []).filter { !present.contains(String($0.prefix(FeedEntry.keyLength))) }
    // A list that is empty for once, or lacks some entries, does not make them new when they are back. As many are
    // remembered as a list can have.
    seen = words.compactMap { $0 } + Self.settled(gone.prefix(ReadList.mostEntries), job: job)
  }

  private static func grouped(
    _ entries: [FeedEntry], _ lists: [URLParts], _ own: [URLParts]?, _ pattern: String?
  ) -> [Group] {
    var groups: [Group] = []
    var places: [String: Int] = [:]
    for entry in entries {
      let key = entry.key
      let place = places[key] ?? groups.count
      if place == groups.count {
        places[key] = place
        groups.append(Group(key: key, date: entry.date, sharedKey: entry.sharedIdentity.map { FeedEntry.key(of: $0) }))
      }
      if entry.sharedIdentity == nil { groups[place].formerKeys.append(entry.keyWithURL) }
      if groups[place].file != nil { continue }
      do throws(Defect) {
        let file = try OfferedFile(entry, from: lists, of: own)
        if file.matches(pattern) { groups[place].file = file }
      } catch {
        if OfferedFile.mayMatch(entry, pattern) { groups[place].problem = groups[place].problem ?? error.reason }
      }
    }
    return groups
  }

  /// - Parameter most: how many of them are fetched.
  private mutating func choose(_ groups: [Group], _ fresh: [Int], _ most: Int, _ words: inout [String?]) {
    // Feeds have the newest first.
    let isDated = fresh.allSatisfy { groups[$0].file == nil || groups[$0].date != nil }
    let newest = isDated ? Self.newestFirst(fresh, groups) : fresh
    var left = most
    for index in newest {
      let group = groups[index]
      if left == 0 {
        words[index] = group.key
      } else if let file = group.file {
        left -= 1
        files.append(file)
        words[index] = group.word
      } else if let problem = group.problem {
        problems.note(problem)
      }
    }
    if isDated { files.reverse() }
  }

  private static func newestFirst(_ indices: [Int], _ groups: [Group]) -> [Int] {
    func seconds(_ index: Int) -> Int64 { groups[index].date?.seconds ?? .min / 2 }
    return indices.sorted { (-seconds($0), $0) < (-seconds($1), $1) }
  }

  /// Takes out files that need no job, because they are there.
  mutating func drop(there keys: Set<String>) {
    if keys.isEmpty { return }
    files.removeAll { keys.contains($0.key) }
    seen = seen.map { word in
      let key = String(word.prefix(FeedEntry.keyLength))
      return keys.contains(key) ? key : word
    }
  }

  /// These jobs could not get their new links: the next check tries again.
  mutating func keepLinks(of keys: Set<String>) {
    if keys.isEmpty { return }
    seen = seen.map { word in
      let key = String(word.prefix(FeedEntry.keyLength))
      return keys.contains(key) ? formerWords[key] ?? word : word
    }
  }

  /// What is remembered of entries that the list does not tell of: which jobs are done by now.
  static func settled(_ seen: some Sequence<String>, job: (String, Bool) -> EntryJob) -> [String] {
    seen.map { word in
      let key = String(word.prefix(FeedEntry.keyLength))
      return key != word && job(key, true) == .done ? key : word
    }
  }
}

/// The words that an order remembers, by their keys.
private struct Memory {
  /// The link of each, or none.
  private var links: [String: String?] = [:]

  enum Step {
    case keep(String)
    /// With what was remembered so far.
    case relink(String)
    case fetch
  }

  init(_ words: [String]) {
    links.reserveCapacity(words.count)
    for word in words {
      let link = word.dropFirst(FeedEntry.keyLength + 1)
      links[String(word.prefix(FeedEntry.keyLength))] = link.isEmpty ? .some(nil) : String(link)
    }
  }

  /// - Parameter former: keys that the same entry had while others had its identity.
  /// - Parameter shared: the key that it had while no other had its identity.
  func step(
    _ key: String, former: [String], shared: String?, _ file: OfferedFile?, _ job: (String, Bool) -> EntryJob
  ) -> Step {
    let link = file?.ownLink
    guard let remembered = links[key] else {
      let isKnown =
        former.contains { links[$0] != nil } || shared.flatMap { links[$0] ?? nil }.map { $0 == link } ?? false
      return isKnown ? .keep(key) : .fetch
    }
    let word = remembered.map { "\(key).\($0)" } ?? key
    switch job(key, remembered != nil) {
    case .stuck(let links):
      guard let file, !links.contains(file.link) else { return .keep(word) }
      // A list that leads elsewhere each time gives no entry another link.
      return file.link != link && remembered == link ? .keep(word) : .relink(word)
    case .done: return .keep(key)
    case .gone where remembered != nil && link != nil && remembered != link: return .fetch
    case .gone, .underway: return .keep(word)
    }
  }
}

/// An entry of a list with what the worker makes of it: absolute URLs, and a name that is safe.
struct OfferedFile: Equatable, Sendable {
  /// ``FeedEntry/key``
  let key: String
  let date: Timestamp?
  /// The path below the order's directory.
  let name: String
  /// Whether the list states the whole path.
  let isNamed: Bool
  let urls: [String]
  let expected: Expectation
  /// Whether it takes the place of an older version.
  let replaces: Bool
  /// The same as ``link``, whatever a redirect of the list has led to.
  let ownLink: String

  /// - Parameter lists: the URLs of the list, each a mirror to which its URLs may be relative.
  /// - Parameter own: those of its subscription; nil for `lists`.
  init(_ entry: FeedEntry, from lists: [URLParts], of own: [URLParts]? = nil) throws(Defect) {
    let urls = try Self.absolute(entry.urls, lists)
    ownLink = FeedEntry.link(try own.map { (own) throws(Defect) in try Self.absolute(entry.urls, own)[0] } ?? urls[0])
    key = entry.key
    date = entry.date
    self.urls = JobRequest.mirrors(urls)
    expected = entry.expected
    replaces = entry.replaces
    // A path that the list states is taken as it is, by the rules of `output:`. A URL's last part need not be safe.
    var name = entry.name ?? ""
    isNamed = entry.name != nil && !name.ends(with: "/")
    if !isNamed {
      // The key of a file's version is another one each time.
      name += Self.name(of: urls[0]) ?? "entry-\(entry.replaces ? FeedEntry.link(urls[0]) : entry.key)"
    }
    if let reason = OutputPath.defect(of: name) {
      throw Defect(line: nil, reason: "the name `\(escaped(name.prefix(80)))` \(reason)")
    }
    self.name = name
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
          let absolute = try list.resolving(url).requestText
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
    let name = entry.name ?? ""
    return matches(name.isEmpty || name.ends(with: "/") ? name + shownURL(entry.urls.first ?? "") : name, pattern)
  }

  private static func matches(_ name: String, _ pattern: String?) -> Bool {
    guard let pattern else { return true }
    let isPath = pattern.utf8.contains(0x2F)
    let text = isPath ? name : name.utf8.split(separator: 0x2F).last.map { String(Substring($0)) } ?? name
    return fnmatch(pattern, text, isPath ? FNM_PATHNAME : 0) == 0
  }
}
