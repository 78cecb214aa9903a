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

  /// Of no job.
  package init() {}
  /// Sums that were written before.
  package init(_ counts: [String: UInt64]) { self.counts = counts }

  /// The sum of that name; 0 where there is none.
  package subscript(name: String) -> UInt64 { counts[name] ?? 0 }

  /// Adds one job.
  /// - Parameters:
  ///   - bytes: the job's file.
  ///   - data: the length of `partial/NAME.part`; nil where there is none.
  package mutating func add(job bytes: UnsafeRawBufferPointer, data: UInt64? = nil) {
    var traffic = ScannedTraffic()
    JournalScan.lines(bytes) { line in
      traffic.apply(line)
      switch line.key {
      case .failed:
        count(Self.failed + Self.label(line.text("code")))
        if !line.has("retry") { count(Self.givenUp) }
      case .done: count(Self.done)
      default: break
      }
    }
    count(Self.bytes, traffic.total(data: data))
  }

  /// Adds the sums of other jobs.
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
struct ScannedTraffic {
  /// In lives that a `requeued:` has ended.
  private var former: UInt64 = 0
  private var fetched: UInt64 = 0
  /// Where the data grows from since the last line that says how many bytes were fetched.
  private var from: UInt64?

  mutating func apply(_ line: ScannedLine) {
    switch line.key {
    case .requeued: (former, fetched, from) = (former &+ fetched, 0, nil)
    case .response:
      let offset = line.number("at") ?? 0
      from = min(from ?? offset, offset)
    case .failed, .interrupted:
      fetched &+= line.number("fetched") ?? 0
      from = nil
    case .done:
      // Of all attempts; a receipt that is written once more says the same.
      fetched = max(fetched, line.number("bytes-fetched") ?? 0)
      from = nil
    case .urgent, .relinked, .started, .checkpoint, .cleared, .verified, .published, .checked, .seen: break
    }
  }

  /// - Parameter data: the length of the data; what it grew by counts although no line says it yet.
  func total(data: UInt64?) -> UInt64 {
    let growth = from.flatMap { from in data.map { $0 > from ? $0 - from : 0 } } ?? 0
    return former &+ fetched &+ growth
  }
}
