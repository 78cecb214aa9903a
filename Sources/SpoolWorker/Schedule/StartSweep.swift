internal import Spool

/// Prepares a spool for a worker: makes `urgent/` if an older version left the spool without it, and removes files that
/// no job needs and that have not changed for 36 hours. Errors are only logged, because the worker does not depend on
/// this.
struct StartSweep {
  private let spool: Spool
  private let log: (Event) -> Void

  init(_ spool: Spool, log: @escaping (Event) -> Void) {
    self.spool = spool
    self.log = log
  }

  func run() {
    do throws(SpoolError) { try spool.provideUrgent() } catch {
      log(Event("urgent-missing", .warning, Fields().with("reason", "\(error)")))
    }
    do throws(SpoolError) {
      try spool.cleanUp(CleanupOptions()) { finding in
        if let obstacle = finding.obstacle {
          return log(Event("sweep-failed", .warning, Fields().with("reason", "\(obstacle)")))
        }
        let facts = Fields().with("file", finding.place).with("kind", finding.kind.rawValue)
        log(Event("swept", .info, facts.with("bytes", UInt64(finding.bytes))))
      }
    } catch {
      log(Event("sweep-failed", .warning, Fields().with("reason", "\(error)")))
    }
  }
}
