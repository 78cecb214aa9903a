/// The lists of files that an order can watch. The raw value is that of `entries:`.
package enum EntryFormat: String, CaseIterable, Sendable {
  /// RSS 2.0, with enclosures.
  case rss
  /// Atom (RFC 4287), with enclosures.
  case atom
  /// A docset feed of Dash and Zeal: one file, its version and its mirrors.
  case docset
  /// Jobs and URLs, as `spoolrun add --from` reads them.
  case list
  /// SHA256SUMS and its kin.
  case sums
  case metalink
  /// No list: the file itself, which is fetched again when it has changed.
  case file

  static var listed: String { allCases.map(\.rawValue).joined(separator: ", ") }
}

/// What of a list could not be used, or was read in spite of a mistake: how much it is, and the first of it in words.
package struct ListProblems: Error, Sendable {
  /// Lines, entries, or mistakes.
  package private(set) var count = 0
  /// The first ones, in the list's order.
  package private(set) var named: [Defect] = []

  private static let mostNamed = 10
  private static let mostReasons = 3
  private static let longestReason = 250

  package init() {}

  fileprivate init(_ count: Int, _ reasons: [String]) {
    for reason in reasons.prefix(min(count, Self.mostReasons)) { note(reason) }
    self.count = count
  }

  package mutating func note(_ defect: Defect) {
    count += 1
    // A job of several lines is known to be wrong only when the next one begins.
    let place = defect.line.flatMap { line in named.firstIndex { $0.line ?? 0 > line } } ?? named.count
    if place == Self.mostNamed { return }
    named.insert(defect, at: place)
    named = Array(named.prefix(Self.mostNamed))
  }

  /// Adds one whose words say where it is.
  package mutating func note(_ reason: String) { note(Defect(line: nil, reason: reason)) }

  package mutating func add(_ other: ListProblems) {
    let sum = count + other.count
    for defect in other.named { note(defect) }
    count = sum
  }

  /// Of the first ones, safe to show: what it is, where, and what is wrong with it.
  package var reasons: [String] { named.prefix(Self.mostReasons).map { Self.safe("\($0)") } }

  /// The beginning of what the program that reads lists says. It has escaped what it quotes, but may have been taken
  /// over.
  package static func safe(_ reason: String) -> String {
    withoutControls(PayloadName.cut(Substring(reason), to: longestReason))
  }

  /// Whether it is more than, or another thing than, at an earlier look at the list. Where it is in the list, does not
  /// matter: that changes with each entry that is added.
  package func isNews(after earlier: ListProblems) -> Bool {
    func kinds(_ reasons: [String]) -> Set<[UInt8]> {
      Set(reasons.map { $0.utf8.filter { !(0x30...0x39).contains($0) } })
    }
    return count > earlier.count || !kinds(reasons).isSubset(of: kinds(earlier.reasons))
  }

  /// For a person; nil if there is nothing.
  package var text: String? {
    if count == 0 { return nil }
    let reasons = reasons
    let more = count > reasons.count ? "; and \(count - reasons.count) more" : ""
    return "\(count == 1 ? "1 problem" : "\(count) problems"): \(reasons.joined(separator: "; "))\(more)"
  }
}

extension ListProblems: Equatable {
  /// Whether a journal says the same of both.
  package static func == (one: ListProblems, other: ListProblems) -> Bool {
    one.count == other.count && one.reasons == other.reasons
  }
}

extension Fields {
  /// This and these problems, as ``problems`` reads them; unchanged if there are none.
  package consuming func with(_ problems: ListProblems) -> Fields {
    if problems.count > 0 { add("problems", problems.count) }
    for reason in problems.reasons { add("why", reason) }
    return self
  }

  /// The problems of a list; none for fields without them.
  package var problems: ListProblems {
    ListProblems(
      self["problems"].flatMap { UInt32($0) }.map { Int($0) } ?? 0, named.filter { $0.key == "why" }.map(\.value))
  }
}
