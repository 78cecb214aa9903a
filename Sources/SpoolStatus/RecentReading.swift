internal import Spool
internal import SystemPackage

extension SnapshotReader {
  /// How many receipts are shown, and how many are looked at for that: there may be a million, and to ask for the time
  /// of so many takes seconds.
  private static let recentShown = 5
  private static let recentLookedAt = 20_000

  /// The latest receipts, the last one first.
  /// - Parameter done: the names in `done`.
  /// - Returns: nil if there are too many to look at.
  func recent(_ done: [FileName], in spool: Spool) throws(SpoolError) -> [DoneStatus]? {
    guard done.count <= Self.recentLookedAt else { return nil }
    var times: [(name: FileName, modified: Int64)] = []
    for name in done {
      guard let status = try spool.status(.done, name), status.isRegular else { continue }
      times.append((name, status.modified))
    }
    var found: [DoneStatus] = []
    let latest = first(Self.recentShown, of: times) {
      ($0.modified, $1.name.bytes.count) > ($1.modified, $0.name.bytes.count)
    }
    for (name, _) in latest {
      do throws(SpoolError) {
        guard let bytes = try spool.jobContents(Path(.done, name)) else { continue }
        if let status = bytes.withUnsafeBytes({ DoneStatus(name, $0) }) { found.append(status) }
      } catch  where error.isUnreadable {
        continue
      }
    }
    return found
  }
}
