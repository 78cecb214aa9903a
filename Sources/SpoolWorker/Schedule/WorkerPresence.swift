internal import Spool

/// What this worker says of itself in `workers/`.
extension Worker {
  /// Says what is new, and gives a sign of life if it is time. To be called a few times a second while jobs run.
  func keepPresence() {
    let (presence, now) = (account.presence, LoopExecutor.milliseconds())
    guard presence.isDue(at: now), presence.say(report(), in: spool, at: now), let problem = presence.problem else {
      return
    }
    log(Event("no-presence", .info, Fields().with("reason", "\(problem)")))
  }

  private func report() -> WorkerReport {
    let options = environment.options
    var report = WorkerReport(started: account.began)
    report.program = options.userAgent
    report.mode = admission.stays ? "watch" : "once"
    report.options = Fields().with("jobs", options.jobs).with("per-host", options.perHost)
      .with("connections", options.connections).with("max-connections", options.maxConnections)
      .with("min-free", options.minFree > 0 ? options.minFree : nil).with("max-size", options.maxSize)
      .with("limit-rate", options.limitRate == nil ? nil : "yes").with("gate", options.gate == nil ? nil : "yes")
      .with("directory", options.directory.map { escaped($0) }).with("only", options.only?.count)
    report.runs = dispatcher.attempts.count
    report.waits = waits
    (report.claims, report.lost, report.missed) = account.claims
    return report
  }

  /// Why jobs that could run wait.
  var waits: [WorkerReport.Wait] {
    var waits: [WorkerReport.Wait] = []
    switch obstacle ?? (dispatcher.scheduler.backlog.isEmpty ? nil : admission.lastObstacle) {
    case nil: break
    case .gate(let reason): waits.append(.init("gate", reason))
    case .space:
      let free = spool.freeSpace().map { "\($0) bytes are free" } ?? "not enough is free"
      waits.append(.init("space", "\(free), --min-free keeps \(environment.space.kept)"))
    case .output(let reason): waits.append(.init("output", reason))
    case .proxy(let reason): waits.append(.init("proxy", reason))
    }
    let count = account.waiting.countForNetwork
    if count > 0 { waits.append(.init("network", "\(count) jobs wait for the network")) }
    return waits
  }
}
