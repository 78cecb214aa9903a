internal import Spool

/// Keeps this worker's file in `workers/`: when it is made, written and touched. A worker can do without it, so no
/// error of it ends anything.
final class PresenceKeeper {
  private var presence: Presence?
  private var said: WorkerReport?
  /// In milliseconds of the loop's clock.
  private var beatAt: Int64 = .min / 2
  private var lookedAt: Int64 = .min / 2
  private var sweptAt: Int64 = .min / 2
  private(set) var problem: SpoolError?
  /// Milliseconds between two changes of what the file says.
  private static let pause: Int64 = 1000

  init() {}

  /// Whether it is time to say what is new.
  func isDue(at now: Int64) -> Bool { now - lookedAt >= Self.pause }

  /// Milliseconds until the next heartbeat, which comes when it ``isDue(at:)`` to say something: whoever waited less
  /// would not sleep at all until then.
  func untilBeat(at now: Int64, in spool: Spool) -> Int64 {
    max(0, beatAt + spool.heartbeatInterval - now, lookedAt + Self.pause - now)
  }

  private func isBeatDue(at now: Int64, in spool: Spool) -> Bool { now - beatAt >= spool.heartbeatInterval }

  /// - Returns: whether there is a ``problem`` that is new.
  func say(_ report: WorkerReport, in spool: Spool, at now: Int64) -> Bool {
    lookedAt = now
    guard isBeatDue(at: now, in: spool) || report != said else { return false }
    (beatAt, said) = (now, report)
    let isKnown = problem != nil
    do throws(SpoolError) {
      if try presence?.beat(report) != true { presence = try Presence(of: spool, report) }
      if now - sweptAt >= spool.heartbeatInterval {
        sweptAt = now
        try WorkerFiles(spool).sweep()
      }
      problem = nil
      return false
    } catch {
      problem = error
      return !isKnown
    }
  }

  /// Removes the file. If that fails, another worker does it.
  func end() {
    try? presence?.end()
    presence = nil
  }
}
