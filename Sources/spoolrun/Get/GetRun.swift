internal import Glibc
internal import Spool
internal import SpoolStatus
internal import SpoolWorker
internal import Synchronization

/// Waits until the jobs of one `spoolrun get` have ended: runs them by a worker of its own, or follows the worker that
/// has them or watches the spool.
struct GetRun {
  private let spool: Spool
  private let items: [GetItem]
  private let options: WorkerOptions
  private let signals: Int32
  private let output: GetOutput

  /// Milliseconds between two looks at jobs that another worker has.
  private static let interval: Int32 = 200
  /// How often a worker of its own may end without having run a job that is due. Another command may be about to take
  /// it, so there is a pause after each: 0.2 s, then twice as long each time.
  private static let mostRuns = 5

  /// - Parameters:
  ///   - options: for a worker of its own.
  ///   - signals: a signalfd(2).
  init(
    _ items: [GetItem], in spool: Spool, _ options: WorkerOptions, signals: Int32, _ progress: ProgressMode,
    _ telling: GetTelling
  ) {
    (self.items, self.spool, self.options, self.signals) = (items, spool, options, signals)
    output = GetOutput(items, of: spool, progress, telling)
  }

  /// - Parameter known: how the items ended for which nothing was ordered, by their number.
  /// - Returns: the worst end, after all have been told.
  /// - Throws: ``SpoolError``; the exit status, after a message, where a worker cannot start.
  func run(_ known: [Int: GetEnd]) throws -> ExitStatus {
    let ends = try ends(known)
    output.tell(items, ends)
    // One that failed is worse than one that waits.
    return ends.reduce(.success) { $1.status == .givenUp || $0 == .success ? $1.status : $0 }
  }

  private func ends(_ known: [Int: GetEnd]) throws -> [GetEnd] {
    var ends = known
    var runs = 0
    var nextRun = ContinuousClock.now
    var hasSaidWhoRuns = false
    var growth = FollowedGrowth()
    while true {
      var progress = WorkerProgress(running: [], waiting: 0, summary: RunSummary(), gained: 0)
      var hasOther = WatchSign.isGiven(for: spool)
      for (number, item) in items.enumerated() where ends[number] == nil {
        let standing = try JobStanding.of(item.job, in: spool)
        ends[number] = GetEnd(standing)
        if ends[number] == .done { try tellDone(item) }
        guard case .running(let bytes, let total) = standing else {
          if ends[number] == nil { progress.waiting += 1 }
          continue
        }
        hasOther = true
        progress.running.append(
          JobProgress(id: UInt64(number), name: FileName(item.shown), bytes: bytes, total: total))
        growth.note(bytes, of: number)
      }
      progress.gained = growth.sum
      progress.summary.done = ends.values.count { $0 == .done }
      let left = items.indices.filter { ends[$0] == nil }
      if left.isEmpty { break }
      if hasOther {
        if !hasSaidWhoRuns { output.sayThatAnotherWorkerRuns() }
        hasSaidWhoRuns = true
        if progress.running.isEmpty { progress.waits = try WorkerFiles(spool).waits() }
        output.update(progress)
        if !isStopped(within: Self.interval) { continue }
      } else if runs == Self.mostRuns {
        for number in left { ends[number] = .left }
        break
      } else if ContinuousClock.now < nextRun {
        if !isStopped(within: Self.interval) { continue }
      } else {
        runs += 1
        let isStopped = try runWorker(left)
        nextRun = .now + .milliseconds(100 << runs)
        if !isStopped { continue }
      }
      try stop(left, &ends, goesOn: hasOther)
      break
    }
    output.finishBars()
    return items.indices.map { ends[$0] ?? .left }
  }

  /// The person has stopped the command. Files that were done meanwhile count as done.
  /// - Parameter goesOn: whether another worker has the jobs, or watches the spool.
  private func stop(_ left: [Int], _ ends: inout [Int: GetEnd], goesOn: Bool) throws(SpoolError) {
    // The ^C that the terminal has echoed.
    if Terminal.isCapable(STDERR_FILENO) { Terminal.write("\r\u{1B}[K", to: STDERR_FILENO) }
    for number in left {
      let standing = try JobStanding.of(items[number].job, in: spool)
      ends[number] = GetEnd(standing) ?? (goesOn ? .goesOn : .stopped)
    }
  }

  private func isStopped(within milliseconds: Int32) -> Bool {
    var polled = pollfd(fd: signals, events: Int16(POLLIN), revents: 0)
    return poll(&polled, 1, milliseconds) > 0
  }

  /// Runs these jobs by a worker of its own, as far as they are due.
  /// - Returns: whether it was told to stop.
  private func runWorker(_ numbers: [Int]) throws -> Bool {
    var options = options
    options.only = Set(numbers.map { items[$0].job.fileName })
    let wasStopped = Mutex(false)
    let outcome = WorkerLoop.run {
      [options, spool, output, signals] () async -> Result<RunSummary, OutputRootProblem> in
      let worker: Worker
      do throws(OutputRootProblem) {
        worker = try Worker(spool, options) { event in
          if event.name == "stopping" { wasStopped.withLock { $0 = true } }
          output.report(event)
        }
      } catch {
        return .failure(error)
      }
      worker.onProgress = { output.update(fromWorker: $0) }
      return .success(await worker.runOnce(stopSignals: signals))
    }
    switch outcome {
    case .failure(let problem):
      throw ExitStatus.inputOutput.after("\(problem)")
    case .success(let summary):
      output.add(gained: summary.gained)
      if let error = summary.spoolError { throw error }
      if let obstacle = summary.obstacle {
        throw ExitStatus.unavailable.after(obstacle)
      }
    }
    return wasStopped.withLock { $0 }
  }

  // MARK: another worker

  private func tellDone(_ item: GetItem) throws {
    let job = item.job.fileName
    let receipt = try spool.contents(Path(.done, job), limit: Spool.maximumJobFile)
    let figures = receipt.flatMap { $0.withUnsafeBytes { DoneStatus(job, $0) } }?.figures
    output.tellDone(job, figures.map { " (\($0.text))" } ?? "")
  }
}

/// How far the data of jobs has grown since they were first seen running.
struct FollowedGrowth {
  private var jobs: [Int: (first: UInt64, last: UInt64)] = [:]

  /// Notes the length of the data of the job with this number. A shorter one than before was begun anew.
  mutating func note(_ bytes: UInt64, of number: Int) {
    jobs[number] = (min(jobs[number]?.first ?? bytes, bytes), bytes)
  }

  var sum: UInt64 { jobs.values.reduce(0) { $0 &+ ($1.last - $1.first) } }
}
