/// The keys that make a job's file a standing order (spool.5, STANDING ORDERS). ``JobKey/ofOrders`` defines how each is
/// read and written.
package struct StandingOrder: Sendable, Equatable {
  /// Seconds from one check of the list to the next. An order without it is none.
  package var every: Int?
  /// What the list is; nil where it is told by its looks.
  package var entries: EntryFormat?
  /// How many of the entries that are there at the first check count as new.
  package var first: Int?
  /// A pattern for the names of the files to fetch (glob(7)); nil for all.
  package var match: String?

  /// Of a job that is not a standing order.
  package init() {}

  /// The value of ``first`` for orders without `first:`.
  package static let defaultFirst = 1
  /// The value of ``first`` for all entries.
  static let all = Int.max
}

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
}

extension EntryFormat {
  static var listed: String { allCases.map(\.rawValue).joined(separator: ", ") }
}
