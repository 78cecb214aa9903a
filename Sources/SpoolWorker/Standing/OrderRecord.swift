internal import Spool

/// Journals a check of a standing order. If the entries have changed, or the journal has grown, the order's file is
/// written anew: so its length is bounded.
struct OrderRecord {
  let claim: Claim
  /// When the check began.
  let began: Timestamp

  private var checks: Journal.Checks { claim.text.journal.checks }

  /// Bytes of an order's file, apart from the keys of its entries, beyond which its journal begins anew.
  private static let longest: Int64 = 64 << 10
  /// Bytes for each key.
  private static let keyLength: Int64 = 40

  /// The server says that the list is the same.
  /// - Parameter seen: as in ``Journal/Checks/seen``.
  func writeUnchanged(seen: [String]) throws(SpoolError) -> Journal.Check {
    let check = Journal.Check(entries: checks.entries, new: 0, version: nil)
    if isLong(seen) || seen != checks.seen {
      let whole = Journal.Check(entries: checks.entries, new: 0, version: checks.version, problems: checks.problems)
      try rewrite(whole, seen)
    } else {
      try claim.append(.checked(began, check))
    }
    return check
  }

  /// - Parameters:
  ///   - entries: how many the list has.
  ///   - dropped: how many jobs were dropped for the new ones.
  ///   - problems: what of the list could not be used.
  func write(
    _ entries: Int, _ new: NewEntries, dropped: Int, _ version: Journal.ListVersion, problems: ListProblems
  ) throws(SpoolError) -> Journal.Check {
    let check = Journal.Check(entries: entries, new: dropped, version: version, problems: problems)
    if !new.files.isEmpty || new.seen != checks.seen || isLong(new.seen) {
      try rewrite(check, new.seen)
    } else {
      try claim.append(.checked(began, check))
    }
    return check
  }

  private func isLong(_ seen: [String]) -> Bool { claim.length > Self.longest + Int64(seen.count) * Self.keyLength }

  private func rewrite(_ check: Journal.Check, _ seen: [String]) throws(SpoolError) {
    try claim.rewrite(JobText.order(try claim.contents(), checked: began, check, seen: seen))
  }
}
