internal import Spool

/// What a file of metrics remembers from one writing to the next, so that counters never fall when receipts or jobs are
/// removed, and receipts are read only once. It is in comments at the end of the file. Pure.
package struct CounterMemory: Sendable, Equatable {
  /// Receipts that were last modified before are in ``settled``, in seconds since the epoch.
  package var before: Int64 = .min
  /// The time of the latest receipt, in seconds since the epoch; nil if there was none.
  package var lastDone: Int64?
  /// The sums of those receipts.
  package var settled = JournalTotals()
  /// What jobs had that are gone.
  package var lost = JournalTotals()
  /// The counters that the file shows.
  package var shown = JournalTotals()

  /// Seconds after which a receipt is settled: by then a job is in `done/`, whose receipt has its time from before.
  package static let settlingTime: Int64 = 600

  private static let head = "# spoolrun-memory "

  /// Of a file that was never written.
  package init() {}

  /// Whether something is gone that the file showed.
  /// - Parameter present: the sums of all jobs that are not in ``settled``.
  package func misses(with present: JournalTotals) -> Bool { !sum(present).shortfall(of: shown).counts.isEmpty }

  /// Takes in what there is, so that ``shown`` is at least what it was.
  /// - Parameter present: as above.
  package mutating func update(_ present: JournalTotals) {
    let missing = sum(present).shortfall(of: shown)
    lost.add(missing)
    shown = sum(present)
  }

  private func sum(_ present: JournalTotals) -> JournalTotals {
    var sum = settled
    sum.add(present)
    sum.add(lost)
    return sum
  }

  /// The comments.
  /// - Parameter spool: the spool's path.
  package func text(of spool: String) -> String {
    func line(_ name: String, _ totals: JournalTotals) -> String {
      let fields = totals.counts.sorted { $0.key < $1.key }.reduce(Fields(name)) { $0.with($1.key, $1.value) }
      return "\(Self.head)\(fields.text)\n"
    }
    return "\(Self.head)\(Fields("of").with("spool", spool).with("before", before).with("done", lastDone).text)\n"
      + line("settled", settled) + line("lost", lost) + line("shown", shown)
  }

  /// Reads the comments of a file; nil if it lacks one of them, or is of another spool.
  package init?(_ text: String, of spool: String) {
    var found: Set<String> = []
    for line in text.split(at: "\n") where line.begins(with: Self.head) {
      guard let fields = Fields(parsing: line.dropFirst(Self.head.count)), let name = fields.words.first else {
        return nil
      }
      let counts: [String: UInt64] = fields.named.reduce(into: [:]) { $0[$1.key] = UInt64($1.value) }
      switch name {
      case "of":
        guard fields["spool"] == spool, let time = fields["before"].flatMap({ Int64($0) }) else { return nil }
        (before, lastDone) = (time, fields["done"].flatMap { Int64($0) })
      case "settled": settled = JournalTotals(counts)
      case "lost": lost = JournalTotals(counts)
      case "shown": shown = JournalTotals(counts)
      default: continue
      }
      found.insert(name)
    }
    if found.count < 4 { return nil }
  }
}
