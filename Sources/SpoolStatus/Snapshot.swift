package import Spool

package struct SpoolSnapshot: Sendable {
  package var location: String
  package var time: Timestamp
  package var counts: [JobState: Int] = [:]
  /// The jobs that were read, by state: only the names of waiting jobs beyond the first, none for done ones.
  package var jobs: [JobState: [JobStatus]] = [:]
  /// The size of the data of all jobs that have begun and are not done.
  package var stored: UInt64 = 0
  /// How many of the waiting jobs have data and were not read.
  package var unreadBegun = 0
  /// The number of receipts with `unproven=length` (spool(5)) among the first ``SnapshotReader/receiptsRead``.
  package var unproven = 0
  package var orders: [OrderStatus] = []
  /// Those that were not read included.
  package var orderCount = 0
  /// The workers, also those that have died and were not noticed by others yet.
  package var workers: [WorkerStatus] = []
  /// Seconds for which a server may answer nobody, as `defaults` have it.
  package var patience = JobRequest.defaultPatience
  /// The servers that rest or that a job waits for, those with the most jobs first.
  package var servers: [ServerStatus] = []
  package var restingServers: [ServerStatus] { servers.filter { $0.end > time } }
  var perHost: [ServerRule<Int>] = []
  /// Bytes that are free for the data of jobs; nil if that is not known.
  package var free: UInt64?
  package var seesWorkers = true
  /// The latest receipts, the last one first; nil if there are too many to look at.
  package var recent: [DoneStatus]?
  package var unreadable: [Directory] = []

  package init(location: String, time: Timestamp) { (self.location, self.time) = (location, time) }

  package func count(_ state: JobState) -> Int { counts[state] ?? 0 }

  mutating func add(_ job: JobStatus) {
    counts[job.state, default: 0] += 1
    jobs[job.state, default: []].append(job)
  }

  mutating func add(_ order: OrderStatus) {
    orders.append(order)
    orderCount += 1
  }

  /// The expected size of all running, retrying, interrupted and paused jobs, and of waiting ones that have data, with
  /// the bytes that they have so far; nil if one size is not known.
  package var progress: (bytes: UInt64, total: UInt64)? {
    var sum: (bytes: UInt64, total: UInt64) = (0, 0)
    if unreadBegun > 0 { return nil }
    for state in [JobState.running, .retrying, .interrupted, .paused, .waiting] {
      let known = jobs[state] ?? []
      guard state == .waiting || known.count == count(state) else { return nil }
      // A job without data and size has not begun, as most waiting jobs, and does not count.
      for job in known where job.bytes != nil || job.total != nil {
        guard let total = job.total else { return nil }
        sum.bytes &+= job.bytes ?? 0
        sum.total &+= total
      }
    }
    return sum
  }

  /// Bytes per second of all running jobs; nil if no rate is known.
  package var rate: Double? {
    let rates = (jobs[.running] ?? []).compactMap(\.rate)
    return rates.isEmpty ? nil : rates.reduce(0, +)
  }

  /// Seconds until all running jobs have their data; nil if a size or the rate is not known.
  package var secondsLeft: Int64? {
    let running = jobs[.running] ?? []
    guard !running.isEmpty, running.count == count(.running) else { return nil }
    var (bytes, total): (UInt64, UInt64) = (0, 0)
    for job in running {
      guard let size = job.total else { return nil }
      bytes &+= min(job.bytes ?? 0, size)
      total &+= size
    }
    return SpoolStatus.secondsLeft(bytes, of: total, rate: rate)
  }
}

package struct RateBook: Sendable {
  private var meters: [FileName: RateMeter] = [:]

  package init() {}

  /// Replaces the average rates from the journal by the growth of the data since the last snapshots.
  package mutating func apply(to snapshot: inout SpoolSnapshot, at milliseconds: Int64) {
    let running = snapshot.jobs[.running] ?? []
    var kept: [FileName: RateMeter] = [:]
    snapshot.jobs[.running] = running.map { job in
      guard let bytes = job.bytes else { return job }
      var (job, meter) = (job, meters[job.name] ?? RateMeter())
      meter.add(bytes, at: milliseconds)
      kept[job.name] = meter
      if let rate = meter.rate { job.rate = rate }
      return job
    }
    meters = kept
  }
}

extension SpoolSnapshot {
  /// The version of the format of ``json(limit:)``. It is raised when a member is removed or changes its meaning, not
  /// when one is added.
  package static let jsonFormat = 1

  /// One JSON object, as described in spoolrun(1).
  /// - Parameter limit: the maximum number of jobs of each state to list.
  package func json(limit: Int) -> String {
    let states = JobState.allCases
    let listed = states.map { (jobs[$0] ?? []).prefix(limit) }
    let omitted = zip(states, listed).filter { $0.0 != .done }.map {
      ($0.0.rawValue, JSONText.count(max(0, count($0.0) - $0.1.count)))
    }
    let bytes: JSONText = [
      "stored": .count(stored), "present": .count(progress?.bytes), "total": .count(progress?.total),
      "rate": .rate(rate), "left": .count(secondsLeft),
    ]
    let status: JSONText = [
      "format": .count(Self.jsonFormat), "spool": .string(escaped(location)), "time": .string(time.description),
      "jobs": .object(states.map { ($0.rawValue, .count(count($0))) }), "bytes": bytes,
      "list": .array(listed.joined().map(\.json)), "omitted": .object(omitted),
      "recent": recent.map { .array($0.map(\.json)) } ?? .null, "orders": .array(orders.prefix(limit).map(\.json)),
      "workers": .array(workers.map(\.json)), "servers": .array(servers.prefix(limit).map(\.json)),
      "unproven": .count(unproven), "unreadable": .array(unreadable.map { .string($0.rawValue) }),
    ]
    return status.text
  }

  /// The jobs of a proxy are not counted.
  mutating func add(_ all: [ServerStatus]) {
    if all.isEmpty { return }
    var counts: [ExactText: Int] = [:]
    for state in [JobState.waiting, .retrying, .interrupted] {
      for server in (jobs[state] ?? []).compactMap({ $0.target?.server }) { counts[server.exact, default: 0] += 1 }
    }
    let areMore = (jobs[.waiting] ?? []).count { $0.target != nil } < count(.waiting)
    servers = all.map { server in
      var server = server
      (server.jobs, server.areMore) = (counts[server.note.shown.exact] ?? 0, areMore)
      return server
    }
    servers.removeAll { $0.end <= time && $0.jobs == 0 && !$0.areMore && !$0.note.isProxy }
    servers.sort { ($1.jobs, $0.note.server) < ($0.jobs, $1.note.server) }
  }
}

/// A server or proxy that rests, and the jobs that wait for it.
package struct ServerStatus: Sendable, Equatable {
  package let note: ServerNote
  package let rest: ServerNote.Rest
  package let end: Timestamp
  /// Of the jobs that were read.
  package var jobs = 0
  /// Whether more wait than were read.
  package var areMore = false

  /// For each host that may not ask it; empty for one that does not rest.
  package static func all(_ seen: ServerFiles.Seen) -> [ServerStatus] {
    guard let note = seen.note else { return [] }
    return note.rests.map { ServerStatus(note: note, rest: $0, end: Timestamp(seconds: seen.end(of: $0))) }
  }

  package var name: String { note.isProxy ? "the proxy \(note.shownHost)" : note.shownHost }

  /// `mirror.example has rested for 5m00s, and is asked again in 4s (429, asked by the server)`
  package func sentence(now: Timestamp) -> String {
    let code = FailureCode.status(of: rest.code).map { "\($0)" } ?? escaped(rest.code)
    let why: String
    switch rest.cause {
    case "asked": why = "\(code), asked by the server"
    case "unreachable": why = code + (rest.host.map { ", for \(escaped($0))" } ?? "")
    default: why = code
    }
    let next = end > now ? "is asked again in \(shortDuration(end.seconds - now.seconds))" : "the next job asks it"
    return "\(name) has rested for \(shortDuration(now.seconds - rest.since.seconds)), and \(next) (\(why))"
  }

  package func line(now: Timestamp) -> String {
    sentence(now: now) + (jobs > 0 ? ": \(areMore ? "at least " : "")\(jobCount(jobs))" : "")
  }

  var json: JSONText {
    [
      "server": .string(escaped(note.server)), "cause": .string(escaped(rest.cause)),
      "code": .string(escaped(rest.code)), "reason": .string(escaped(rest.reason)),
      "host": .optional(rest.host.map { escaped($0) }), "since": .string(rest.since.description),
      "until": .string(end.description), "failures": .count(rest.failures), "jobs": .count(jobs),
    ]
  }
}

package struct WorkerStatus: Sendable {
  /// `HOST.PID.TAG`, safe for a terminal.
  package var name: String
  /// Whether it may be alive: it has given a sign of life within the lease.
  package var isAlive: Bool
  package var beat: Timestamp
  /// What it said then; nil if that cannot be read.
  package var report: WorkerReport?

  var json: JSONText {
    let options = report.map { $0.options.named.compactMap { option in Self.json(option.key, option.value) } } ?? []
    let waits: [JSONText] = (report?.waits ?? []).map { wait in
      ["cause": .string(escaped(wait.cause)), "reason": .string(escaped(wait.reason))]
    }
    return [
      "name": .string(name), "state": .string(isAlive ? "alive" : "silent"), "beat": .string(beat.description),
      "started": .optional(report?.started), "program": .optional(report?.program.map { escaped($0) }),
      "mode": .optional(report?.mode.map { escaped($0) }), "runs": .count(report?.runs), "options": .object(options),
      "waits": .array(waits), "claims": .count(report?.claims), "lost": .count(report?.lost),
      "missed": .count(report?.missed),
    ]
  }

  private static let numbers: Set = [
    "jobs", "per-host", "connections", "max-connections", "min-free", "max-size", "only",
  ]
  /// The file says only that there is one.
  private static let flags: Set = ["limit-rate", "gate"]

  /// - Returns: nil for a number that is none, and for what this version does not know.
  private static func json(_ key: String, _ value: String) -> (String, JSONText)? {
    if numbers.contains(key) { return decimal(value).map { (key, .count($0)) } }
    if flags.contains(key) { return (key, .bool(value == "yes")) }
    return key == "directory" ? (key, .string(escaped(value))) : nil
  }
}

extension ClaimName {
  /// - Parameter now: by the file system's clock.
  func isAlive(_ status: FileStatus, in spool: Spool, now: Timestamp) -> Bool {
    let leases = Leases(spool)
    return owner.map { leases.isAlive($0, beat: leases.beat(of: status), now: now) } ?? false
  }

  var shownOwner: String? { owner.map { escaped($0.text) } }
}
