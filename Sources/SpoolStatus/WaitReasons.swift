internal import Spool

/// Why the jobs of a spool wait, from what its workers say and what its running jobs take. Pure.
private struct WaitReasons {
  private let now: Timestamp
  /// The workers that take any job, and may be alive.
  private let serving: [WorkerReport]
  /// Whether a worker may be there, even if it cannot be seen.
  private let mayHaveWorker: Bool
  /// The worker's own reason, if no worker can start a job.
  private let obstacle: WaitReason?
  private let isNetworkAwaited: Bool
  private let rests: [ExactText: ServerStatus]
  private let transfers: [ExactText: Int]
  /// By output, the names of the running jobs.
  private let outputs: [ExactText: String]
  /// The slots of all workers together, and the lowest limit for one host, which counts for all; nil if one does not
  /// say.
  private let limits: (slots: Int?, perHost: Int?)
  private let rules: [ServerRule<Int>]
  private let runs: Int
  /// Bytes that a job may take; nil if no limit is known.
  private let room: UInt64?

  init(_ snapshot: SpoolSnapshot) {
    now = snapshot.time
    let alive = snapshot.workers.filter(\.isAlive)
    // One that has few jobs to do, such as that of `get`, says nothing of the others.
    serving = alive.compactMap(\.report).filter { $0.options["only"] == nil }
    let isPartlyKnown = serving.count < alive.count
    mayHaveWorker = !alive.isEmpty || !snapshot.seesWorkers || snapshot.count(.running) > 0
    let stopped = serving.compactMap { report in report.waits.first { $0.cause != "network" } }
    obstacle =
      stopped.isEmpty || stopped.count < serving.count || isPartlyKnown
      ? nil : WaitReason(WaitReason.Cause(rawValue: stopped[0].cause) ?? .other, escaped(stopped[0].reason))
    isNetworkAwaited = serving.contains { $0.waits.contains { $0.cause == "network" } }
    rests = Dictionary(snapshot.servers.map { ($0.note.shown.exact, $0) }, uniquingKeysWith: { $1 })
    let running = snapshot.jobs[.running] ?? []
    transfers = Dictionary(running.compactMap { $0.target?.server?.exact }.map { ($0, 1) }, uniquingKeysWith: +)
    outputs = Dictionary(
      running.compactMap { job in (job.target?.output?.exact).map { ($0, job.name.display) } },
      uniquingKeysWith: { first, _ in first })
    limits = (
      Self.values("jobs", serving, isPartlyKnown)?.reduce(0, +), Self.values("per-host", serving, isPartlyKnown)?.min()
    )
    rules = snapshot.perHost
    runs = serving.reduce(0) { $0 + $1.runs }
    let kept = isPartlyKnown ? nil : serving.compactMap { $0.options["min-free"].flatMap { decimal($0) } }.min()
    room = snapshot.free.flatMap { free in kept.map { free > $0 ? free - $0 : 0 } }
  }

  private static func values(_ option: String, _ workers: [WorkerReport], _ isPartlyKnown: Bool) -> [Int]? {
    let values = workers.compactMap { $0.options[option].flatMap { decimal($0) } }
    if isPartlyKnown || values.isEmpty || values.count < workers.count { return nil }
    return values.map { Int(clamping: min($0, 1 << 32)) }
  }

  /// - Returns: nil if the job runs, or nothing is seen that it waits for.
  func reason(for job: JobStatus) -> WaitReason? {
    switch job.state {
    case .running, .failed, .done: return nil
    case .paused: return WaitReason(.held, "held")
    case .retrying, .interrupted, .waiting: break
    }
    if let next = job.next, next > now { return time(next, job) }
    // As the reader has found it.
    if let wait = job.waits { return wait }
    // No worker that starts asks a server that still rests.
    if let rest = (job.target?.server?.exact).flatMap({ rests[$0] }), mayHaveWorker || rest.end > now {
      return WaitReason(.server, rest.sentence(now: now))
    }
    if !mayHaveWorker { return WaitReason(.worker, "no worker runs") }
    if let obstacle { return obstacle }
    if let output = job.target?.output?.exact, let other = outputs[output] {
      return WaitReason(.order, "\(other) runs, which has its output")
    }
    if let room, let size = job.total ?? job.target?.size, size > (job.bytes ?? 0), size - (job.bytes ?? 0) > room {
      return WaitReason(
        .space, "it needs \(shortBytes(size - (job.bytes ?? 0))), and \(shortBytes(room)) are free for it")
    }
    let server = job.target?.server
    let (slots, perHost) = limits(of: server ?? "", isLow: job.priority == .low)
    if let server = server?.exact, let perHost, transfers[server, default: 0] >= perHost {
      return WaitReason(.host, "\(job.target?.host ?? "its host") has as many transfers as allowed (\(perHost))")
    }
    guard let slots, runs >= slots else { return growth(job) }
    if job.priority == .low, let all = limits.slots, runs < all {
      return WaitReason(.priority, "it is of low priority, and leaves a slot free")
    }
    return WaitReason(.slots, slots == 1 ? "another job runs" : "\(runs) jobs run")
  }

  /// A worker gives a server more transfers one by one, unless a rule says how many it bears.
  private func growth(_ job: JobStatus) -> WaitReason? {
    guard let server = job.target?.server, let most = limits.perHost, rules.most(from: server, limit: most) == nil,
      let count = transfers[server.exact], count >= ServerNote.firstTransfers
    else { return nil }
    return WaitReason(
      .host, "\(job.target?.host ?? "its host") has \(count) transfers, and more only if they bring more")
  }

  private func time(_ next: Timestamp, _ job: JobStatus) -> WaitReason {
    let code = job.problem?.code
    if isNetworkAwaited, code == FailureCode.noNetwork.rawValue {
      return WaitReason(.network, "until the network is back, or \(next)")
    }
    return WaitReason(.time, "until \(next)")
  }

  /// A job of low priority never takes the last slot of several.
  private func limits(of server: String, isLow: Bool) -> (slots: Int?, perHost: Int?) {
    let perHost = rules.most(from: server, limit: limits.perHost ?? .max) ?? limits.perHost
    guard isLow else { return (limits.slots, perHost) }
    return (limits.slots.map { max(1, $0 - max(1, serving.count)) }, perHost.map { max(1, $0 - 1) })
  }
}

extension SpoolSnapshot {
  mutating func explain() {
    let reasons = WaitReasons(self)
    for (state, group) in jobs {
      jobs[state] = group.map { job in
        var job = job
        job.waits = reasons.reason(for: job)
        return job
      }
    }
  }
}
