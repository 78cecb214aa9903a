import TestSupport

/// One way in which a server can behave, and what must become of jobs that meet it with data of every length.
struct Behaviour: Sendable {
  let name: String
  /// What the journal says of the data that a job already has.
  var facts: PartialFacts
  /// Whose bytes that data is.
  var holds: [UInt8]
  /// What the job declares of the payload.
  var declares: Declared
  /// Further lines of the job.
  var lines: [String]
  /// The only bytes that may ever stand in `files/`.
  var final: [UInt8]
  var outcomes: Outcomes
  /// The requests for the job's URL, as `ask(_:)` writes them, where the data has `0 < k < n` bytes; nil: not fixed.
  var asks: (@Sendable (_ k: Int) -> [String])?
  /// Whether a failed attempt leaves the data that was there.
  var keepsData: Bool
  /// Seconds from a failure to the next attempt, if there is one: 60 s ± 20 %.
  var retry: ClosedRange<Int>
  let script: ScriptedServer.Script

  init(
    _ name: String, facts: PartialFacts = .strong, holds: [UInt8] = payload, declares: Declared = [],
    lines: [String] = [], final: [UInt8] = payload, outcomes: Outcomes = .all(.done),
    asks: (@Sendable (Int) -> [String])? = nil, keepsData: Bool = true, retry: ClosedRange<Int> = 47...73,
    script: @escaping ScriptedServer.Script
  ) {
    (self.name, self.facts, self.holds, self.declares) = (name, facts, holds, declares)
    (self.lines, self.final, self.outcomes, self.asks) = (lines, final, outcomes, asks)
    (self.keepsData, self.retry, self.script) = (keepsData, retry, script)
  }
}

struct Declared: OptionSet, Sendable {
  let rawValue: Int
  static let size = Declared(rawValue: 1)
  static let checksum = Declared(rawValue: 2)
}

/// What one run leaves behind.
indirect enum Outcome: Sendable {
  /// In `done/`, with the payload in place.
  case done
  /// In `partial/` for another attempt, after a temporary failure with this code.
  case waits(String)
  /// In `failed/` after a permanent failure with this code.
  case givenUp(String)
  /// Where more than one end is sound.
  case either(Outcome, Outcome)
}

/// Outcomes by how much data a job has: none, `0 < k < n` bytes, `n` bytes, more than that.
struct Outcomes: Sendable {
  var empty, middle, full, over: Outcome

  static func all(_ outcome: Outcome) -> Outcomes {
    Outcomes(empty: outcome, middle: outcome, full: outcome, over: outcome)
  }

  /// A resumed request ends like this; one for the whole is answered with it.
  static func resuming(_ outcome: Outcome) -> Outcomes {
    Outcomes(empty: .done, middle: outcome, full: .done, over: .done)
  }
}

/// A job that has all bytes gets an answer without a body (416), and needs none.
func wholeAtFull(_ outcome: Outcome) -> Outcomes {
  Outcomes(empty: outcome, middle: outcome, full: .done, over: outcome)
}

extension PartialFacts {
  static let strong = PartialFacts(size: n, etag: v1)
  static let strongWithoutSize = PartialFacts(etag: v1)
  static let weak = PartialFacts(size: n, etag: "W/\"v1\"")
  static let dated = PartialFacts(size: n, modified: longAgo)
  static let nothing = PartialFacts(size: n)

  /// What `If-Range` may carry (RFC 9110 section 13.1.5); decided here independently of the program.
  var validator: String? {
    if let etag { return etag.hasPrefix("W/") ? nil : etag }
    return modified
  }
}

let longAgo = "Thu, 01 Jan 2026 00:00:00 GMT"

/// A request in short: `plain`, `range K`, `range K if VALIDATOR`, `range K-M`.
func ask(_ request: ServerRequest) -> String {
  guard let range = request.value("range") else {
    return request.value("if-range").map { "if \($0) without range" } ?? "plain"
  }
  let start = request.rangeStart.map { "range \($0)" } ?? range
  return start + (request.rangeEnd.map { "-\($0)" } ?? "") + (request.value("if-range").map { " if \($0)" } ?? "")
}

/// Asked with the validator `"v1"`, then for the whole.
let resumesThenRestarts: @Sendable (Int) -> [String] = { ["range \($0) if \(v1)", "plain"] }
/// Asked with the validator `"v1"`, once.
let resumesOnce: @Sendable (Int) -> [String] = { ["range \($0) if \(v1)"] }
/// Asked for the whole, once.
let restarts: @Sendable (Int) -> [String] = { _ in ["plain"] }
/// Asked twice with the validator `"v1"`, then for the whole.
let uselessTwice: @Sendable (Int) -> [String] = { ["range \($0) if \(v1)", "range \($0) if \(v1)", "plain"] }
