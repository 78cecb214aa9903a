internal import Spool
internal import Synchronization

/// What the receipts of a spool say together. They are read once, when the first payload is not what its receipt says.
/// On any thread.
final class AllReceipts: Sendable {
  private struct Last {
    let receipt: Journal.Receipt
    let path: Path
    let name: FileName
    let time: Int64
    /// Receipts have seconds only.
    let order: [Int64]
  }

  private struct Known {
    /// The only places that it is about; nil for all. A spool may have a million.
    var places: Set<[ExactText?]>?
    /// By ``Journal/Receipt/place``.
    var last: [[ExactText?]: Last] = [:]
    /// By output root, whether any payload is there.
    var isAnyThere: [ExactText?: Bool] = [:]
  }

  private let spool: Spool
  private let named: (@Sendable () -> [[ExactText?]])?
  private let known = Mutex<Known?>(nil)

  /// - Parameter named: the places of the receipts that the command line names; nil if it names none.
  init(_ spool: Spool, named: (@Sendable () -> [[ExactText?]])? = nil) { (self.spool, self.named) = (spool, named) }

  /// The job whose payload has replaced that of `receipt` since; nil if there is none.
  func successor(of receipt: Journal.Receipt, _ time: Timestamp?, _ name: FileName) throws(SpoolError) -> String? {
    try known.withLock { (known) throws(SpoolError) in
      let all = try read(&known, receipt.place)
      guard let time = time?.seconds, let last = all.last[receipt.place] else { return nil }
      return last.time > time || last.time == time && last.name != name ? last.path.display : nil
    }
  }

  /// Whether any receipt of this output root has its payload there, where the command line names none.
  /// - Parameter directory: as in ``Journal/Receipt/directory``.
  func isAnyThere(below directory: String?) throws(SpoolError) -> Bool {
    try known.withLock { (known) throws(SpoolError) in
      let key = directory?.exact
      let all = try read(&known, nil)
      if let isAny = all.isAnyThere[key] { return isAny }
      let root = try OutputRoot(directory, spool: spool)
      var isAny = false
      for last in all.last.values where !isAny && last.receipt.directory?.exact == key {
        // An error of one, such as a link in its path, says nothing of the others.
        if case .present? = try? root.check(last.receipt, nil) { isAny = true }
      }
      known?.isAnyThere[key] = isAny
      return isAny
    }
  }

  /// Also those of jobs that were put into `new` again, and wait or run.
  /// - Parameter place: nil for all.
  private func read(_ state: inout Known?, _ place: [ExactText?]?) throws(SpoolError) -> Known {
    if let state, place.flatMap({ state.places?.contains($0) }) ?? true { return state }
    var known = Known()
    if let named, let place {
      // With those of an earlier look: a receipt may have changed meanwhile.
      known.places = (state?.places ?? []).union(named()).union([place])
    }
    func note(_ file: JobFile) {
      let publication = JobText(file.bytes).journal.publication
      guard let receipt = publication.lastReceipt, let time = publication.receiptTime?.seconds,
        known.places?.contains(receipt.place) ?? true
      else { return }
      let order = [time, file.status.modified, Int64(file.status.modifiedNanoseconds)]
      if let last = known.last[receipt.place], order.lexicographicallyPrecedes(last.order) { return }
      known.last[receipt.place] = Last(receipt: receipt, path: file.path, name: file.name, time: time, order: order)
    }
    // In the order in which a job moves: one that moves meanwhile is seen twice rather than not at all.
    for directory in [Directory.new, .urgent, .cur, .partial, .hold, .failed, .done] {
      try JobSearch(spool).eachJob(in: directory) { note($0) }
    }
    try JobSearch(spool).eachArchived { note($0) }
    state = known
    return known
  }
}
