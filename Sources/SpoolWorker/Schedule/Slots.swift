/// The limits on parallel jobs, and the running jobs.
struct Slots {
  struct Limits {
    /// Maximum number of parallel transfers.
    var jobs: Int
    /// Maximum number of parallel transfers from one scheme, host and port.
    var perHost: Int
    /// Maximum number of jobs past their transfer; at this number no other starts.
    var commits: Int
  }

  let limits: Limits
  /// Transfers by host, and hosts by job. A job in its commit no longer counts.
  private var byHost: [String: Int] = [:]
  private var hosts: [UInt64: String] = [:]
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
  var areFree: Bool {
    alone == nil && hosts.count < limits.jobs && running.count - hosts.count + tellings < limits.commits
  }

  /// Whether no job runs.
  var areIdle: Bool { running.isEmpty }

  /// Whether the end of the run has to wait for a job or a hook.
  var areBusy: Bool { !running.isEmpty || tellings > 0 }

  /// The slots of hosts and proxies, at this time in milliseconds.
  func free(at now: Int64) -> FreeSlots {
    FreeSlots(perHost: limits.perHost, running: byHost, closed: proxies.closed(at: now))
  }

  mutating func start(_ id: UInt64, host: String, isAlone: Bool) {
    running.insert(id)
    hosts[id] = host
    byHost[host, default: 0] += 1
    if isAlone { alone = id }
  }

  /// The job may run in parallel with others from now on.
  mutating func clear(_ id: UInt64) { if alone == id { alone = nil } }

  /// The job no longer needs its connection.
  mutating func transferred(_ id: UInt64) {
    guard let host = hosts.removeValue(forKey: id) else { return }
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

extension WorkerOptions {
  var limits: Slots.Limits { Slots.Limits(jobs: jobs, perHost: perHost, commits: Self.mostCommits) }
}
