internal import Glibc
internal import Spool
internal import SpoolStatus
internal import SpoolWorker
internal import Synchronization
internal import Transfer

/// Waits until the jobs of one `spoolrun get` have ended: runs them by a worker of its own, or follows the worker that
/// has them or watches the spool.
struct GetRun {
  private let spool: Spool
  private let items: [GetItem]
  private let options: WorkerOptions
  private let signals: Int32
  private let output: GetOutput
  /// Whether files get the times that their servers state.
  private let setsTimes: Bool

  /// Milliseconds between two looks at jobs that another worker has.
  private static let interval: Int32 = 200
  /// How often a worker of its own may end without having run a job that is due. Another command may be about to take
  /// it, so there is a pause after each: 0.2 s, then twice as long each time.
  private static let mostRuns = 5

  /// - Parameter signals: a signalfd(2).
  init(
    _ items: [GetItem], in spool: Spool, _ options: WorkerOptions, signals: Int32, _ progress: ProgressMode,
    setsTimes: Bool, _ telling: GetTelling
  ) {
    self.setsTimes = setsTimes
    (self.items, self.spool, self.options, self.signals) = (items, spool, options, signals)
    output = GetOutput(items, of: spool, progress, stays: options.endsWhenDone, telling)
  }

  /// - Parameter known: how the items ended for which nothing was ordered, by their number.
  /// - Returns: how the items ended, after that has been told.
  func run(_ known: [Int: GetEnd]) throws -> [GetEnd] {
    let ends = try ends(known)
    if setsTimes { for (item, end) in zip(items, ends) where end == .done { setTime(of: item) } }
    output.tell(items, ends)
    var left: UInt64 = 0
    for (item, end) in zip(items, ends) where end.status != .success {
      left &+= try spool.status(.partial, item.job.part).map { UInt64(clamping: $0.size) } ?? 0
    }
    output.tell(left: left, in: spool)
    return ends
  }

  private func ends(_ known: [Int: GetEnd]) throws -> [GetEnd] {
    var (ends, growth, runs, nextRun) = (known, FollowedGrowth(), 0, ContinuousClock.now)
    var hasSaidWhoRuns = false
    // With `--once`, or when nothing has come for too long, a job that waits for its next attempt has ended.
    var stays = options.endsWhenDone
    var standstill = Standstill(longest: options.longestStandstill)
    while true {
      var (progress, running) = try look(&ends, &growth, stays: stays)
      let left = items.indices.filter { ends[$0] == nil }
      if left.isEmpty { break }
      let own = try isWatched() ? [] : left.filter { !running.contains($0) }
      var isStopped = false
      if own.isEmpty {
        let now = Host.current.awakeMilliseconds()
        _ = standstill.note(growth.sum &+ UInt64(ends.count), at: now)
        if standstill.isOver(at: now) {
          stays = false
          if running.isEmpty {
            try leave(left, &ends, &stays)
            break
          }
        }
        if !hasSaidWhoRuns { output.sayThatAnotherWorkerRuns() }
        hasSaidWhoRuns = true
        if running.isEmpty { progress.waits += try WorkerFiles(spool).living().flatMap { $0.report?.waits ?? [] } }
        output.bars?.update(progress)
        isStopped = self.isStopped(within: Self.interval)
      } else if runs == Self.mostRuns {
        for number in own { ends[number] = .left }
      } else if ContinuousClock.now < nextRun {
        isStopped = self.isStopped(within: Self.interval)
      } else {
        runs += 1
        let began = Host.current.awakeMilliseconds()
        isStopped = try runWorker(own)
        nextRun = .now + .milliseconds(100 << runs)
        let isLong = options.longestStandstill.map { Host.current.awakeMilliseconds() - began >= $0 } ?? false
        if !isStopped, isLong, options.endsWhenDone { try leave(own, &ends, &stays) }
      }
      if isStopped {
        try stop(left, &ends)
        break
      }
    }
    output.bars?.finish()
    return items.indices.map { ends[$0] ?? .left }
  }

  /// Ends the jobs that still wait after a standstill. A job that a worker has does not wait.
  private func leave(_ own: [Int], _ ends: inout [Int: GetEnd], _ stays: inout Bool) throws(SpoolError) {
    for number in own {
      let job = items[number].job
      for directory in [Directory.partial, .new, .urgent] where try spool.status(directory, job.fileName) != nil {
        stays = false
        ends[number] = GetEnd(try JobStanding.of(job, in: spool), stays: false) ?? .left
      }
    }
  }

  /// Looks at each job that has not ended.
  /// - Returns: how far they are that another worker has, and which these are.
  private func look(_ ends: inout [Int: GetEnd], _ growth: inout FollowedGrowth, stays: Bool) throws
    -> (WorkerProgress, running: Set<Int>)
  {
    var progress = WorkerProgress(running: [], waiting: 0, summary: RunSummary(), gained: 0)
    var running: Set<Int> = []
    for (number, item) in items.enumerated() where ends[number] == nil {
      let standing = try JobStanding.of(item.job, in: spool)
      ends[number] = GetEnd(standing, stays: stays)
      if ends[number] == .done { try tellDone(item) }
      if stays, case .retrying(let next, let problem) = standing {
        progress.waits = problem.map { [WorkerReport.Wait($0.code, $0.reason)] } ?? []
        progress.untilNext = max(0, next.seconds - spool.now().seconds)
      }
      guard case .running(let bytes, let total) = standing else {
        if ends[number] == nil { progress.waiting += 1 }
        continue
      }
      running.insert(number)
      progress.running.append(JobProgress(id: UInt64(number), name: FileName(item.shown), bytes: bytes, total: total))
      growth.note(bytes, of: number)
    }
    progress.gained = growth.sum
    progress.summary.done = ends.values.count { $0 == .done }
    return (progress, running)
  }

  /// The person has stopped the command. Files that were done meanwhile count as done.
  private func stop(_ left: [Int], _ ends: inout [Int: GetEnd]) throws(SpoolError) {
    // The ^C that the terminal has echoed.
    if Terminal.isCapable(STDERR_FILENO) { Terminal.write("\r\u{1B}[K", to: STDERR_FILENO) }
    for number in left {
      let standing = try JobStanding.of(items[number].job, in: spool)
      let end = GetEnd(standing, stays: true)
      var goesOn = try isWatched()
      if case .running = standing { goesOn = true }
      ends[number] = end ?? (goesOn ? .goesOn : .stopped)
    }
  }

  /// Whether a worker watches the spool. One that is stopped keeps its sign, but gives none of life.
  private func isWatched() throws(SpoolError) -> Bool {
    guard WatchSign.isGiven(for: spool) else { return false }
    return try !WorkerFiles(spool).living().isEmpty
  }

  private func isStopped(within milliseconds: Int32) -> Bool {
    var polled = pollfd(fd: signals, events: Int16(POLLIN), revents: 0)
    return poll(&polled, 1, milliseconds) > 0 && StopSignals(signals).arrived()
  }

  /// Runs these jobs by a worker of its own, as far as they are due.
  /// - Returns: whether it was told to stop.
  private func runWorker(_ numbers: [Int]) throws -> Bool {
    var options = options
    options.only = Set(numbers.map { items[$0].job.fileName })
    let wasStopped = Mutex(false)
    let summary = try WorkerLoop.run { [options, spool, output, signals] () async throws -> RunSummary in
      let worker: Worker
      do throws(OutputRootProblem) {
        worker = try Worker(spool, options) { event in
          if event.name == "stopping" { wasStopped.withLock { $0 = true } }
          output.report(event)
        }
      } catch {
        throw ExitStatus.inputOutput.after("\(error)")
      }
      worker.onProgress = { output.update(fromWorker: $0) }
      guard options.endsWhenDone else { return await worker.runOnce(stopSignals: signals) }
      return try await worker.watch(stopSignals: signals)
    }
    output.add(gained: summary.gained)
    if let error = summary.spoolError { throw error }
    if let obstacle = summary.obstacle { throw ExitStatus.unavailable.after(obstacle) }
    return wasStopped.withLock { $0 }
  }

  /// Gives a file the time at which it was last modified, as its server has stated it.
  private func setTime(of item: GetItem) {
    do throws(SpoolError) {
      let job = try JobSearch(spool).job(.done, item.job.fileName)
      guard let text = job?.journal.data.version?.modified, let output = OutputPath(item.name),
        let time = HTTPDate.parse(text, now: Timestamp.now().seconds)
      else { return }
      try OutputRoot(item.directory, spool: spool).setModified(output, to: time)
    } catch {
      Terminal.error("\(escaped(item.shown)): its time cannot be set: \(error)", .warning)
    }
  }

  // MARK: another worker

  private func tellDone(_ item: GetItem) throws {
    let job = item.job.fileName
    guard output.tells(job) else { return }
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
