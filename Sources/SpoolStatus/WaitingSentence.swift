internal import Spool

/// Why a run ends while jobs are left: the event `waiting`. Pure.
struct WaitingSentence {
  private let fields: Fields
  private let now: Timestamp?

  /// - Parameter now: for a terminal, where times are told from now on; nil for a log.
  init(_ fields: Fields, now: Timestamp?) { (self.fields, self.now) = (fields, now) }

  var text: String {
    let jobs =
      (fields["jobs"] ?? fields["unsettled"]).map { $0 == "1" ? "1 job waits" : "\($0) jobs wait" } ?? "jobs wait"
    let reasons = reasons
    return reasons.isEmpty ? "\(jobs) for the next run" : "\(jobs): \(reasons.joined(separator: "; "))"
  }

  private var reasons: [String] {
    var reasons: [String] = []
    if let count = fields["unsettled"] {
      reasons.append("\(count) changed a moment ago and may still be written (\(Spool.settlingTime) s)")
    }
    if let gate = fields["gate"] { reasons.append(gate) }
    if let proxy = fields["proxy"] { reasons.append(proxy) }
    if let problem = fields["output-root"] { reasons.append("no output root: \(problem)") }
    if let kept = fields["min-free"] {
      let needed = fields["needed"].map { "\(size($0))\(now == nil ? " bytes" : "") are needed, " } ?? ""
      let free = size(fields["free"] ?? "?")
      reasons.append("not enough disk space: \(needed)\(free) are free, --min-free keeps \(size(kept))")
    }
    if let next = fields["next"] { reasons.append("next attempt \(Timestamp.told(next, from: now))") }
    return reasons
  }

  /// Bytes: exactly in a log.
  private func size(_ bytes: String) -> String {
    now == nil ? bytes : UInt64(bytes).map(shortBytes) ?? escaped(bytes)
  }

  /// The same among other results of the run: `2 try again, the first in 52s`.
  var part: String {
    guard let next = fields["next"], reasons.count == 1, let jobs = fields["jobs"] else { return text }
    return (jobs == "1" ? "1 tries again " : "\(jobs) try again, the first ") + Timestamp.told(next, from: now)
  }
}
