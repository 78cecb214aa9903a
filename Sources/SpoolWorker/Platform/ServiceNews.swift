/// What the service manager is told, and when (sd_notify(3)). Times are in milliseconds.
struct ServiceNews {
  enum Stage { case starting, ready, stopping }

  /// So long after a text of what the worker does there is no other.
  static let statusInterval: Int64 = 5000
  /// So long after it was found unchanged it is not asked for again.
  private static let lookInterval: Int64 = 1000

  /// Half the time after which the manager takes the worker for hung; nil if it does not watch it.
  private let beat: Int64?
  private var nextBeat: Int64 = 0
  private var stage = Stage.starting
  private var status = ""
  private var nextStatus: Int64 = 0
  /// Whether the worker may do something else than what was told last.
  private var mayHaveChanged = true

  /// - Parameter watchdog: `WATCHDOG_USEC`, in microseconds; nil if there is none.
  init(watchdog: Int64?) { beat = watchdog.map { max(1, $0 / 2000) } }

  /// What to tell now; empty if nothing is due.
  /// - Parameter status: what the worker does, for a person.
  mutating func due(_ new: Stage, _ status: @autoclosure () -> String, at now: Int64) -> [String] {
    var news: [String] = []
    if new != stage {
      news.append(new == .stopping ? "STOPPING=1" : "READY=1")
      (stage, nextStatus) = (new, 0)
    }
    if let beat, now >= nextBeat {
      news.append("WATCHDOG=1")
      nextBeat = now + beat
    }
    mayHaveChanged = true
    if now >= nextStatus {
      let text = status()
      if text != self.status { news.append("STATUS=\(text)") }
      nextStatus = now + (text == self.status ? Self.lookInterval : Self.statusInterval)
      (self.status, mayHaveChanged) = (text, false)
    }
    return news
  }

  /// How long nothing is due.
  func untilDue(at now: Int64) -> Int64 {
    let untilBeat = beat == nil ? Int64.max : nextBeat - now
    return max(0, mayHaveChanged ? min(untilBeat, nextStatus - now) : untilBeat)
  }
}
