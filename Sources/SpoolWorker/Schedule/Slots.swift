/// The limits on what runs at once, and what runs.
struct Slots {
  struct Limits {
    /// Transfers at once.
    var jobs: Int
    /// Transfers at once from one scheme, host and port.
    var perHost: Int
    /// Jobs that are past their transfer, beyond which no other starts.
    var commits: Int
  }

  let limits: Limits
  /// Transfers by host, and the hosts by job: what the limits count. A job in its commit counts no more.
  private(set) var byHost: [String: Int] = [:]
  private var hosts: [UInt64: String] = [:]
  private var running: Set<UInt64> = []
  /// A job that may have killed workers, and has no other beside it.
  private var alone: UInt64?
  /// Hooks that are told of what was no job.
  private(set) var tellings = 0

  init(_ limits: Limits) { self.limits = limits }

  /// Another job may start.
  var areFree: Bool {
    alone == nil && hosts.count < limits.jobs && running.count - hosts.count + tellings < limits.commits
  }

  /// No job runs.
  var areIdle: Bool { running.isEmpty }

  /// Something is under way that the end of a run waits for.
  var areBusy: Bool { !running.isEmpty || tellings > 0 }

  /// - Parameter host: nil for a job that opens no connection.
  func areFree(for host: String?) -> Bool { host.map { byHost[$0] ?? 0 < limits.perHost } ?? true }

  mutating func start(_ id: UInt64, host: String, isAlone: Bool) {
    running.insert(id)
    hosts[id] = host
    byHost[host, default: 0] += 1
    if isAlone { alone = id }
  }

  /// The job has shown that it may have others beside it.
  mutating func clear(_ id: UInt64) { if alone == id { alone = nil } }

  /// The job needs its connection no more.
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
