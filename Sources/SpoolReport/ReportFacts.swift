package import Spool

/// What a job's journal says, as the report needs it. Pure.
package struct JobRecord: Sendable, Equatable {
  /// One try, from its `started:` to the line that ends it.
  package struct Attempt: Sendable, Equatable {
    package enum End: Sendable, Equatable {
      case done, interrupted
      case failed(code: String)
      /// It runs, or its worker has died.
      case open
    }

    /// As the journal counts it; 0 if that is not known.
    package var number: UInt64 = 0
    /// The one that tried; empty if that is not known.
    package var worker = ""
    package var begun: Timestamp
    package var ended: Timestamp
    /// How long it took; 0 if that is less than the journal tells.
    package var milliseconds: Int64 = 0
    package var end = End.open
    /// Of the last URL that it tried, with the port if there is one; empty if that is not known.
    package var host: String
    /// Bytes that it received over the network.
    package var bytes: UInt64 = 0
  }

  package var name: FileName
  /// Whether it is the record of an entry that is no job.
  package var isRecord = false
  package var directory: Directory
  package var attempts: [Attempt] = []
  /// Of the payload or of what the server has, in bytes; nil if it is not known.
  package var size: UInt64?
  /// The path of the payload below its root; nil if the job is not done.
  package var output: String?
  /// Why the last attempt failed, for a person; nil if none has.
  package var reason: String?
  /// When the file was dropped, as far as its journal or its times tell.
  package var since: Timestamp

  /// A host's name has at most 253 characters (RFC 1035 section 2.3.4), and a port.
  private static let longestHost = 260

  /// - Parameter changed: when the file was last written or renamed.
  package init(_ name: FileName, in directory: Directory, bytes: UnsafeRawBufferPointer, changed: Timestamp) {
    self.name = name
    self.directory = directory
    since = changed
    var isFirst = true
    var recorded: UInt64 = 0
    JournalScan.lines(bytes) { line in
      if isFirst, let time = line.time { (since, isFirst) = (min(time, changed), false) }
      switch line.key {
      case .started: begin(line)
      case .response, .verified: size = line.number("size") ?? size
      case .requeued: recorded = 0
      case .failed, .interrupted:
        let fetched = line.number("fetched") ?? 0
        recorded &+= fetched
        let isFailure = line.key == .failed
        end(line, isFailure ? .failed(code: line.text("code") ?? "unknown") : .interrupted, fetched)
        if isFailure { reason = line.text("reason") }
      case .done:
        output = line.text("output")
        let all = line.number("bytes-fetched") ?? 0
        // Whole seconds are those of several attempts.
        let exact = line.number("milliseconds").flatMap { $0 % 1000 == 0 ? nil : Int64(clamping: $0) }
        end(line, .done, all > recorded ? all - recorded : 0, milliseconds: exact)
        recorded = max(recorded, all)
      default: break
      }
    }
  }

  private mutating func begin(_ line: ScannedLine) {
    guard let time = line.time else { return }
    let host = line.text("url").map { String(URLText($0).host.prefix(Self.longestHost)) } ?? ""
    // An attempt has such a line for each mirror. After a worker that was killed, the next one has the same number.
    let (number, worker) = (line.number("attempt") ?? 0, line.text("worker") ?? "")
    if let last = attempts.last, last.end == .open, last.number == number, last.worker.exact == worker.exact {
      attempts[attempts.count - 1].host = host
    } else {
      attempts.append(Attempt(number: number, worker: worker, begun: time, ended: time, host: host))
    }
  }

  private mutating func end(_ line: ScannedLine, _ end: Attempt.End, _ bytes: UInt64, milliseconds: Int64? = nil) {
    guard let time = line.time else { return }
    // A receipt that was written again, or a failure before anything was tried.
    if attempts.last?.end != .open {
      if end == .done, attempts.last?.end == .done { return }
      attempts.append(Attempt(begun: time, ended: time, host: attempts.last?.host ?? ""))
    }
    let last = attempts.count - 1
    (attempts[last].ended, attempts[last].end, attempts[last].bytes) = (max(time, attempts[last].begun), end, bytes)
    attempts[last].milliseconds = milliseconds ?? (attempts[last].ended.seconds - attempts[last].begun.seconds) * 1000
  }

  var seconds: Int64 {
    guard let first = attempts.first, let last = attempts.last else { return 0 }
    return max(0, last.ended.seconds - first.begun.seconds)
  }

  var code: String? { if case .failed(let code) = attempts.last?.end { code } else { nil } }

  var host: String { attempts.last?.host ?? "" }
}

/// What the report shows of all jobs, summed up as they are read. Pure.
package struct ReportFacts: Sendable {
  struct HostSum: Sendable {
    var done = 0
    var bytes: UInt64 = 0
    /// What attempts brought whose time is known.
    var timed: (bytes: UInt64, milliseconds: Int64) = (0, 0)
    var failures = CountOverTime()
    var codes: [String: Int] = [:]

    /// Bytes per second while such an attempt ran; nil if there was none.
    var rate: Double? { timed.bytes > 0 ? Double(timed.bytes) * 1000 / Double(timed.milliseconds) : nil }
  }

  /// Numbers by minutes since the epoch.
  struct CountOverTime: Sendable, Equatable {
    private(set) var minutes: [Int64: UInt64] = [:]
    private(set) var total: UInt64 = 0

    mutating func add(_ number: UInt64, at time: Timestamp) {
      minutes[TimeAxis.floor(time.seconds, 60), default: 0] &+= number
      total &+= number
    }
  }

  /// What happened before is left out; nil: nothing.
  let since: Timestamp?
  /// What would have happened later has a wrong time, and is left out.
  let until: Timestamp

  private(set) var bytes = CountOverTime()
  private(set) var done = CountOverTime()
  private(set) var failures = CountOverTime()
  private(set) var codes: [String: CountOverTime] = [:]
  private(set) var hosts: [String: HostSum] = [:]
  private(set) var slowest = TopList<JobRecord>(20)
  private(set) var biggest = TopList<JobRecord>(20)
  private(set) var oldest = TopList<JobRecord>(20)
  private(set) var failed = TopList<JobRecord>(100)
  private(set) var failedCodes: [String: Int] = [:]

  /// More hosts and codes than these are summed up: any text may be in a file that was dropped.
  private static let mostHosts = 5000
  private static let mostCodes = 200
  static let others = "(others)"

  /// - Parameter now: by the clock of the file system.
  package init(since: Timestamp?, now: Timestamp) {
    self.since = since
    until = now + 3600
  }

  package mutating func add(_ job: JobRecord) {
    for attempt in job.attempts where isWanted(attempt.ended) { add(attempt) }
    switch job.directory {
    case .done:
      guard let end = job.attempts.last?.ended, isWanted(end) else { return }
      done.add(1, at: end)
      slowest.add(job, by: job.seconds)
      if let size = job.size { biggest.add(job, by: Int64(clamping: size)) }
    case .failed:
      failedCodes[job.code ?? "unknown", default: 0] += 1
      failed.add(job, by: job.attempts.last?.ended.seconds ?? job.since.seconds)
    case .new, .urgent, .cur, .partial, .hold, .tmp, .standing, .workers, .files:
      oldest.add(job, by: -job.since.seconds)
      if isWanted(job.attempts.last?.ended ?? job.since) { slowest.add(job, by: job.seconds) }
    }
  }

  private func isWanted(_ time: Timestamp) -> Bool { since.map { $0 <= time } ?? true && time <= until }

  private mutating func add(_ attempt: JobRecord.Attempt) {
    bytes.add(attempt.bytes, at: attempt.ended)
    let host = hosts[attempt.host] != nil || hosts.count < Self.mostHosts ? attempt.host : Self.others
    var sum = hosts[host] ?? HostSum()
    sum.bytes &+= attempt.bytes
    if attempt.bytes > 0, attempt.milliseconds > 0 {
      sum.timed = (sum.timed.bytes &+ attempt.bytes, sum.timed.milliseconds &+ attempt.milliseconds)
    }
    switch attempt.end {
    case .done: sum.done += 1
    case .failed(let text):
      let code = codes[text] != nil || codes.count < Self.mostCodes ? text : Self.others
      failures.add(1, at: attempt.ended)
      codes[code, default: CountOverTime()].add(1, at: attempt.ended)
      sum.failures.add(1, at: attempt.ended)
      sum.codes[code, default: 0] += 1
    case .interrupted, .open: break
    }
    hosts[host] = sum
  }
}

/// The elements with the highest keys. Equal keys are in the order in which they came.
struct TopList<Element: Sendable>: Sendable {
  private var kept: [(key: Int64, element: Element)] = []
  private let limit: Int
  private var least = Int64.min
  /// The number of all that were added.
  private(set) var count = 0

  init(_ limit: Int) { self.limit = limit }

  mutating func add(_ element: Element, by key: Int64) {
    count += 1
    guard key > least || kept.count < limit else { return }
    kept.append((key, element))
    if kept.count < 4 * limit { return }
    kept = Array(sorted.prefix(limit))
    least = kept.last?.key ?? .min
  }

  private var sorted: [(key: Int64, element: Element)] { kept.sorted { $0.key > $1.key } }

  var elements: [Element] { sorted.prefix(limit).map(\.element) }
}

/// The minutes of the report, joined into at most ``mostBuckets`` of equal length. Pure.
struct TimeAxis: Equatable {
  /// The start of the first bucket, in minutes since the epoch.
  let first: Int64
  let minutes: Int64
  let count: Int

  static let mostBuckets = 168
  /// Fewer would be blocks, and no course over the time. So the axis begins earlier than what happened.
  static let leastBuckets: Int64 = 30
  private static let (hour, day): (Int64, Int64) = (60, 1440)
  private static let lengths: [Int64] = [
    1, 5, 15, hour, 3 * hour, 6 * hour, 12 * hour, day, 7 * day, 28 * day, 365 * day, 3650 * day,
  ]

  /// - Parameter used: the minutes in which something happened.
  /// - Parameter since: the first minute that may be shown; nil if any may.
  init(of used: some Sequence<Int64>, since: Int64? = nil) {
    let all = used.reduce(nil as ClosedRange<Int64>?) { range, minute in
      range.map { min($0.lowerBound, minute)...max($0.upperBound, minute) } ?? minute...minute
    }
    let range = all ?? 0...0
    func buckets(_ length: Int64) -> Int64 {
      Self.floor(range.upperBound, length) - Self.floor(range.lowerBound, length) + 1
    }
    let length = Self.lengths.first { buckets($0) <= Self.mostBuckets } ?? Self.lengths[Self.lengths.count - 1]
    minutes = length
    let (start, end) = (Self.floor(range.lowerBound, length), Self.floor(range.upperBound, length))
    let earliest = since.map { min(start, Self.floor($0, length)) } ?? .min
    let begin = all == nil ? start : min(start, max(end - Self.leastBuckets + 1, earliest))
    first = begin * length
    count = Int(min(end - begin + 1, Int64(Self.mostBuckets)))
  }

  /// The number of the bucket of this length, counted from the epoch.
  static func floor(_ time: Int64, _ length: Int64) -> Int64 {
    time >= 0 ? time / length : -((-time + length - 1) / length)
  }

  func sums(_ counts: ReportFacts.CountOverTime) -> [UInt64] {
    var sums = [UInt64](repeating: 0, count: count)
    for (minute, number) in counts.minutes {
      let index = Self.floor(minute - first, minutes)
      if sums.indices.contains(Int(index)) { sums[Int(index)] &+= number }
    }
    return sums
  }

  /// `2026-11-21 03:00`, or only the day if all buckets begin at midnight. In UTC.
  func label(_ index: Int) -> String {
    let text = Shown.time(Timestamp(seconds: (first + Int64(index) * minutes) * 60))
    return minutes % Self.day == 0 ? String(text.prefix(10)) : text
  }

  /// `5 minutes`, `hour`, `6 hours`, `day` and so on.
  var unit: String {
    func several(_ length: Int64, _ noun: String) -> String {
      minutes == length ? noun : "\(minutes / length) \(noun)s"
    }
    if minutes < Self.hour { return several(1, "minute") }
    return minutes < Self.day ? several(Self.hour, "hour") : several(Self.day, "day")
  }
}

extension ReportFacts {
  /// How many waiting jobs are read; of others only their age counts.
  private static let waitingRead = 10_000

  /// Reads the journals and receipts of a spool, archived ones too. It changes nothing.
  /// - Throws: ``SpoolError``, EACCES if this user may not read one of the directories.
  package static func read(_ spool: Spool, since: Timestamp?, now: Timestamp) throws(SpoolError) -> ReportFacts {
    var facts = ReportFacts(since: since, now: now)
    // A job that moves while the directories are read is seen in the next one, by the same inode.
    var seen: Set<UInt64> = []
    // Of what is no job, by the name of its record.
    let failed = try spool.list(.failed)
    let records = try JobSearch(spool).leftovers(in: failed)
    var subjects: [FileName: FileName] = [:]
    for name in failed where records.contains(name.record) {
      if try JobSearch(spool).record(of: name) != nil { subjects[name.record] = name }
    }
    for directory in [Directory.hold, .new, .urgent, .cur, .partial, .cur, .failed, .done] {
      // A receipt is the last that is written to a job.
      let from = directory == .done ? since?.seconds ?? .min : .min
      let most = directory.takesNewJobs ? Self.waitingRead : .max
      try JobSearch(spool).eachJob(
        in: directory, besidesOrders: directory != .done, modifiedSince: from, reading: most
      ) { (file) throws(SpoolError) in
        if !seen.insert(file.status.inode).inserted { return }
        let name = directory == .cur ? ClaimName(file.name)?.job.fileName ?? file.name : file.name
        var record = JobRecord(
          name, in: directory, bytes: file.bytes, changed: Timestamp(seconds: file.lastChange(at: now)))
        if directory == .failed, records.contains(name) {
          guard let subject = subjects[name] else { return }
          (record.name, record.isRecord) = (subject, true)
        }
        facts.add(record)
      }
    }
    try JobSearch(spool).eachArchived(modifiedSince: since?.seconds ?? .min) { file in
      if !seen.insert(file.status.inode).inserted { return }
      let changed = min(Timestamp(seconds: file.status.modified), now)
      facts.add(JobRecord(file.name, in: .done, bytes: file.bytes, changed: changed))
    }
    return facts
  }
}
