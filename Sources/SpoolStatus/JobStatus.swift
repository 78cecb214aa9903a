package import Spool

/// The state of a job as `status` shows it, the most important first.
package enum JobState: String, CaseIterable, Sendable {
  case running, failed, retrying, interrupted, paused, waiting, done

  var usualDirectory: Directory {
    switch self {
    case .running, .interrupted: .cur
    case .failed: .failed
    case .retrying: .partial
    case .paused: .hold
    case .waiting: .new
    case .done: .done
    }
  }
}

/// What the spool knows about a job. A property is nil if it is not known.
package struct JobStatus: Sendable {
  package struct Problem: Sendable, Equatable {
    /// A failure code of spool.5, `interrupted`, or `crashed`.
    package var code: String
    package var reason: String
    package var time: Timestamp?

    package init(code: String, reason: String, time: Timestamp? = nil) {
      (self.code, self.reason, self.time) = (code, reason, time)
    }
  }

  package var name: FileName
  package var state: JobState
  package var directory: Directory
  package var inode: UInt64?
  package var bytes: UInt64?
  /// The expected size of the data, in bytes.
  package var total: UInt64?
  /// Bytes per second.
  package var rate: Double?
  /// Seconds for which the data of a running job has not grown; nil if that is not unusual.
  package var quiet: Int64?
  /// Attempts that count, including the current one.
  package var attempts: Int?
  package var attemptLimit: Int?
  package var next: Timestamp?
  package var problem: Problem?
  /// The payload is in its place, and the hook `deliver` has not accepted it yet. Then ``attempts`` counts deliveries.
  package var awaitsDelivery = false
  /// The claim's owner: `HOST.PID.TAG`.
  package var worker: String?
  /// That of the job or of `defaults`; nil if the job was not read.
  package var priority: Priority?
  package var target: JobTarget?
  /// Why it does not run now; nil if it does, or nothing is seen that it waits for.
  package var waits: WaitReason?

  /// Of a job of which only the place is known.
  /// - Parameter directory: nil for the usual one of that state.
  package init(_ name: FileName, _ state: JobState, in directory: Directory? = nil) {
    (self.name, self.state) = (name, state)
    self.directory = directory ?? state.usualDirectory
  }

  /// Seconds until a running job's transfer ends, at its present rate.
  package var secondsLeft: Int64? {
    state == .running ? SpoolStatus.secondsLeft(bytes ?? 0, of: total, rate: rate) : nil
  }
}

/// What a job shares with others: its server, and its output. By its text alone, and only as exact as `status` needs
/// it: the worker parses URLs with libcurl.
package struct JobTarget: Sendable, Equatable {
  /// Scheme, host and port of the first URL, in lower case; nil if there is none.
  package let server: String?
  /// The path of the payload, with the output root if the job names one; nil if it has none.
  package let output: String?
  /// The size that the job declares, in bytes.
  package let size: UInt64?

  package init(_ request: JobRequest) {
    size = request.expected.size
    let url = request.urls.first.map { URLText($0.text) }.flatMap { $0.scheme.isEmpty ? nil : $0 }
    server = url.map { ServerNote.shown("\($0.scheme)\($0.host)".lowercasedASCII) }
    let last = url?.lastName.map { String($0) }
    output = request.outputText(named: last).map { output in (request.root.map { "\($0.text):" } ?? "") + output }
  }

  /// The server's host, safe for a terminal.
  var host: String? { server.map { escaped(URLText($0).host) } }
}

package struct WaitReason: Sendable, Equatable {
  /// The raw value is that of the JSON.
  package enum Cause: String, CaseIterable, Sendable {
    case held
    case time
    case worker
    /// What the workers wait for themselves: see ``WorkerReport/Wait``.
    case gate, space, output, proxy, server, network
    /// Its worker is gone, and the lease is not over.
    case lease
    /// Somebody may still write it.
    case unfinished
    /// Another job has its output.
    case order
    /// Its server has as many transfers as `--per-host` allows.
    case host
    /// All slots are taken (`--jobs`).
    case slots
    /// It is of low priority, and leaves a slot free.
    case priority
    /// Its worker says what this version does not know.
    case other
  }

  package let cause: Cause
  package let reason: String

  package init(_ cause: Cause, _ reason: String) { (self.cause, self.reason) = (cause, reason) }

  var json: JSONText { ["cause": .string(cause.rawValue), "reason": .string(reason)] }

  /// In a table; nil for what the table says in other words.
  var sentence: String? {
    switch cause {
    case .held, .time: nil
    case .gate, .proxy: "waits for the \(cause.rawValue): \(reason)"
    case .space: "waits for room on the disk: \(reason)"
    case .output: "waits for the output directory: \(reason)"
    case .other: "waits for its worker: \(reason)"
    case .network: "waits for the network"
    case .unfinished: "not complete: \(reason)"
    case .slots: "waits for a slot: \(reason)"
    case .worker, .server, .lease, .order, .host, .priority: reason
    }
  }
}

/// Derives a ``JobStatus`` from a job's text and the status of its data. Pure.
struct JobReading {
  let text: JobText
  let defaults: JobRequest
  /// Size and last change of the data; nil if there is none.
  let data: (size: UInt64, modified: Int64)?
  let now: Timestamp

  /// Seconds without a byte after which the average rate of a transfer is meaningless.
  static let quietAfter: Int64 = 5

  func status(_ name: FileName, _ state: JobState, in directory: Directory) -> JobStatus {
    let journal = text.journal
    let request = text.request.inheriting(defaults)
    var status = JobStatus(name, state, in: directory)
    status.priority = text.priority(inheriting: defaults)
    status.target = JobTarget(text.request)
    status.bytes = data?.size
    status.total = total
    status.attemptLimit = request.attempts ?? JobRequest.defaultAttempts
    status.awaitsDelivery = journal.publication.awaitsDelivery
    let failures = status.awaitsDelivery ? journal.attempts.failedDeliveries : journal.attempts.failures
    status.attempts = failures + (state == .running ? 1 : 0)
    status.problem = problem(state)
    if state == .running, !status.awaitsDelivery {
      status.rate = rate
      if let data, let started = journal.attempts.lastStarted {
        let quiet = now.seconds - max(data.modified, started.seconds)
        if quiet >= Self.quietAfter { status.quiet = quiet }
      }
    }
    return status
  }

  /// The expected size: the declared one, or that of what the server has if some of it is there.
  var total: UInt64? {
    text.request.inheriting(defaults).expected.size ?? (data == nil ? nil : text.journal.data.version?.size)
  }

  /// The bytes since the attempt began, divided by the time until the data's last change.
  private var rate: Double? {
    guard let data, let started = text.journal.attempts.lastStarted, let from = text.journal.traffic.grewFrom,
      data.size >= from
    else { return nil }
    if now.seconds - data.modified >= Self.quietAfter { return 0 }
    let seconds = data.modified - started.seconds
    // Both times are whole seconds, so the rate of a shorter time would be far off.
    guard seconds >= 2 else { return nil }
    return Double(data.size - from) / Double(seconds)
  }

  private func problem(_ state: JobState) -> JobStatus.Problem? {
    let journal = text.journal
    // One that has not failed may wait for another job's output.
    let isInterrupted = state == .interrupted || state == .retrying && journal.attempts.lastFailure == nil
    if isInterrupted, let stop = journal.attempts.lastInterruption { return .init(interruption: stop) }
    guard state != .paused, let failure = journal.attempts.lastFailure else { return nil }
    // After `retry` the old failures no longer count.
    if state == .running, journal.attempts.failures + journal.attempts.failedDeliveries == 0 { return nil }
    return .init(failure)
  }
}

extension JobStatus.Problem {
  init(interruption: Fields) {
    self.init(code: "interrupted", reason: interruption["reason"] ?? "", time: interruption.time)
  }

  /// From the fields of a `failed:` line.
  init(_ failure: Fields) {
    var reason = failure["reason"] ?? ""
    if let line = failure["line"] { reason = "line \(line): \(reason)" }
    // The reason of `disk-full` already has the figures.
    if let expected = failure["expected"], let found = failure["found"],
      failure["code"] != FailureCode.diskFull.rawValue
    {
      reason += " (expected \(expected), found \(found))"
    }
    self.init(code: failure["code"] ?? "failed", reason: reason, time: failure.time)
  }
}

extension JobStatus {
  var json: JSONText {
    [
      "name": .string(name.display), "state": .string(state.rawValue), "bytes": .count(bytes), "total": .count(total),
      "rate": .rate(rate), "left": .count(secondsLeft), "attempts": .count(attempts),
      "attempt-limit": .count(attemptLimit), "next": .optional(next), "worker": .optional(worker),
      "priority": .optional(priority?.rawValue), "waits": waits?.json ?? .null,
      "delivery": .optional(awaitsDelivery ? "waiting" : nil), "error": problem?.json ?? .null,
    ]
  }
}

extension JobStatus.Problem {
  var json: JSONText { ["code": .string(code), "reason": .string(reason), "time": .optional(time)] }
}

package struct OrderStatus: Sendable {
  package var name: FileName
  /// That of a job whose file is in the same place; ``JobState/waiting`` where a job would be retried.
  package var state: JobState
  package var inode: UInt64?
  /// When its list was last found sound; nil for never.
  package var checked: Timestamp?
  package var entries: Int?
  package var problems = ListProblems()
  package var next: Timestamp?
  /// Why the last check failed; nil if it did not.
  package var problem: JobStatus.Problem?

  var shownState: String { state == .running ? "checking" : state.rawValue }

  var json: JSONText {
    [
      "name": .string(name.display), "state": .string(shownState), "checked": .optional(checked),
      "entries": .count(entries), "next": .optional(next), "problems": .count(problems.count),
      "error": problem?.json ?? .null,
    ]
  }

  /// - Parameter next: the time of modification of an order that waits.
  init(_ name: FileName, _ state: JobState, _ text: JobText? = nil, next: Timestamp? = nil, inode: UInt64? = nil) {
    (self.name, self.state) = (name, state == .retrying ? .waiting : state)
    (self.next, self.inode) = (next, inode)
    guard let journal = text?.journal else { return }
    let checks = journal.checks
    checked = checks.lastTime
    entries = checks.lastTime == nil ? nil : checks.entries
    problems = checks.problems
    problem = journal.attempts.lastFailure.map { JobStatus.Problem($0) }
  }
}

package struct DoneStatus: Sendable {
  package var name: FileName
  package var time: Timestamp
  /// The path of the payload below its root.
  package var output: String
  /// Bytes of the payload; nil if the receipt does not say.
  package var size: UInt64?
  /// Bytes that were received for it, in all attempts.
  package var fetched: UInt64?
  package var seconds: Int64?
  package var figures: PayloadFigures?
  package var attempts: Int?

  /// - Returns: nil if there is no receipt in the file.
  package init?(_ name: FileName, _ bytes: UnsafeRawBufferPointer) {
    var receipt: (time: Timestamp, fields: Fields)?
    var verified: UInt64?
    JournalScan.lines(bytes) { line in
      switch line.key {
      case .verified: verified = line.number("size")
      case .done: if let time = line.time, let fields = line.fields { receipt = (time, fields) }
      default: break
      }
    }
    guard let receipt else { return nil }
    self.name = name
    (time, output, size) = (receipt.time, receipt.fields["output"] ?? "", verified)
    figures = verified.map { PayloadFigures(size: $0, receipt: receipt.fields) }
    fetched = receipt.fields.number("bytes-fetched")
    seconds = receipt.fields.number("seconds").map { Int64(clamping: $0) }
    attempts = receipt.fields.number("attempts").map { Int(clamping: $0) }
  }

  var json: JSONText {
    [
      "name": .string(name.display), "time": .string(time.description), "output": .string(escaped(output)),
      "size": .count(size), "fetched": .count(fetched), "seconds": .count(seconds), "attempts": .count(attempts),
    ]
  }
}

/// The size of a payload, and how long and how fast it came: the same wherever a job that is done is told of. Pure.
package struct PayloadFigures: Sendable {
  private let size: UInt64
  /// Bytes that were received for it, and in how many milliseconds; nil if it was there already, or nobody knows.
  private let transfer: (bytes: UInt64, milliseconds: Int64)?

  /// - Parameter receipt: the fields of a `done:` line, or of the event `done`.
  package init(size: UInt64, receipt: Fields) {
    func number(_ field: String) -> Int64? { receipt.number(field).map { Int64(clamping: $0) } }
    self.size = size
    // Versions before 0.3 wrote whole seconds only.
    let milliseconds = number("milliseconds") ?? number("seconds").map { $0.multipliedReportingOverflow(by: 1000).0 }
    if let milliseconds, let bytes = number("bytes-fetched"), bytes > 0 {
      transfer = (UInt64(bytes), max(0, milliseconds))
    } else {
      transfer = nil
    }
  }

  /// `48.0M in 5.31s, 9.04M/s`. Whole seconds give no rate: they are those of several attempts, with the waits between
  /// them, or of a version before 0.3.
  package var text: String {
    guard let transfer else { return shortBytes(size) }
    let bytes = min(transfer.bytes, size)
    let part = bytes < size ? "\(shortBytes(size)), \(shortBytes(bytes)) of it" : shortBytes(size)
    let rate =
      transfer.milliseconds % 1000 != 0 ? ", \(shortRate(Double(bytes) * 1000 / Double(transfer.milliseconds)))" : ""
    return "\(part) in \(shortDuration(milliseconds: transfer.milliseconds))\(rate)"
  }
}
