internal import Spool

/// What the journals of many jobs have in sum: by names such as `bytes`, `done`, `given-up` and `failed/cut`. Pure.
package struct JournalTotals: Sendable, Equatable {
  /// Never less than what they were while no job is removed.
  package private(set) var counts: [String: UInt64] = [:]

  static let bytes = "bytes"
  static let done = "done"
  static let givenUp = "given-up"
  /// Before the code of a failure.
  static let failed = "failed/"
  /// The code in place of those that are none of spool.5's: any text may be in a file that was dropped.
  static let otherCode = "other"
  /// Codes but `http-NNN`.
  static let codes = FailureCode.allCases.filter { $0 != .http }.flatMap(\.labels)
  private static let known = Set(codes)

  package init() {}
  package init(_ counts: [String: UInt64]) { self.counts = counts }

  package subscript(name: String) -> UInt64 { counts[name] ?? 0 }

  /// - Parameter bytes: the job's file.
  /// - Parameter data: the length of `partial/NAME.part`; nil where there is none.
  /// - Parameter border: lives of the job that were done before, and that it came back from, are counted elsewhere, in
  ///   seconds since the epoch.
  /// - Parameter isDone: whether the job has not come back from the last one.
  package mutating func add(
    job bytes: UnsafeRawBufferPointer, data: UInt64? = nil, since border: Int64 = .min, isDone: Bool = false
  ) {
    var (job, traffic, isSettled) = (JournalTotals(), ScannedTraffic(), false)
    JournalScan.lines(bytes) { line in
      // A receipt that is written once more has another such line.
      if isSettled, line.key != .done { (job, traffic, isSettled) = (JournalTotals(), ScannedTraffic(), false) }
      traffic.apply(line)
      switch line.key {
      case .failed:
        job.count(Self.failed + Self.label(line.text("code")))
        if !line.has("retry") { job.count(Self.givenUp) }
      case .done:
        job.count(Self.done)
        isSettled = line.time.map { $0.seconds < border } ?? false
      default: break
      }
    }
    if isSettled, !isDone { return }
    job.count(Self.bytes, traffic.total(data: data))
    add(job)
  }

  package mutating func add(_ other: JournalTotals) { counts.merge(other.counts) { $0 &+ $1 } }

  /// How much less than `other` each sum is; 0 where it is not less.
  package func shortfall(of other: JournalTotals) -> JournalTotals {
    JournalTotals(
      other.counts.filter { $0.value > self[$0.key] }.reduce(into: [:]) { $0[$1.key] = $1.value - self[$1.key] })
  }

  private mutating func count(_ name: String, _ number: UInt64 = 1) {
    if number > 0 { counts[name, default: 0] &+= number }
  }

  private static func label(_ code: String?) -> String {
    guard let code else { return otherCode }
    if known.contains(code) { return code }
    let digits = code.utf8.dropFirst(5)
    let isStatus = code.begins(with: "http-") && digits.count == 3 && digits.allSatisfy { (0x30...0x39).contains($0) }
    return isStatus ? code : otherCode
  }
}

/// The bytes that a job received over the network, in all its lives: as ``Journal/Traffic`` and the receipt count them.
private struct ScannedTraffic {
  /// In lives that a `requeued:` has ended.
  private var former: UInt64 = 0
  private var fetched: UInt64 = 0
  /// Where the data grows from since the last line that says how many bytes were fetched.
  private var from: UInt64?
  /// As ``Journal/Attempts/isOpen``.
  private var isOpen = false

  mutating func apply(_ line: ScannedLine) {
    switch line.key {
    case .requeued: (former, fetched, from) = (former &+ fetched, 0, nil)
    case .started: isOpen = true
    case .response:
      // Data that was copied is no traffic: its line comes before the attempt begins, or has no resource.
      if isOpen, let offset = line.number("at"), offset > 0 || line.has("resource") {
        from = min(from ?? offset, offset)
      }
    case .failed, .interrupted:
      fetched &+= line.number("fetched") ?? 0
      (from, isOpen) = (nil, line.key == .failed && line.text("doubt") == "yes")
    case .done:
      // Of all attempts; a receipt that is written once more says the same.
      fetched = max(fetched, line.number("bytes-fetched") ?? 0)
      from = nil
    case .checked: isOpen = false
    case .urgent, .relinked, .checkpoint, .cleared, .verified, .published, .seen: break
    }
  }

  /// - Parameter data: the length of the data; what it grew by counts although no line says it yet.
  func total(data: UInt64?) -> UInt64 {
    let growth = from.flatMap { from in data.map { $0 > from ? $0 - from : 0 } } ?? 0
    return former &+ fetched &+ growth
  }
}

/// What a file of metrics remembers from one writing to the next, so that counters never fall when receipts or jobs are
/// removed, and receipts are read only once. It is in comments at the end of the file. Pure.
package struct CounterMemory: Sendable, Equatable {
  /// Receipts that were last modified before are in ``settled``, in seconds since the epoch.
  package var before: Int64 = .min
  /// The time of the latest receipt, in seconds since the epoch; nil if there was none.
  package var lastDone: Int64?
  package var settled = JournalTotals()
  /// What jobs had that are gone.
  package var lost = JournalTotals()
  package var shown = JournalTotals()

  /// Seconds after which a receipt is settled: by then a job is in `done/`, whose receipt has its time from before.
  package static let settlingTime: Int64 = 600

  private static let head = "# spoolrun-memory "

  package init() {}

  /// Whether something is gone that the file showed.
  /// - Parameter present: the sums of all jobs that are not in ``settled``.
  package func misses(with present: JournalTotals) -> Bool { !sum(present).shortfall(of: shown).counts.isEmpty }

  /// Takes in what there is, so that ``shown`` is at least what it was.
  /// - Parameter present: as above.
  /// - Parameter areAllRead: whether it has all jobs. Otherwise what it lacks may be there, and counts when it is read.
  package mutating func update(_ present: JournalTotals, areAllRead: Bool = true) {
    let sum = sum(present)
    let missing = sum.shortfall(of: shown)
    if areAllRead { lost.add(missing) }
    shown = sum
    shown.add(missing)
  }

  private func sum(_ present: JournalTotals) -> JournalTotals {
    var sum = settled
    sum.add(present)
    sum.add(lost)
    return sum
  }

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
