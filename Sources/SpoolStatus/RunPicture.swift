internal import Spool
package import SpoolWorker

/// The picture of a run: a bar for each running job and one for the total. While nothing runs, what jobs wait for.
/// Pure.
package struct RunPicture: Sendable {
  private var progress = WorkerProgress(running: [], waiting: 0, summary: RunSummary(), gained: 0)
  /// The summary when the worker last had nothing to do. The total counts from there.
  private var before = RunSummary()
  private var meters: [UInt64: RateMeter] = [:]
  private var whole = RateMeter()
  /// The number of jobs that were seen running and have ended, and the bytes that they had.
  private var gone: (jobs: UInt64, bytes: UInt64) = (0, 0)
  /// What each of the last ones had, while some of them wait for another attempt: such a job counts once.
  private var returning: [FileName: UInt64] = [:]
  private static let mostReturning = 10_000
  private var turns = 0

  package init() {}

  package var isIdle: Bool { progress.running.isEmpty }

  /// Takes in what a worker reports. `milliseconds` are of any clock that never jumps.
  package mutating func update(_ progress: WorkerProgress, at milliseconds: Int64) {
    turns += 1
    let ids = Set(progress.running.map(\.id))
    for job in self.progress.running where !ids.contains(job.id) {
      gone.jobs += 1
      gone.bytes &+= job.bytes ?? 0
      meters[job.id] = nil
      if returning.count < Self.mostReturning { returning[job.name] = job.bytes ?? 0 }
    }
    for job in progress.running {
      if let bytes = returning.removeValue(forKey: job.name) { gone = (gone.jobs - 1, gone.bytes &- bytes) }
      if let bytes = job.bytes { meters[job.id, default: RateMeter()].add(bytes, at: milliseconds) }
    }
    if progress.summary.waiting == 0 { returning = [:] }
    whole.add(progress.gained, at: milliseconds)
    self.progress = progress
    if progress.running.isEmpty, progress.waiting == 0 {
      before = progress.summary
      (gone, returning) = ((0, 0), [:])
      whole = RateMeter()
    }
  }

  private var total: RunTotal { RunTotal(progress, since: before, gone: gone) }

  package var sentence: String {
    let total = total
    let of =
      switch total.certainty {
      case .exact: ""
      case .estimate: "about "
      case .least: "more than "
      }
    let size = total.total.map { " of \(of)\(shortBytes($0))" } ?? ""
    var parts = [total.label.text, shortBytes(total.bytes) + size]
    if let rate = whole.rate { parts.append(shortRate(rate)) }
    if let left = secondsLeft(total.bytes, of: total.total, rate: whole.rate) {
      parts.append("\(of)\(shortDuration(left)) left")
    }
    return parts.joined(separator: ", ")
  }

  // MARK: lines

  /// - Parameter height: the maximum number of rows. The total is the last row, and the last to be left out.
  package func lines(width: Int, height: Int, _ look: Look) -> [StyledLine] {
    guard width > 0, height > 0 else { return [] }
    return progress.running.isEmpty ? idleLines(width, height, look) : bars(width, height, look)
  }

  private func bars(_ width: Int, _ height: Int, _ look: Look) -> [StyledLine] {
    let running = progress.running
    let total = total
    // Of the only job, the total would say the same again.
    let hasTotal = total.all > 1 || running.count > 1
    let shown = running.count + (hasTotal ? 1 : 0) <= height ? running.count : max(0, height - 2)
    let jobs = running.prefix(shown)
    let layout = BarLayout(
      width: width, names: jobs.map { displayWidth($0.name.display) },
      label: hasTotal ? total.label : TotalLabel(count: "", shortCount: "", troubles: []), look: look)
    var lines = jobs.map { job in
      layout.line(
        fitted(job.name.display, to: layout.nameWidth, ellipsis: look.ellipsis),
        BarLayout.Figures(bytes: job.bytes ?? 0, total: job.total, rate: meters[job.id]?.rate, turn: turns))
    }
    if shown < running.count, height > 1 {
      lines.append(StyledLine("\(look.ellipsis) and \(running.count - shown) more", within: width, look, .faint))
    }
    if !hasTotal { return lines }
    let figures = BarLayout.Figures(
      bytes: total.bytes, total: total.total, rate: whole.rate, certainty: total.certainty, turn: turns)
    return lines + [layout.total(figures)]
  }

  private func idleLines(_ width: Int, _ height: Int, _ look: Look) -> [StyledLine] {
    func line(_ text: String, _ ink: Ink) -> StyledLine { StyledLine(text, within: width, look, ink) }
    let count = progress.waiting
    let more = progress.moreWait ? "+" : ""
    let jobs = count == 0 ? "jobs wait" : count == 1 ? "1 job waits" : "\(count)\(more) jobs wait"
    var lines = progress.waits.map { line("\(jobs): \(escaped($0.cause)): \(escaped($0.reason))", .yellow) }
    if let next = progress.untilNext { lines.append(line("next attempt in \(shortDuration(next))", .faint)) }
    return Array(lines.prefix(height))
  }
}

/// How far all jobs of a run are together. Pure.
struct RunTotal {
  let all: Int
  let bytes: UInt64
  /// nil if nothing is known of what is still to come.
  let total: UInt64?
  let certainty: BarLayout.Certainty
  let label: TotalLabel

  /// - Parameter before: how jobs had ended where the total begins.
  init(_ progress: WorkerProgress, since before: RunSummary, gone: (jobs: UInt64, bytes: UInt64)) {
    let now = progress.summary
    // The difference is negative if a job that waited then has ended since.
    let (failed, retrying) = (now.givenUp - before.givenUp, max(0, now.waiting - before.waiting))
    let ended = now.done - before.done + failed + retrying + now.cancelled - before.cancelled
    all = ended + progress.running.count + progress.waiting
    let more = progress.moreWait ? "+" : ""
    var troubles: [(String, Ink)] = []
    if failed > 0 { troubles.append(("\(failed) failed", .red)) }
    if retrying > 0 { troubles.append(("\(retrying) to retry", .yellow)) }
    label = TotalLabel(
      count: "\(ended) of \(all)\(more) jobs", shortCount: "\(ended)/\(all)\(more)", troubles: troubles)
    bytes = progress.running.reduce(gone.bytes) { $0 &+ ($1.bytes ?? 0) }
    let size = Self.size(progress, gone: gone)
    certainty = size.certainty
    // The rest of what is known is there already.
    total = certainty == .least && size.bytes == bytes ? nil : size.bytes
  }

  private static func size(_ progress: WorkerProgress, gone: (jobs: UInt64, bytes: UInt64))
    -> (bytes: UInt64?, certainty: BarLayout.Certainty)
  {
    if progress.moreWait { return (nil, .exact) }
    let known = progress.running.compactMap { job in job.total.map { max($0, job.bytes ?? 0) } }
    let unknown = progress.running.filter { $0.total == nil }.map { $0.bytes ?? 0 }
    let sum = known.reduce(gone.bytes, &+)
    if progress.waiting > 0 {
      if known.isEmpty, gone.jobs == 0 { return (nil, .exact) }
      // What has not been read yet counts with the mean size of the others.
      let mean = Double(sum) / Double(gone.jobs + UInt64(known.count))
      let guess = unknown.reduce(mean * Double(progress.waiting)) { $0 + max(mean, Double($1)) }
      return (sum &+ UInt64(min(guess, 1e18)), .estimate)
    }
    return unknown.isEmpty ? (sum, .exact) : (unknown.reduce(sum, &+), .least)
  }
}
