package import Spool

/// What one job asks for, what has happened to it, and what comes next, in plain words. Pure.
private struct JobStory {
  let job: FileName
  /// Whether it is a job, and not something else in `failed`.
  var isJob = true
  /// Where it is, safe for a terminal.
  let place: String
  let standing: JobStanding
  let text: JobText
  let bytes: [UInt8]
  /// Bytes of its data; nil if it has none.
  let data: UInt64?
  let now: Timestamp
  /// What it waits for, if that is no worker.
  let waits: (sentence: String, cause: WaitReason.Cause?)?
  let spool: String

  /// The lines for a terminal: free of control characters.
  var lines: [String] {
    var lines = [job.display + ": " + outcome, ""]
    lines += request.map { "  " + $0 }
    let events = self.events
    if !events.isEmpty { lines += [""] + events }
    if let code = standing.problem?.code, let explanation = FailureExplanation(of: code) {
      lines += ["", "  \(code): \(explanation.lines[0])"] + explanation.lines.dropFirst().map { "  " + $0 }
    }
    if let advice { lines += ["", "  " + advice] }
    return lines
  }

  // MARK: what it is

  private var outcome: String {
    if let waits { return waits.sentence }
    return switch standing {
    case .absent: text.request.isStandingOrder ? "a subscription" : place
    case .waiting: "waits for a worker"
    case .running(let bytes, let total): "is running" + progress(bytes, total)
    case .due: "waits for a worker; its next attempt is due"
    case .retrying(let time, _): "tries again in \(shortDuration(time.seconds - now.seconds))"
    case .paused: "paused"
    case .failed: "given up"
    case .done: "done"
    }
  }

  private func progress(_ bytes: UInt64, _ total: UInt64?) -> String {
    guard let total, total > 0 else { return ", \(shortBytes(bytes)) so far" }
    return ", \(shortBytes(bytes)) of \(shortBytes(total)) (\(percentage(bytes, of: total)) %)"
  }

  /// The job's own lines, but for header fields, whose values may be secret.
  private var request: [String] {
    var lines = text.request.urls.map { "url     \(escaped(shownURL($0.text)))" }
    if let output = text.request.output { lines.append("output  \(escaped(output.text))") }
    if let data, data > 0 { lines.append("data    \(shortBytes(data)) in partial/\(job.display).part") }
    lines.append("file    \(place)")
    return lines
  }

  // MARK: what has happened

  private var events: [String] {
    var events: [(key: JournalKey, line: String)] = []
    bytes.withUnsafeBytes { bytes in
      JournalScan.lines(bytes) { line in
        guard let fields = line.fields, let said = sentence(line.key, fields) else { return }
        let time = line.time.map { "\($0)" } ?? ""
        // Of checkpoints in a row, the last one tells all.
        if line.key == .checkpoint, events.last?.key == .checkpoint { events.removeLast() }
        events.append((line.key, "  \(padded(time, to: 20))  \(said)"))
      }
    }
    return events.map(\.line)
  }

  /// - Returns: nil for a line that tells people nothing.
  private func sentence(_ key: JournalKey, _ fields: Fields) -> String? {
    func field(_ name: String) -> String { escaped(fields[name] ?? "?") }
    func size(_ name: String) -> String { fields[name].flatMap { UInt64($0) }.map(shortBytes) ?? "?" }
    switch key {
    case .requeued: return "dropped again: attempts are counted from here"
    case .urgent: return "made urgent"
    case .relinked: return "given another URL: \(field("url"))"
    case .started: return "attempt \(field("attempt")): \(field("url")), by \(field("worker"))"
    case .response:
      let whole = fields["size"] == nil ? "a file of unknown size" : size("size")
      return "the server has \(whole)" + (fields["at"] == "0" ? "" : "; goes on at \(size("at"))")
    case .checkpoint: return "\(fields.words.first.flatMap { UInt64($0) }.map(shortBytes) ?? "?") on disk"
    case .cleared: return "no longer suspected of killing workers"
    case .interrupted: return "interrupted at \(size("at")): \(field("reason"))"
    case .failed:
      let problem = JobStatus.Problem(fields)
      let next = fields["retry"].map { "; next attempt at \(escaped($0))" } ?? "; given up"
      return "\(escaped(problem.code)): \(escaped(problem.reason))\(next)"
    case .verified:
      let digests = fields.named.filter { DigestAlgorithm(rawValue: $0.key) != nil }
      return "complete and verified: \(size("size")), "
        + digests.map { "\(escaped($0.key)) \(escaped($0.value))" }.joined(separator: ", ")
    case .published: return "in its place, \(field("output")); waits for the hook deliver"
    case .done:
      if fields["existing"] != nil { return "done: \(field("output")) was there already" }
      let figures = fields.number("bytes-fetched").map { PayloadFigures(size: $0, receipt: fields).text }
      return "done: \(field("output")), fetched \(figures ?? "?")"
    case .checked:
      let problems = fields.problems.text.map { "; \($0)" } ?? ""
      return "checked: \(field("entries")) entries, \(field("new")) new\(problems)"
    case .seen: return nil
    }
  }

  // MARK: what comes next

  private var advice: String? {
    if let waits {
      if waits.cause == .unfinished, let last = bytes.last, last != 0x0A {
        return "If nothing is missing, `\(command("retry"))` runs it as it is, once it is in failed."
      }
      guard waits.cause == .server, let url = text.request.urls.first else { return nil }
      let host = ShellWords.quoted(String(URLText(url.text).host))
      return "`spoolrun retry --spool \(ShellWords.quoted(spool)) --server \(host)` asks now."
    }
    switch standing {
    case .absent, .running, .done: return nil
    case .waiting, .due: return "`spoolrun --once \(ShellWords.quoted(spool))` runs it, unless a worker does."
    case .retrying: return "`\(command("retry"))` lets it try again now."
    case .paused: return "`\(command("release"))` lets it go on."
    case .failed where !isJob: return "`\(command("cancel"))` removes it."
    case .failed: return "`\(command("retry"))` tries it again, `\(command("cancel"))` removes it."
    }
  }

  private func command(_ verb: String) -> String { ShellWords.command(verb, job, of: spool) }
}

/// Reads the stories of jobs. It only reads, like ``SnapshotReader``.
package final class JobStoryReader {
  private let spool: Spool
  /// Read once, for what jobs wait for.
  private var snapshot: SpoolSnapshot?

  package init(_ spool: Spool) { self.spool = spool }

  /// The lines that tell of the jobs of this name, with an empty one between two of them. If there is none, those of
  /// archived receipts.
  /// - Parameter name: a job's name in any state, or one that is no job's, as in `failed`.
  /// - Parameter directory: only jobs there; nil for all.
  /// - Returns: nil if there is none.
  package func lines(of name: FileName, in directory: Directory?) throws(SpoolError) -> [String]? {
    // One look can miss a job that moves (INTERNALS.md, invariant 10).
    for _ in 0..<3 {
      var lines: [String] = []
      for place in try JobSearch(spool).places(of: name, in: directory.map { [$0] }) {
        guard let story = try story(place) else { continue }
        lines += (lines.isEmpty ? [] : [""]) + story.lines
      }
      if !lines.isEmpty { return lines }
    }
    return directory == nil || directory == .done ? try archivedLines(of: name) : nil
  }

  private func archivedLines(of name: FileName) throws(SpoolError) -> [String]? {
    var lines: [String] = []
    try Archive(spool).eachPath(named: [name]) { (path, _) throws(SpoolError) in
      guard let bytes = try spool.readableContents(path) else { return }
      lines += (lines.isEmpty ? [] : [""]) + story(name, path.display, bytes, .done).lines
    }
    return lines.isEmpty ? nil : lines
  }

  /// - Returns: nil if it has moved, or is no regular file and has no record.
  private func story(_ place: JobPlace) throws(SpoolError) -> JobStory? {
    let record = try place.directory == .failed ? JobSearch(spool).record(of: place.name) : nil
    if let record { return story(place.job, place.display, record, .failed(nil), isJob: false) }
    guard let bytes = try spool.jobContents(Path(place.directory, place.name)) else { return nil }
    guard let job = JobName(place.job) else { return story(place.job, place.display, bytes, .absent) }
    let data = try spool.status(.partial, job.part).map { UInt64(clamping: $0.size) }
    let standing = try JobStanding.look(at: place, job, in: spool) ?? .absent
    let waits = standing == .waiting || standing == .due ? try wait(of: place) : nil
    return story(place.job, place.display, bytes, standing, data: data, waits: waits)
  }

  private func story(
    _ job: FileName, _ place: String, _ bytes: [UInt8], _ standing: JobStanding, isJob: Bool = true,
    data: UInt64? = nil, waits: (sentence: String, cause: WaitReason.Cause?)? = nil
  ) -> JobStory {
    JobStory(
      job: job, isJob: isJob, place: place, standing: standing, text: bytes.withUnsafeBytes { JobText($0) },
      bytes: bytes, data: data, now: spool.now(), waits: waits, spool: spool.location)
  }

  /// What a job waits for; nil if that is a worker.
  private func wait(of place: JobPlace) throws(SpoolError) -> (sentence: String, cause: WaitReason.Cause?)? {
    if snapshot == nil { snapshot = try SnapshotReader(spool, limit: 1000, receipts: 0).read() }
    // Of a long list, not all are read.
    let jobs = snapshot?.jobs.values.joined()
    guard let status = jobs?.first(where: { $0.name == place.job && $0.directory == place.directory }) else {
      return ("waits", nil)
    }
    guard let waits = status.waits, waits.cause != .worker, let sentence = waits.sentence else { return nil }
    return (sentence, waits.cause)
  }
}

package enum JobStanding: Sendable, Equatable {
  case absent
  case waiting
  /// In `cur`, and its worker seems to be alive.
  case running(bytes: UInt64, total: UInt64?)
  /// In `cur`, and its worker is gone; or in `partial`, and due.
  case due
  /// In `partial`, until the next attempt.
  case retrying(at: Timestamp, JobStatus.Problem?)
  case paused
  case failed(JobStatus.Problem?)
  case done

  var problem: JobStatus.Problem? {
    switch self {
    case .retrying(_, let problem), .failed(let problem): problem
    case .absent, .waiting, .running, .due, .paused, .done: nil
    }
  }
}

extension JobStanding {
  package static func of(_ job: JobName, in spool: Spool) throws(SpoolError) -> JobStanding {
    // One look can miss a job that moves (INTERNALS.md, invariant 10).
    for _ in 0..<3 {
      for place in try JobSearch(spool).places(of: job.fileName).reversed() {
        if let standing = try look(at: place, job, in: spool) { return standing }
      }
    }
    return .absent
  }

  /// - Returns: nil if it has moved.
  static func look(at place: JobPlace, _ job: JobName, in spool: Spool) throws(SpoolError) -> JobStanding? {
    guard let status = try spool.status(place.directory, place.name) else { return nil }
    let now = spool.now()
    switch place.directory {
    case .new, .urgent: return .waiting
    case .hold: return .paused
    case .done: return .done
    case .cur:
      guard let claim = ClaimName(place.name), claim.isAlive(status, in: spool, now: now) else { return .due }
      let data = try spool.status(.partial, job.part).map { UInt64(clamping: $0.size) }
      guard let text = try JobSearch(spool).job(.cur, place.name) else { return nil }
      return .running(bytes: data ?? 0, total: text.request.expected.size ?? text.journal.data.version?.size)
    case .partial:
      if Claims.isDue(status.modified, at: now.seconds) { return .due }
      return .retrying(at: Timestamp(seconds: status.modified), try problem(place, in: spool))
    case .failed: return .failed(try problem(place, in: spool))
    case .tmp, .standing, .workers, .files: return nil
    }
  }

  private static func problem(_ place: JobPlace, in spool: Spool) throws(SpoolError) -> JobStatus.Problem? {
    guard let attempts = try JobSearch(spool).job(place.directory, place.name)?.journal.attempts else { return nil }
    if let failure = attempts.lastFailure { return JobStatus.Problem(failure) }
    // One that has not failed may wait for another job's output.
    return attempts.lastInterruption.map { JobStatus.Problem(interruption: $0) }
  }
}
