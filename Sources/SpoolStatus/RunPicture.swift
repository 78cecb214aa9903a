internal import Spool
package import SpoolWorker

/// The picture of a run: a bar for each running job and one for the total. Pure.
package struct RunPicture: Sendable {
  private var progress = WorkerProgress(running: [], waiting: 0, summary: RunSummary(), gained: 0)
  /// The summary when the worker last had nothing to do. The total counts from there.
  private var before = RunSummary()
  private var meters: [UInt64: RateMeter] = [:]
  private var whole = RateMeter(window: Self.window)
  /// The number of jobs that were seen running and have ended, and the bytes that they had.
  private var ended: (jobs: UInt64, bytes: UInt64) = (0, 0)
  private var turns = 0

  /// Milliseconds over which rates are averaged.
  private static let window: Int64 = 5000

  /// Of a worker that has reported nothing yet.
  package init() {}

  /// Whether no job runs.
  package var isIdle: Bool { progress.running.isEmpty }

  /// Takes in what a worker reports. `milliseconds` are of any clock that never jumps.
  package mutating func update(_ progress: WorkerProgress, at milliseconds: Int64) {
    turns += 1
    let ids = Set(progress.running.map(\.id))
    for job in self.progress.running where !ids.contains(job.id) {
      ended.jobs += 1
      ended.bytes &+= job.bytes
      meters[job.id] = nil
    }
    for job in progress.running {
      meters[job.id, default: RateMeter(window: Self.window)].add(job.bytes, at: milliseconds)
    }
    whole.add(progress.gained, at: milliseconds)
    self.progress = progress
    if progress.running.isEmpty, progress.waiting == 0 {
      before = progress.summary
      ended = (0, 0)
      whole = RateMeter(window: Self.window)
    }
  }

  // MARK: total

  private struct Whole {
    var ended: Int
    var all: Int
    var failed: Int
    var retrying: Int
    var bytes: UInt64
    /// nil if a size is not known.
    var total: UInt64?
    /// Whether `total` includes jobs that have not been read yet, with the mean size of the others.
    var isEstimate: Bool
  }

  private var sums: Whole {
    let now = progress.summary
    // The difference is negative if a job that waited then has ended since.
    let (failed, retrying) = (now.givenUp - before.givenUp, max(0, now.waiting - before.waiting))
    let count = now.done - before.done + failed + retrying + now.cancelled - before.cancelled
    let running = progress.running
    let bytes = running.reduce(ended.bytes) { $0 &+ $1.bytes }
    var total: UInt64? = ended.bytes
    for job in running { total = total.flatMap { sum in job.total.map { sum &+ max($0, job.bytes) } } }
    let seen = ended.jobs + UInt64(running.count)
    if progress.moreWait {
      total = nil
    } else if let known = total, progress.waiting > 0, seen > 0 {
      total = known &+ UInt64(min(Double(known) / Double(seen) * Double(progress.waiting), 1e18))
    }
    return Whole(
      ended: count, all: count + running.count + progress.waiting, failed: failed, retrying: retrying, bytes: bytes,
      total: total,
      isEstimate: progress.waiting > 0)
  }

  /// The possible labels, from the longest to the shortest.
  private func labels(_ whole: Whole) -> [String] {
    let extra =
      (whole.failed > 0 ? ", \(whole.failed) failed" : "") + (whole.retrying > 0 ? ", \(whole.retrying) to retry" : "")
    let all = "\(whole.all)\(progress.moreWait ? "+" : "")"
    return [
      "\(whole.ended) of \(all) jobs\(extra)", "\(whole.ended) of \(all) jobs", "\(whole.ended)/\(all)",
    ]
  }

  /// One line for an output on which the cursor cannot be moved.
  package var sentence: String {
    let whole = sums
    var parts = [
      labels(whole)[0],
      shortBytes(whole.bytes) + (whole.total.map { " of \(whole.isEstimate ? "about " : "")\(shortBytes($0))" } ?? ""),
    ]
    if let rate = self.whole.rate { parts.append(shortRate(rate)) }
    if let left = secondsLeft(whole.bytes, of: whole.total, rate: self.whole.rate) {
      parts.append("\(shortDuration(left)) left")
    }
    return parts.joined(separator: ", ")
  }

  // MARK: lines

  /// - Parameters:
  ///   - width: the maximum number of columns.
  ///   - height: the maximum number of rows. The total is the last row, and the last to be left out.
  package func lines(width: Int, height: Int, _ look: Look) -> [StyledLine] {
    let running = progress.running
    guard !running.isEmpty, width > 0, height > 0 else { return [] }
    let whole = sums
    let shown = running.count + 1 <= height ? running.count : max(0, height - 2)
    let jobs = running.prefix(shown)
    let layout = BarLayout(
      width: width, names: jobs.map { displayWidth($0.name.display) }, label: labels(whole).map { displayWidth($0) },
      look: look)
    var lines = jobs.map { job in
      let rate = meters[job.id]?.rate
      return layout.line(
        fitted(job.name.display, to: layout.nameWidth, ellipsis: look.ellipsis),
        BarLayout.Figures(
          bytes: job.bytes, total: job.total, rate: rate, left: secondsLeft(job.bytes, of: job.total, rate: rate),
          turn: turns))
    }
    if shown < running.count, height > 1 {
      lines.append(
        StyledLine(
          clipped("\(look.ellipsis) and \(running.count - shown) more", to: width, ellipsis: look.ellipsis), look,
          .faint))
    }
    let label = labels(whole).first { displayWidth($0) <= layout.nameWidth } ?? labels(whole)[2]
    lines.append(
      layout.line(
        fitted(label, to: layout.nameWidth, ellipsis: look.ellipsis),
        BarLayout.Figures(
          bytes: whole.bytes, total: whole.total, rate: self.whole.rate,
          left: secondsLeft(whole.bytes, of: whole.total, rate: self.whole.rate),
          isEstimate: whole.isEstimate, turn: turns), ink: .bold))
    return lines
  }
}
