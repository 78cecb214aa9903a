package import Spool
package import SpoolWorker

/// The last line of a run on a terminal: what came of it. Pure.
package struct RunClosing {
  private let summary: RunSummary
  private let seconds: Int64
  private let waiting: Fields?
  private let now: Timestamp
  private let isOnce: Bool

  /// - Parameters:
  ///   - seconds: that the run took.
  ///   - isOnce: whether it was to run what was due, and not to stay.
  ///   - waiting: the fields of the event `waiting`; nil if there was none.
  package init(_ summary: RunSummary, seconds: Int64, isOnce: Bool, waiting: Fields?, now: Timestamp) {
    (self.summary, self.seconds, self.isOnce) = (summary, seconds, isOnce)
    (self.waiting, self.now) = (waiting, now)
  }

  /// - Returns: nil if the line of the only job has said it all, or if there was none and the worker stayed.
  package func line(_ look: Look) -> StyledLine? {
    let (done, failed, cancelled) = (summary.done, summary.givenUp, summary.cancelled)
    if done == 1, failed + cancelled + summary.waiting == 0 { return nil }
    var parts: [(text: String, ink: Ink?)] = []
    let figures = summary.gained > 0 ? " (\(shortBytes(summary.gained)) in \(shortDuration(seconds)))" : ""
    if done > 0 { parts.append(("\(done) done\(figures)", .green)) }
    if failed > 0 { parts.append(("\(failed) failed", .red)) }
    if cancelled > 0 { parts.append(("\(cancelled) cancelled", nil)) }
    if let waiting {
      parts.append((WaitingSentence(waiting, now: now).part, .yellow))
    } else if summary.waiting > 0 {
      parts.append(("\(summary.waiting) left for the next run", .yellow))
    }
    if parts.isEmpty {
      guard isOnce else { return nil }
      parts = [("no job to run", nil)]
    }
    var line = StyledLine(look)
    for (index, part) in parts.enumerated() {
      if index > 0 { line.append(", ") }
      line.append(part.text, part.ink)
    }
    return line
  }
}
