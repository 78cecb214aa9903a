internal import SpoolWorker

/// How far all jobs of a run are together. Pure.
struct RunTotal {
  /// Jobs that have ended.
  let ended: Int
  let all: Int
  /// The bytes that there are.
  let bytes: UInt64
  /// nil if nothing is known of what is still to come.
  let total: UInt64?
  let certainty: BarLayout.Certainty
  let label: TotalLabel

  /// - Parameters:
  ///   - before: how jobs had ended where the total begins.
  ///   - gone: how many jobs were seen running and have ended, and the bytes that they had.
  init(_ progress: WorkerProgress, since before: RunSummary, gone: (jobs: UInt64, bytes: UInt64)) {
    let now = progress.summary
    // The difference is negative if a job that waited then has ended since.
    let (failed, retrying) = (now.givenUp - before.givenUp, max(0, now.waiting - before.waiting))
    ended = now.done - before.done + failed + retrying + now.cancelled - before.cancelled
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

  func secondsLeft(_ rate: Double?) -> Int64? { SpoolStatus.secondsLeft(bytes, of: total, rate: rate) }
}
