internal import Spool

/// Prepares a spool for a worker: says what its file system can do, makes `urgent/` if an older version left the spool
/// without it, and removes files that no job needs and that have not changed for 36 hours. Errors are only logged,
/// because the worker does not depend on this.
struct StartSweep {
  private let spool: Spool
  private let fileSystem: FileSystemTraits?
  private let log: (Event) -> Void

  /// - Parameter fileSystem: nil if it was not tried.
  init(_ spool: Spool, _ fileSystem: FileSystemTraits?, log: @escaping (Event) -> Void) {
    self.spool = spool
    self.fileSystem = fileSystem
    self.log = log
  }

  func run() {
    if let fileSystem {
      let limits = fileSystem.limits.isEmpty ? nil : fileSystem.limits.joined(separator: "; ")
      let facts = Fields().with("type", fileSystem.type).with("fitness", limits == nil ? "fit" : "fit with limits")
      log(Event("file-system", .info, facts.with("limits", limits)))
    }
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
