internal import Spool

/// The limits on parallel jobs, and the running jobs.
struct Slots {
  struct Limits {
    /// Maximum number of parallel transfers.
    var jobs: Int
    /// Maximum number of parallel transfers from one scheme, host and port.
    var perHost: Int
    /// Maximum number of jobs past their transfer; at this number no other starts.
    var commits: Int

    /// The limits for a job of low priority, which never takes the last slot of several.
    var forLow: Limits { Limits(jobs: max(1, jobs - 1), perHost: max(1, perHost - 1), commits: commits) }
  }

  /// A job that has a slot.
  private struct Transfer {
    let host: String
    let priority: Priority
    /// It was told to give up its slot.
    var isBeingParked = false
  }

  let limits: Limits
  /// Transfers by host, and by job. A job in its commit no longer counts.
  private var byHost: [String: Int] = [:]
  private var transfers: [UInt64: Transfer] = [:]
  private var running: Set<UInt64> = []
  /// The outputs that running jobs have, and the jobs that wait for these.
  var outputs = OutputWait()
  var proxies = ProxyWait()
  /// A job that may have killed workers and so runs alone.
  private var alone: UInt64?
  /// Running `failed` hooks of rejected files.
  private(set) var tellings = 0

  init(_ limits: Limits) { self.limits = limits }

  /// Whether another job may start.
  var areFree: Bool { areFree(within: limits) }

  func areFree(within limits: Limits) -> Bool {
    alone == nil && transfers.count < limits.jobs && running.count - transfers.count + tellings < limits.commits
  }

  /// Whether no job runs.
  var areIdle: Bool { running.isEmpty }

  /// Whether the end of the run has to wait for a job or a hook.
  var areBusy: Bool { !running.isEmpty || tellings > 0 }

  /// The slots of hosts and proxies, at this time in milliseconds.
  func free(at now: Int64) -> FreeSlots {
    FreeSlots(perHost: limits.perHost, running: byHost, closed: proxies.closed(at: now))
  }

  mutating func start(_ id: UInt64, host: String, isAlone: Bool, _ priority: Priority = .normal) {
    running.insert(id)
    transfers[id] = Transfer(host: host, priority: priority)
    byHost[host, default: 0] += 1
    if isAlone { alone = id }
  }

  /// The job may run in parallel with others from now on.
  mutating func clear(_ id: UInt64) { if alone == id { alone = nil } }

  /// The job no longer needs its connection.
  mutating func transferred(_ id: UInt64) {
    guard let host = transfers.removeValue(forKey: id)?.host else { return }
    let left = (byHost[host] ?? 1) - 1
    byHost[host] = left > 0 ? left : nil
    clear(id)
  }

  mutating func end(_ id: UInt64) {
    transferred(id)
    running.remove(id)
  }

  mutating func beginTelling() { tellings += 1 }
  mutating func endTelling() { tellings -= 1 }
}

// MARK: slots for jobs of high priority

extension Slots {
  /// Whether a job of low priority could give up its slot.
  var hasLow: Bool { transfers.values.contains { $0.priority == .low } }

  /// How many jobs were told to give up their slots, and have not yet.
  var beingParked: Int { transfers.values.count(where: \.isBeingParked) }

  mutating func park(_ id: UInt64) { transfers[id]?.isBeingParked = true }

  /// The job of low priority that started last, of those without which a job for this host could start; nil if one
  /// could start anyway, or if there is none.
  func youngestLow(inTheWayOf host: String) -> UInt64? {
    let isHostFull = (byHost[host] ?? 0) >= limits.perHost
    guard isHostFull || transfers.count >= limits.jobs || alone != nil else { return nil }
    return transfers.filter { _, transfer in
      transfer.priority == .low && !transfer.isBeingParked && (!isHostFull || transfer.host == host)
    }.keys.max()
  }
}

extension WorkerOptions {
  var limits: Slots.Limits { Slots.Limits(jobs: jobs, perHost: perHost, commits: Self.mostCommits) }
}
