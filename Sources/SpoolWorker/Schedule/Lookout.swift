internal import Spool

/// Reads the spool as the ``Scheduler`` requests it, and reports what it finds.
@WorkerLoop
struct Lookout {
  private let peeks: PeekReader
  private let only: Set<FileName>?
  private var reader: SpoolReader

  init(_ spool: Spool, _ environment: JobEnvironment) {
    peeks = PeekReader(spool, environment)
    only = environment.options.only
    reader = SpoolReader(spool)
  }

  mutating func perform(_ reading: Scheduler.Reading, _ scheduler: inout Scheduler) throws(SpoolError) {
    let began = LoopExecutor.milliseconds()
    switch reading {
    case .begin(let directories):
      for directory in directories { try reader.begin(directory) }
      scheduler.began(directories, at: began)
    case .read(let count):
      let found = try read(count, &scheduler)
      scheduler.found(found, names: count, took: LoopExecutor.milliseconds() - began)
    }
  }

  func look(at candidate: Candidate, _ scheduler: inout Scheduler) throws(SpoolError) {
    scheduler.looked(at: candidate, try peeks.peek(at: candidate))
  }

  mutating func search(_ count: Int, _ scheduler: inout Scheduler) throws(SpoolError) {
    let start = LoopExecutor.milliseconds()
    var kept: [(Candidate, Peek)] = []
    for candidate in try read(count, &scheduler).sorted(by: { $0.modified < $1.modified }) {
      let peek = try peeks.peek(at: candidate)
      if scheduler.keepOrPassOver(peek, at: start) { kept.append((candidate, peek)) }
    }
    scheduler.searched(kept, from: start, to: LoopExecutor.milliseconds())
  }

  /// Handles the changes that inotify reported. A name that has been claimed meanwhile costs one failed claim.
  func take(_ changes: [SpoolWatch.Change], _ scheduler: inout Scheduler) throws(SpoolError) {
    var seen: Set<SpoolWatch.Change> = []
    let now = Timestamp.now().seconds
    for change in changes where change.directory != .cur && !change.name.isIgnored && seen.insert(change).inserted {
      if scheduler.passOverIfFull() { continue }
      if let candidate = try look(change.directory, change.name, now, &scheduler) { scheduler.appeared(candidate) }
    }
  }

  /// The spool's directories are gone.
  mutating func abandon(_ scheduler: inout Scheduler) {
    scheduler.abandonPasses()
    reader.abandon()
  }

  /// The candidates among the next `count` names.
  private mutating func read(_ count: Int, _ scheduler: inout Scheduler) throws(SpoolError) -> [Candidate] {
    var found: [Candidate] = []
    var names = 0
    let now = Timestamp.now().seconds
    while names < count, let directory = scheduler.nextDirectory() {
      guard let name = try reader.next(directory) else {
        scheduler.ended(directory)
        continue
      }
      names += 1
      if let candidate = try look(directory, name, now, &scheduler) { found.append(candidate) }
    }
    return found
  }

  private func look(_ directory: Directory, _ name: FileName, _ now: Int64, _ scheduler: inout Scheduler)
    throws(SpoolError) -> Candidate?
  {
    if let only, !only.contains(directory == .cur ? ClaimName(name)?.job.fileName ?? name : name) { return nil }
    switch try reader.look(directory, name, at: now) {
    case .candidate(let candidate): return candidate
    case .later(let time): scheduler.willBeDue(at: time)
    case .nothing: break
    }
    return nil
  }
}
