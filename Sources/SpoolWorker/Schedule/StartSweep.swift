internal import Spool

extension Worker {
  /// Removes what nobody has touched for 36 hours and no job needs. A worker's own work does not depend on it: what goes wrong is told, and that is all.
  func sweepAtStart() {
    do throws(SpoolError) {
      try spool.sweep(SweepOptions()) { finding in
        if let obstacle = finding.obstacle {
          return log(Event("sweep-failed", .warning, Fields().with("reason", "\(obstacle)")))
        }
        log(
          Event(
            "swept", .info,
            Fields().with("file", finding.place).with("kind", finding.kind.rawValue).with(
              "bytes", UInt64(finding.bytes))))
      }
    } catch {
      log(Event("sweep-failed", .warning, Fields().with("reason", "\(error)")))
    }
  }
}
