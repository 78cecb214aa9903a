internal import Glibc
internal import Spool
internal import SpoolStatus
internal import SpoolWorker
internal import Synchronization
internal import SystemPackage

/// Waits until the jobs of one `spoolrun get` have ended: runs them by a worker of its own, or follows the worker that
/// has them or watches the spool.
struct GetRun {
  let spool: Spool
  let items: [GetItem]
  /// For a worker of its own.
  let options: WorkerOptions
  /// A signalfd(2).
  let signals: Int32
  let bars: StatusBars?
  let isVerbose: Bool

  /// Milliseconds between two looks at jobs that another worker has.
  private static let interval: Int32 = 200
  /// How often a worker of its own may end without having run a job that is due.
  private static let mostRuns = 5

  /// - Parameter known: how the items ended for which nothing was ordered, by their number.
  /// - Returns: how each item ended.
  /// - Throws: ``SpoolError``; the exit status, after a message, where a worker cannot start.
  func run(_ known: [Int: GetEnd]) throws -> [GetEnd] {
    var ends = known
    var runs = 0
    var hasSaidWhoRuns = false
    while true {
      var progress = WorkerProgress(running: [], waiting: 0, summary: RunSummary(), gained: 0)
      var hasOther = spool.isWatched()
      for (number, item) in items.enumerated() where ends[number] == nil {
        let standing = try StandingReader(spool).standing(of: item.job)
        ends[number] = GetEnd(standing)
        guard case .running(let bytes, let total) = standing else {
          if ends[number] == nil { progress.waiting += 1 }
          continue
        }
        hasOther = true
        progress.running.append(
          JobProgress(id: UInt64(number), name: FileName(item.shown), bytes: bytes, total: total))
        progress.gained += bytes
      }
      progress.summary.done = ends.values.count { $0 == .done }
      let left = items.indices.filter { ends[$0] == nil }
      if left.isEmpty { break }
      if hasOther {
        if !hasSaidWhoRuns, isVerbose || Terminal.isErrorTerminal {
          say("a worker has this spool: following its progress")
        }
        hasSaidWhoRuns = true
        bars?.update(progress)
        if !isStopped(within: Self.interval) { continue }
      } else if runs < Self.mostRuns {
        runs += 1
        if try !runWorker(left) { continue }
      } else {
        for number in left { ends[number] = .left }
        break
      }
      try stop(left, &ends)
      break
    }
    bars?.finish()
    return items.indices.map { ends[$0] ?? .left }
  }

  /// The person has stopped the command. Files that were done meanwhile count as done.
  private func stop(_ left: [Int], _ ends: inout [Int: GetEnd]) throws(SpoolError) {
    // The ^C that the terminal has echoed.
    if Terminal.isCapable(STDERR_FILENO) { Terminal.write("\r\u{1B}[K", to: STDERR_FILENO) }
    for number in left {
      let standing = try StandingReader(spool).standing(of: items[number].job)
      ends[number] = GetEnd(standing) ?? .stopped
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
    let names = Dictionary(
      numbers.map { (items[$0].job.fileName, FileName(items[$0].shown)) }, uniquingKeysWith: { first, _ in first })
    let wasStopped = Mutex(false)
    let outcome = WorkerLoop.run { [options, spool, bars, signals] () async -> Result<RunSummary, OutputRootProblem> in
      let worker: Worker
      do throws(OutputRootProblem) {
        worker = try Worker(spool, options) { event in
          if event.name == "stopping" { wasStopped.withLock { $0 = true } }
          self.report(event)
        }
      } catch {
        return .failure(error)
      }
      if let bars {
        worker.onProgress = { progress in
          var progress = progress
          progress.running = progress.running.map {
            JobProgress(id: $0.id, name: names[$0.name] ?? $0.name, bytes: $0.bytes, total: $0.total)
          }
          bars.update(progress)
        }
      }
      return .success(await worker.runOnce(stopSignals: signals))
    }
    switch outcome {
    case .failure(let problem):
      Terminal.error("\(problem)")
      throw ExitStatus.inputOutput.code
    case .success(let summary):
      if let error = summary.spoolError { throw error }
      if let obstacle = summary.obstacle {
        Terminal.error(obstacle)
        throw ExitStatus.unavailable.code
      }
    }
    return wasStopped.withLock { $0 }
  }

  /// Prints what concerns the spool. The results of the files are printed at the end.
  private func report(_ event: Event) {
    let isOfOneJob = ["done", "failed", "rejected", "stopping", "waiting", "unfinished"].contains(event.name)
    guard isVerbose || !isOfOneJob else { return }
    EventPrinter(isVerbose: isVerbose, format: .text, reader: .currentButTerminal) { line in
      if let bars { bars.print(line) } else { Terminal.log(line) }
    }.print(event)
  }

  private func say(_ line: String) {
    if let bars { bars.print("spoolrun: \(line)") } else { Terminal.error(line) }
  }
}
